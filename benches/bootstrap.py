"""An Envoy with one worker and one listener per variant. Each listener responds with 200."""


def bootstrap(variants):
    """The configuration. The kernel chooses the ports, and the admin interface reports them."""
    return {
        "admin": {"address": address()},
        "static_resources": {
            "listeners": [
                listener(str(i), variant.filter) for i, variant in enumerate(variants)
            ],
        },
    }


def listener(name, filter_):
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        },
    }
    answer = {
        "match": {"prefix": "/"},
        "direct_response": {"status": 200, "body": {"inline_string": "ok\n"}},
    }
    return {
        "name": name,
        "address": address(),
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                "stat_prefix": name,
                "route_config": {
                    "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [answer]}],
                },
                "http_filters": [filter_, router] if filter_ else [router],
            },
        }]}],
    }


def address():
    return {"socket_address": {"address": "127.0.0.1", "port_value": 0}}
