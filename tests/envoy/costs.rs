//! Requests that contain their cost.

use serde_json::json;

use crate::harness::{Gateway, hcm_filter};

fn rules(algo: &str, scope: &str, cost: &str) -> String {
    format!(
        "- {{Url: /{algo}, rules: [{{actor: account, unit: day, rpu: 100, algo: {algo}, scope: {scope}, cost: {cost}}}]}}\n"
    )
}

/// Metadata of a preceding filter, with the type of the value.
#[test]
fn cost_is_read_from_metadata() {
    for (set, read) in [("NUMBER", "number"), ("STRING", "text")] {
        let rule = json!({
            "header": "x-points",
            "on_header_present": {"metadata_namespace": "shop.points", "key": "points", "type": set},
        });
        let config = json!({"request_rules": [rule]});
        let name = "envoy.filters.http.header_to_metadata";
        let cost =
            format!("{{metadata: [shop.points, points], type: {read}, default: 10, max: 60}}");
        let envoy = Gateway::with(&format!("limits:\n{}", rules("W", "gateway", &cost)))
            .behind(hcm_filter(name, "header_to_metadata", "Config", config))
            .start_shared();
        let get =
            |points: &str| envoy.get("/W", &[("x-account-id", "ann"), ("x-points", points)]).status;
        assert_eq!(
            ["50", "41", "30", "10", "9", "1"].map(get),
            [200, 200, 503, 503, 200, 503],
            "{read}"
        );
        assert_eq!(envoy.statuses(2, "/W", &[("x-account-id", "bob")]), [200; 2]);
    }
}
