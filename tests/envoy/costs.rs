//! Requests that say what they take.

use serde_json::json;

use crate::harness::{Gateway, hcm_filter};

fn rules(algo: &str, scope: &str, cost: &str) -> String {
    format!(
        "- {{Url: /{algo}, rules: [{{actor: account, unit: day, rpu: 100, algo: {algo}, scope: {scope}, cost: {cost}}}]}}\n"
    )
}

/// Whatever the workers are, a caller gets what fits.
#[test]
fn by_header() {
    let limits = |algos: &[&str], scope| {
        let rules = |algo: &&str| rules(algo, scope, "{header: x-cost, default: 7, max: 60}");
        Gateway::with(&format!("limits:\n{}", algos.iter().map(rules).collect::<String>()))
    };
    let four_workers = limits(&["W", "TB"], "gateway").workers(4).start_shared();
    let one_worker = limits(&["SW"], "local").start_shared();
    for (algo, envoy) in [("W", &four_workers), ("TB", &four_workers), ("SW", &one_worker)] {
        let path = format!("/{algo}");
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
            let status = envoy.get(&path, &[("x-account-id", "ann"), ("x-cost", value)]).status;
            let fits = cost <= left;
            assert_eq!(status == 200, fits, "{value:?} with {left} left, {algo}");
            left -= if fits { cost } else { 0 };
        }
        let twice = [("x-account-id", "bob"), ("x-cost", "1"), ("x-cost", "1")];
        assert_eq!(envoy.statuses(2, &path, &twice), [200, 503], "60 each");
        assert_eq!(envoy.statuses(7, &path, &[("x-account-id", "bob")])[4..], [200, 503, 503]);
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
