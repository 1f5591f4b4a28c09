"""The Envoys that are measured: a listener for each filter, in front of a route that answers by itself."""

import json
import os

TYPES = "type.googleapis.com/envoy.extensions"
HTTP = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
REDIS = "diana_redis"
SERVICE, UPSTREAM = "ratelimit_service", "upstream"
ANSWER = {"direct_response": {"status": 200, "body": {"inline_string": "ok\n"}}}
# A header of the upstream's responses, with the cost of the request.
USED = "x-tokens-used"
# A limit that no load reaches, so that every request is admitted.
NEVER = 1_000_000_000
# The name of the route.
ROUTE = "httproute/team/shop/rule/0/match/0/*"
ACTORS = {"account": [{"header": "x-account-id"}], "address": [{"client_address": {"v4": 32, "v6": 64}}]}


def bootstrap(filters, redis=None, service=None):
    """An Envoy with a listener for each filter, `None` for no filter. The kernel chooses the ports. With the port of a Redis there is
    a cluster that sends the body of a POST to it, as in envoy/fleet.yaml; with that of a rate limit service, a cluster for it, and
    an upstream, since Envoy asks only about requests that it forwards."""
    route = {"route": {"cluster": UPSTREAM}} if service else ANSWER
    listeners = [listener(str(number), address(0), each, route) for number, each in enumerate(filters)]
    resources = {"listeners": listeners, "clusters": []}
    if redis:
        tcp = {"@type": f"{TYPES}.upstreams.http.tcp.v3.TcpConnectionPoolProto"}
        options = {"@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http_protocol_options": {}}}
        options["common_http_protocol_options"] = {"max_requests_per_connection": 1}
        upstream = {"name": "envoy.upstreams.http.tcp", "typed_config": tcp}
        resources["clusters"].append({**cluster(REDIS, address(redis), options), "upstream_config": upstream})
    if service:
        options = {"@type": f"{TYPES}.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http2_protocol_options": {}}}
        upstream = {"pipe": {"path": f"@diana-cost-{os.getpid()}"}}
        resources["clusters"] += [cluster(SERVICE, address(service), options), cluster(UPSTREAM, upstream)]
        used = {"response_headers_to_add": [{"header": {"key": USED, "value": "1"}}]}
        resources["listeners"].append(listener(UPSTREAM, upstream, None, {**ANSWER, **used}))
    return {"admin": {"address": address(0)}, "static_resources": resources}


def cluster(name, address, options=None):
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}]}]
    protocol = {"typed_extension_protocol_options": {HTTP: options}} if options else {}
    return {"name": name, "load_assignment": {"cluster_name": name, "endpoints": endpoints}, **protocol}


def listener(name, address, filter_, route):
    router = http_filter("router", "router.v3.Router")
    route = {"name": ROUTE, "match": {"prefix": "/"}, **route}
    manager = {
        "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [filter_, router] if filter_ else [router],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {"name": name, "address": address, "filter_chains": [chain]}


def address(port):
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def http_filter(name, kind, **settings):
    return {"name": f"envoy.filters.http.{name}", "typed_config": {"@type": f"{TYPES}.filters.http.{kind}", **settings}}


def wasm(module, name, configuration):
    """A wasm filter in a VM of its own, so that filters share no memory."""
    vm = {"vm_id": name, "runtime": "envoy.wasm.runtime.v8", "code": {"local": {"filename": str(module)}}}
    value = {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": configuration}
    return http_filter("wasm", "wasm.v3.Wasm", config={"name": name, "root_id": name, "vm_config": vm, "configuration": value})


def native(library, configuration, name="native"):
    """A dynamic module. Envoy finds it by its name."""
    module = {"name": library, "do_not_close": True, "metrics_namespace": library}
    value = {"@type": "type.googleapis.com/google.protobuf.StringValue", "value": configuration}
    return http_filter("dynamic_modules", "dynamic_modules.v3.DynamicModuleFilter", dynamic_module_config=module, filter_name=name, filter_config=value)


def local_ratelimit(tokens=NEVER, header=None, callers=20_000):
    """Envoy's own limiter, with a bucket that is never empty unless it has few tokens; with one for each value of a header, for as many
    callers."""
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    bucket = {"max_tokens": tokens, "tokens_per_fill": tokens, "fill_interval": "86400s"}
    settings = {"stat_prefix": "local_ratelimit", "token_bucket": bucket, "filter_enabled": always, "filter_enforced": always}
    if header:
        # An entry without a value stands for every value.
        settings["descriptors"] = [{"entries": [{"key": header}], "token_bucket": bucket}]
        settings["rate_limits"] = [{"actions": [{"request_headers": {"header_name": header, "descriptor_key": header}}]}]
        settings["token_bucket"] = {**bucket, "max_tokens": NEVER, "tokens_per_fill": NEVER}
        settings["max_dynamic_descriptors"] = callers
    return http_filter("local_ratelimit", "local_ratelimit.v3.LocalRateLimit", **settings)


def ratelimit(header):
    """Envoy's filter that asks a service about each value of a header."""
    service = {"grpc_service": {"envoy_grpc": {"cluster_name": SERVICE}, "timeout": "60s"}, "transport_api_version": "V3"}
    actions = [{"actions": [{"request_headers": {"header_name": header, "descriptor_key": header}}]}]
    return http_filter("ratelimit", "ratelimit.v3.RateLimit", domain="cost", rate_limit_service=service, rate_limits=actions, timeout="60s")


def diana(module, name, limits, redis=False, settings=None):
    """Diana with these limits and settings, in a namespace of its own. Without a module, as a dynamic module."""
    configuration = {"limits": limits, "actors": ACTORS, "namespace": name, **(settings or {})}
    if redis:
        # Enough for a machine that also runs the load.
        configuration["redis"] = {"cluster": REDIS, "timeout": "1s"}
    text = json.dumps(configuration)
    return wasm(module, name, text) if module else native("diana", text, name)


def entry(url, *rules):
    return {"Url": url, "rules": list(rules)}


def of_route(route, *rules):
    """An entry for a route, or for those with a prefix."""
    return {**entry("/", *rules), "match": {"route": route}}


def of_others(count):
    """Entries for other routes, half of them by prefixes."""
    routes = [{"prefix": f"httproute/team-{number}/shop/"} if number % 2 else f"team-{number}.shop.0" for number in range(count)]
    return [of_route(route, rule("account", name=f"other-{number}")) for number, route in enumerate(routes)]


def rule(actor, algo="TB", unit="second", rpu=NEVER, scope="local", **more):
    return {"actor": actor, "unit": unit, "rpu": rpu, "algo": algo, "scope": scope, **more}
