"""HTTP filters in Envoy's configuration."""

NEVER = 1_000_000_000  # a limit that is never reached here


def wasm(module, name, configuration):
    """Each variant has its own VM, so that variants do not share memory."""
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
