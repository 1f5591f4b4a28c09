//! Requests to which a filter after Diana responds.

use serde_json::json;

use super::upstream;
use crate::harness::{Gateway, eventually, hcm_filter};

const RULES: &str = "limits: [{Url: /, rules: [
    {actor: all, unit: day, rpu: 1, algo: W, scope: gateway, count: {status: [403]}}]}]";

/// Filters that respond on demand: one with injected faults, one that denies, one with a script,
/// which also buffers bodies.
pub(super) fn filters(gateway: Gateway) -> Gateway {
    let fault = json!({"abort": {"header_abort": {}, "percentage": {"numerator": 100}},
        "delay": {"header_delay": {}, "percentage": {"numerator": 100}}});
    let denied = json!({"header": {"name": "x-denied", "present_match": true}});
    let policy = json!({"permissions": [denied], "principals": [{"any": true}]});
    let rbac = json!({"rules": {"action": "DENY", "policies": {"some": policy}}});
    let script = "function envoy_on_request(request)
        local tokens = request:headers():get('x-scripted')
        if request:headers():get('x-buffered') then request:body() end
        if tokens then request:respond({[':status'] = '200', ['x-tokens-used'] = tokens}, 'scripted') end
    end";
    let lua = json!({"default_source_code": {"inline_string": script}});
    gateway
        .ahead_of(hcm_filter("envoy.filters.http.fault", "fault", "HTTPFault", fault))
        .ahead_of(hcm_filter("envoy.filters.http.rbac", "rbac", "RBAC", rbac))
        .ahead_of(hcm_filter("envoy.filters.http.lua", "lua", "Lua", lua))
}

#[test]
fn local_reply_of_another_filter_counts_by_its_status() {
    let service = upstream::start();
    let envoy = filters(Gateway::with(RULES).workers(3).before(&service)).start_shared();
    let abort = ("x-envoy-fault-abort-request", "418");
    for (header, status) in
        [(abort, 418), (abort, 418), (("x-denied", "yes"), 403), (("x-denied", "yes"), 503)]
    {
        eventually(&format!("a {status}"), || {
            (envoy.get("/", &[header]).status == status).then_some(())
        });
    }
    envoy.assert_unharmed();
}
