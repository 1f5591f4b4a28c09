"""HTTP filters as Envoy's configuration has them."""

NEVER = 1_000_000_000  # so large a limit never refuses here


def wasm(module, name, configuration):
    """Each variant has a VM of its own, so that no variant works in the memory of another."""
    return {
        "name": "envoy.filters.http.wasm",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": {
                "name": name,
                "root_id": name,
                "vm_config": {
                    "vm_id": name,
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": str(module)}},
                },
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": configuration,
                },
            },
        },
    }


def local_ratelimit():
    """Envoy's own limiter with a bucket that is never empty."""
    always = {"default_value": {"numerator": 100, "denominator": "HUNDRED"}}
    return {
        "name": "envoy.filters.http.local_ratelimit",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
            "stat_prefix": "local_ratelimit",
            "token_bucket": {
                "max_tokens": NEVER, "tokens_per_fill": NEVER, "fill_interval": "1s",
            },
            "filter_enabled": always,
            "filter_enforced": always,
        },
    }
