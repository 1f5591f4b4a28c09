//! Metadata of every type: conditions on its presence agree with an actor that reads it.

use serde_json::{Value, json};

use crate::harness::{Gateway, hcm_filter, is_native};

/// Values that the native module cannot read, besides mappings.
const UNREADABLE: [&str; 4] = ["nothing", "empty-mapping", "null-in-list", "list-in-list"];

#[test]
fn presence_of_metadata_agrees_with_actors() {
    let present = json!({
        "text": "gold", "switched-off": false, "switched-on": true, "zero": 0, "number": 5, "negative": -1.5,
        "list": ["a", "b"], "empty-text-in-list": [""], "list-in-list": [[], ["a"]],
    });
    let absent = json!({
        "empty-text": "", "nothing": null, "empty-list": [], "empty-mapping": {}, "null-in-list": [null],
    });
    // Envoy writes them in random order, so all such requests are one caller.
    let unclear = json!({
        "mapping": {"a": 1}, "mappings": {"a": "x", "b": {"c": "y"}}, "mapping-in-list": ["a", [{"a": [1]}]],
    });
    let keys = |values: &Value| values.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let all = [keys(&present), keys(&absent), keys(&unclear), vec!["missing".into()]].concat();
    let (mut limits, mut actors) = (String::new(), String::new());
    for key in &all {
        let condition = format!("{{metadata: {{caller: {{{key}: {{present: true}}}}}}}}");
        for (path, more, actor) in [
            ("match", format!("match: {condition}, "), "all"),
            ("unless", format!("unless: {condition}, "), "all"),
            ("actor", String::new(), key),
        ] {
            limits += &format!(
                "- {{Url: /{path}/{key}, {more}rules: [{{actor: {actor}, unit: day, rpu: 0, scope: local}}]}}\n"
            );
        }
        actors += &format!("  {key}: [{{metadata: [caller, {key}]}}]\n");
    }
    for (path, test) in [("/contains", "contains"), ("/not", "not")] {
        limits += &format!(
            "- {{Url: {path}, match: {{metadata: {{caller: {{list: {{{test}: a}}}}}}}}, \
             rules: [{{actor: all, unit: day, rpu: 0, scope: local}}]}}\n"
        );
    }
    let mut values = present.clone();
    for more in [&absent, &unclear] {
        values.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    let config = json!({"metadata": [{"metadata_namespace": "caller", "value": values}]});
    let filter = hcm_filter("envoy.filters.http.set_metadata", "set_metadata", "Config", config);
    let envoy =
        Gateway::with(&format!("limits:\n{limits}actors:\n{actors}")).behind(filter).start_shared();
    for key in &all {
        let is_refused = |path: &str| envoy.get(&format!("/{path}/{key}"), &[]).status == 503;
        let found = ["match", "unless", "actor"].map(is_refused);
        let is_present = present.get(key).is_some();
        // The native module cannot tell these from mappings.
        let is_unreadable = is_native() && UNREADABLE.contains(&key.as_str());
        let wanted = match is_unreadable || unclear.get(key).is_some() {
            true => [true; 3],
            false => [is_present, !is_present, is_present],
        };
        assert_eq!(found, wanted, "{key}");
    }
    // A list passes if one of its items does, and always the text form `not`.
    assert_eq!(["/contains", "/not"].map(|path| envoy.get(path, &[]).status), [503, 503]);
}
