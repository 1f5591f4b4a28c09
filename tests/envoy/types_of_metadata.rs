//! Metadata that is no text: Envoy's log has a line or two when the type of a value changes, and none for a request.

use serde_json::json;

use crate::harness::{Gateway, hcm_filter, is_native};

/// Sets values of all types, and one of the type that the request names.
const SCRIPT: &str = "
local some = {text = 'gold', number = 5, flag = true, list = {'a', 'b'}}
function envoy_on_request(request)
    local metadata = request:streamInfo():dynamicMetadata()
    for key, value in pairs(some) do metadata:set('caller', key, value) end
    metadata:set('caller', 'numbers', {1, 2})
    metadata:set('caller', 'flags', {'a', true})
    metadata:set('caller', 'mapping', {a = 'b'})
    metadata:set('caller', 'mappings', {{a = 'b'}, 'c'})
    metadata:set('caller', 'any', some[request:headers():get('x-type')])
end";

const KEYS: [&str; 9] =
    ["text", "number", "flag", "list", "numbers", "flags", "mapping", "mappings", "any"];

/// Several rules and conditions read each value. Each caller may send twenty requests.
fn rules() -> String {
    let (mut limits, mut actors) = (String::new(), String::new());
    for key in KEYS {
        let rule =
            format!("rules: [{{actor: {key}, unit: day, rpu: 20, algo: W, scope: local}}]}}\n");
        limits += &format!("- {{Url: /, {rule}- {{Url: /{key}, {rule}");
        for test in ["{present: true}", "{not: gold}"] {
            limits += &format!(
                "- {{Url: /, match: {{metadata: {{caller: {{{key}: {test}}}}}}}, rules: [{{actor: all, unit: day, rpu: 900}}]}}\n"
            );
        }
        actors += &format!("  {key}: [{{metadata: [caller, {key}]}}]\n");
    }
    format!("limits:\n{limits}actors:\n{actors}")
}

#[test]
fn log_has_no_line_for_a_request() {
    let lua = json!({"default_source_code": {"inline_string": SCRIPT}});
    let filter = hcm_filter("envoy.filters.http.lua", "lua", "Lua", lua);
    let envoy = Gateway::with(&rules()).behind(filter).start();
    for kind in ["text", "number", "flag", "list", "text", "flag", "number", "list"] {
        assert_eq!(envoy.statuses(2, "/", &[("x-type", kind)]), [200; 2], "{kind}");
    }
    // All values but `any` were the same in all requests, and so were their callers.
    assert_eq!(envoy.statuses(6, "/", &[("x-type", "list")]), [200, 200, 200, 200, 503, 503]);
    envoy.statuses(200, "/", &[("x-type", "list")]);
    envoy.assert_unharmed();
    let (_, log) = envoy.quit();
    let lines = log.lines().filter(|line| line.contains(" is not a "));
    // Of the first request, and of the changes of `any`, one or two each. Both mappings are read more
    // than 512 times, and asked for at the first 256 reads and at the 512th.
    assert_eq!(lines.count(), if is_native() { 6 + 8 + 2 * 3 * 257 } else { 0 }, "{log}");
}
