//! Updates: by a listener, by ECDS, and the end of Envoy after them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{
    Client, Gateway, assert_no_trap, eventually, hcm_filter, request, shipped_text,
};

/// Rules that admit everything under / and differ by generation.
pub fn generation(number: u32) -> Gateway {
    Gateway::with(&format!(
        "
limits:
  - Url: /
    rules: [{{name: wide, actor: all, unit: second, rpu: {}, scope: local}}]
  - Url: /closed
    rules: [{{name: generation-{number}, actor: all, unit: hour, rpu: 0, scope: local}}]
",
        1_000_000 + number
    ))
}

#[test]
fn envoy_ends_without_a_trap_after_updates() {
    let envoy = generation(0).workers(2).start();
    assert_eq!(envoy.statuses(4, "/", &[]), [200; 4]);
    envoy.update(&generation(1));
    assert_eq!(envoy.statuses(4, "/", &[]), [200; 4]);
    let (status, log) = envoy.quit();
    assert!(status.success(), "Envoy ended with {status}:\n{log}");
    assert_no_trap(&log);
}

/// A control plane may deliver the filter by ECDS, separately from its listener. Then new rules
/// apply to the next request on an open connection, and no listener drains.
#[test]
fn new_rules_by_ecds_apply_on_open_connections() {
    const NAME: &str = "by-ecds";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{NAME}-{}.json", std::process::id()));
    let deliver = |rpu: u32| {
        let envoy: Value = serde_yaml::from_str(&shipped_text("envoy/envoy.yaml")).unwrap();
        let filters =
            "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0";
        let mut config = envoy.pointer(filters).unwrap()["typed_config"].clone();
        config["config"]["root_id"] = NAME.into();
        config["config"]["vm_config"]["vm_id"] = NAME.into();
        config["config"]["configuration"]["value"] = format!(
            "limits: [{{Url: /, rules: [{{name: r, actor: all, unit: day, rpu: {rpu}}}]}}]"
        )
        .into();
        let kind = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
        let resource = json!({"@type": kind, "name": NAME, "typed_config": config});
        let new = file.with_extension("new");
        fs::write(&new, json!({"resources": [resource]}).to_string()).unwrap();
        fs::rename(&new, &file).unwrap();
    };
    deliver(2);
    let discovery = json!({
        "config_source": {"path_config_source": {"path": file}},
        "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
    });
    let router = hcm_filter("envoy.filters.http.router", "router", "Router", json!({}));
    let filters = json!([{"name": NAME, "config_discovery": discovery}, router]);
    let gateway = Gateway::with("limits: []");
    let envoy = gateway.routed(Value::Null, json!({"http_filters": filters})).start();
    let mut client = Client::connect(envoy.port).unwrap();
    let mut get = || client.send(&request("GET", "/", &[])).unwrap().status;
    assert_eq!([get(), get(), get()], [200, 200, 503]);
    deliver(4);
    eventually("the new rules on the open connection", || (get() == 200).then_some(()));
    // Used permits stay used, and refused requests cost none.
    assert_eq!([get(), get()], [200, 503]);
    assert_eq!(envoy.stat("listener_manager.listener_modified"), Some(0));
    envoy.assert_unharmed();
    fs::remove_file(file).unwrap();
}
