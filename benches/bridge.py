"""The way to a Redis: an internal listener that sends the body of a POST to it as it is."""

CLUSTER = "diana_redis"
TYPES = "type.googleapis.com/envoy.extensions"


def with_bridge(configuration, port):
    """The configuration with a bridge to the Redis at a port of this machine."""
    resources = configuration["static_resources"]
    listeners = [*resources["listeners"], bridge()]
    clusters = [
        cluster(CLUSTER, {"envoy_internal_address": {"server_listener_name": CLUSTER}}),
        cluster("redis", {"socket_address": {"address": "127.0.0.1", "port_value": port}}),
    ]
    extension = {
        "name": "envoy.bootstrap.internal_listener",
        "typed_config": {"@type": f"{TYPES}.bootstrap.internal_listener.v3.InternalListener"},
    }
    return {
        **configuration,
        "bootstrap_extensions": [extension],
        "static_resources": {"listeners": listeners, "clusters": clusters},
    }


def bridge():
    connect = {"upgrade_type": "CONNECT", "connect_config": {"allow_post": True}}
    route = {
        "match": {"prefix": "/"},
        "route": {"cluster": "redis", "timeout": "2s", "upgrade_configs": [connect]},
    }
    return {
        "name": CLUSTER,
        "internal_listener": {},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
                "stat_prefix": CLUSTER,
                "generate_request_id": False,
                "upgrade_configs": [{"upgrade_type": "CONNECT"}],
                "route_config": {
                    "virtual_hosts": [{"name": "redis", "domains": ["*"], "routes": [route]}],
                },
                "http_filters": [{
                    "name": "envoy.filters.http.router",
                    "typed_config": {"@type": f"{TYPES}.filters.http.router.v3.Router"},
                }],
            },
        }]}],
    }


def cluster(name, address):
    endpoint = {"endpoint": {"address": address}}
    return {
        "name": name,
        "load_assignment": {
            "cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}],
        },
    }
