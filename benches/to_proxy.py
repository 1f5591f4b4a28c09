"""The connection to several Redis through Envoy's proxy, as in envoy/redis/shards.yaml."""

import os

TYPES = "type.googleapis.com/envoy.extensions"
HTTP = "envoy.filters.network.http_connection_manager"
PROXY = "redis_proxy"
OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def with_shards(configuration, name, namespace, ports):
    """The configuration with a cluster that spreads the shards of a namespace over Redis. `ports` has the port of each
    shard."""
    # An abstract socket leaves no file.
    socket = {"pipe": {"path": f"@diana-bench-{os.getpid()}"}}
    internal = {"envoy_internal_address": {"server_listener_name": name}}
    extension = {
        "name": "envoy.bootstrap.internal_listener",
        "typed_config": {"@type": f"{TYPES}.bootstrap.internal_listener.v3.InternalListener"},
    }
    listeners = configuration["static_resources"]["listeners"]
    return {
        **configuration,
        "bootstrap_extensions": [extension],
        "static_resources": {
            "listeners": [*listeners, bridge(name), proxy(socket, namespace, ports)],
            "clusters": [
                cluster(name, internal, typed_extension_protocol_options={OPTIONS: endless()}),
                cluster(PROXY, socket),
                *(cluster(f"redis_{port}", loopback(port)) for port in sorted(set(ports))),
            ],
        },
    }


def bridge(name):
    """A listener without a port that forwards the body of a POST to the proxy unchanged."""
    connect = {"upgrade_type": "CONNECT", "connect_config": {"allow_post": True}}
    route = {"match": {"prefix": "/"}, "route": {"cluster": PROXY, "upgrade_configs": [connect]}}
    manager = {
        "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "generate_request_id": False,
        "delayed_close_timeout": "0s",
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "http_filters": [{
            "name": "envoy.filters.http.router",
            "typed_config": {"@type": f"{TYPES}.filters.http.router.v3.Router"},
        }],
        "route_config": {"virtual_hosts": [{"name": "redis", "domains": ["*"], "routes": [route]}]},
    }
    chains = [{"filters": [{"name": HTTP, "typed_config": manager}]}]
    return {"name": name, "internal_listener": {}, "filter_chains": chains}


def endless():
    """Calls announce a longer body than they send, since the proxy would otherwise drop its replies."""
    length = {"key": "content-length", "value": "1000000000"}
    append = {"header": length, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
    mutation = f"{TYPES}.filters.http.header_mutation.v3.HeaderMutation"
    codec = f"{TYPES}.filters.http.upstream_codec.v3.UpstreamCodec"
    return {
        "@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http_protocol_options": {}},
        "http_filters": [
            {
                "name": "envoy.filters.http.header_mutation",
                "typed_config": {
                    "@type": mutation, "mutations": {"request_mutations": [{"append": append}]},
                },
            },
            {"name": "envoy.filters.http.upstream_codec", "typed_config": {"@type": codec}},
        ],
    }


def proxy(address, namespace, ports):
    """Envoy's Redis proxy."""
    routes = [
        {"prefix": f"diana:{{2:{namespace}:{part}:", "cluster": f"redis_{port}"}
        for part, port in enumerate(ports)
    ]
    settings = {
        "@type": f"{TYPES}.filters.network.redis_proxy.v3.RedisProxy",
        "stat_prefix": PROXY,
        "settings": {"op_timeout": "0.6s"},
        # The keys of a single shard have no number.
        "prefix_routes": {"routes": routes, "catch_all_route": {"cluster": f"redis_{ports[0]}"}},
    }
    filters = [{"name": "envoy.filters.network.redis_proxy", "typed_config": settings}]
    return {"name": PROXY, "address": address, "filter_chains": [{"filters": filters}]}


def cluster(name, address, **more):
    endpoint = {"endpoint": {"address": address}}
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "load_assignment": assignment, **more}


def loopback(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
