"""The connection to a Redis as in envoy/fleet.yaml: a cluster that forwards the body of a POST unchanged."""

CLUSTER = "diana_redis"
TYPES = "type.googleapis.com/envoy.extensions.upstreams.http"
OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def with_redis(configuration, port):
    """The configuration with a cluster for the Redis at a local port."""
    resources = {**configuration["static_resources"], "clusters": [cluster(port)]}
    return {**configuration, "static_resources": resources}


def cluster(port):
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}
    return {
        "name": CLUSTER,
        "upstream_config": {
            "name": "envoy.upstreams.http.tcp",
            "typed_config": {"@type": f"{TYPES}.tcp.v3.TcpConnectionPoolProto"},
        },
        "typed_extension_protocol_options": {OPTIONS: {
            "@type": f"{TYPES}.v3.HttpProtocolOptions",
            "common_http_protocol_options": {"max_requests_per_connection": 1},
            "explicit_http_config": {"http_protocol_options": {}},
        }},
        "load_assignment": {
            "cluster_name": CLUSTER, "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}],
        },
    }
