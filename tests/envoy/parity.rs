//! Everything that the reference names, on each supported Envoy and in both modules: one document with each source of a caller,
//! condition, cost, and answer, and one with each source of a cost and outcome that the end of a request shows. The counts are
//! those of both modules, so these agree if both pass.

mod arrivals;
mod ends;

use serde_json::{Value, json};

use crate::harness::{Gateway, hcm_filter};

/// A filter before Diana that sets metadata and filter state as requests name them.
fn behind_filters(gateway: Gateway) -> Gateway {
    let script = "function envoy_on_request(request)
        local metadata, headers = request:streamInfo():dynamicMetadata(), request:headers()
        metadata:set('some', 'text', headers:get('x-text'))
        metadata:set('some', 'number', tonumber(headers:get('x-number') or ''))
        if headers:get('x-flag') then metadata:set('some', 'flag', headers:get('x-flag') == 'true') end
        if headers:get('x-list') then metadata:set('some', 'list', {headers:get('x-list'), 'more'}) end
    end";
    let lua = json!({"default_source_code": {"inline_string": script}});
    let state = json!({"on_request_headers": [{"object_key": "some.state", "factory_key": "envoy.string",
        "skip_if_empty": true, "format_string": {"omit_empty_values": true,
            "text_format_source": {"inline_string": "%REQ(x-state)%"}}}]});
    let name = "envoy.filters.http.set_filter_state";
    gateway.behind(hcm_filter("envoy.filters.http.lua", "lua", "Lua", lua)).behind(hcm_filter(
        name,
        "set_filter_state",
        "Config",
        state,
    ))
}

/// The names that are no keys of the document.
fn absent_from<'n>(document: &str, names: &[&'n str]) -> Vec<&'n str> {
    let is_absent = |name: &&&str| !document.contains(&format!("{name}:"));
    names.iter().filter(is_absent).copied().collect()
}

fn routes(upstream: &str) -> Value {
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/nobody"}, "route": {"cluster": "nobody"}},
        {"match": {"prefix": "/"}, "route": {"cluster": upstream}},
    ]}]})
}
