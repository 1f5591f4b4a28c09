//! Requests that say what they take.

use serde_json::json;

use crate::harness::{Gateway, hcm_filter};

fn rules(algo: &str, scope: &str, cost: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: account, unit: day, rpu: 100, algo: {algo}, scope: {scope}, cost: {cost}}}]}}]"
    )
}

/// Whatever the workers are, a caller gets what fits.
#[test]
fn by_header() {
    for (algo, scope) in [("W", "gateway"), ("TB", "gateway"), ("SW", "local")] {
        let workers = if scope == "local" { 1 } else { 4 };
        let rules = rules(algo, scope, "{header: x-cost, default: 7, max: 60}");
        let envoy = Gateway::with(&rules).workers(workers).start();
        let mut left = 100;
        for (value, cost) in [
            ("20", 20),
            ("61", 60),
            ("20.5", 21),
            ("19", 19),
            ("1", 1),
            ("-1", 7),
            ("lots", 7),
            ("99999999999999999999999999", 60),
            ("", 7),
            ("7", 7),
            ("0", 1),
        ] {
            let status = envoy.get("/", &[("x-account-id", "ann"), ("x-cost", value)]).status;
            let fits = cost <= left;
            assert_eq!(status == 200, fits, "{value:?} with {left} left, {algo} {scope}");
            left -= if fits { cost } else { 0 };
        }
        let twice = [("x-account-id", "bob"), ("x-cost", "1"), ("x-cost", "1")];
        assert_eq!(envoy.statuses(2, "/", &twice), [200, 503], "60 each");
        assert_eq!(envoy.statuses(7, "/", &[("x-account-id", "bob")])[4..], [200, 503, 503]);
    }
}

/// As a filter in front leaves it, which says by what type.
#[test]
fn by_metadata() {
    for (set, read) in [("NUMBER", "number"), ("STRING", "text")] {
        let rule = json!({
            "header": "x-points",
            "on_header_present": {"metadata_namespace": "shop.points", "key": "points", "type": set},
        });
        let config = json!({"request_rules": [rule]});
        let name = "envoy.filters.http.header_to_metadata";
        let cost =
            format!("{{metadata: [shop.points, points], type: {read}, default: 10, max: 60}}");
        let envoy = Gateway::with(&rules("W", "gateway", &cost))
            .behind(hcm_filter(name, "header_to_metadata", "Config", config))
            .start();
        let get =
            |points: &str| envoy.get("/", &[("x-account-id", "ann"), ("x-points", points)]).status;
        assert_eq!(
            ["50", "41", "30", "10", "9", "1"].map(get),
            [200, 200, 503, 503, 200, 503],
            "{read}"
        );
        assert_eq!(envoy.statuses(2, "/", &[("x-account-id", "bob")]), [200; 2]);
    }
}
