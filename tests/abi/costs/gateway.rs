//! The cost of a `gateway` rule for a busy caller.

use std::collections::BTreeMap;

use super::{ALL_HEADERS, CLOCK, SECOND};
use host::Host;
use host::answer::Answer;
use host::request::Request;

fn config(scope: &str, algo: &str, unit: &str, rpu: u64) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: device, unit: {unit}, rpu: {rpu}, algo: {algo}, \
         scope: {scope}}}]}}]"
    )
}

/// The results of requests of one caller, `pause` apart.
fn answers(config: &str, requests: usize, pause: u64) -> Vec<Answer> {
    let mut host = Host::new(1);
    let mut vm = host.start_vm(config).unwrap_or_else(|error| panic!("{config}\n{error}"));
    let request = Request::get("/").header("x-device-id", "5e1c9e0a-6f6b-4b1e-9a55-0d8f0c7c2f11");
    let send = |_| {
        vm.run(pause);
        vm.request(&request)
    };
    (0..requests).map(send).collect()
}

#[test]
fn leased_request_costs_as_much_as_under_a_local_rule() {
    for algo in ["W", "SW", "TB"] {
        // Two seconds. The first is the warm-up.
        let answers = answers(&config("gateway", algo, "second", 100_000), 4_000, 500);
        let warm = &answers[2_000..];
        let asked = warm.iter().filter(|answer| answer.calls("proxy_get_shared_data") > 0).count();
        println!("{algo}: {asked} of {} asked", warm.len());
        // A lease lasts a fiftieth of a second.
        assert!(asked * 40 <= warm.len(), "{algo}: {asked} of {} asked", warm.len());
        let local = BTreeMap::from([CLOCK, ALL_HEADERS]);
        let like_local = warm.iter().filter(|answer| answer.calls == local).count();
        assert!(like_local * 100 >= 97 * warm.len(), "{algo}: {like_local} of {}", warm.len());
    }
}

#[test]
fn cached_refusal_reads_no_shared_data() {
    for algo in ["W", "SW", "TB", "LB, max_queue: 0"] {
        let rpu = if algo.starts_with("LB") { 60 } else { 1 };
        let answers = answers(&config("gateway", algo, "minute", rpu), 200, 1_000);
        let refused = answers.iter().skip(2);
        assert!(refused.clone().all(Answer::is_refused), "{algo}");
        let asked = refused.filter(|answer| answer.calls("proxy_get_shared_data") > 0).count();
        assert_eq!(asked, 0, "{algo}");
    }
}

#[test]
fn leaky_bucket_costs_one_read_and_one_write() {
    let answers = answers(&config("gateway", "LB", "second", 1_000), 400, 2_000);
    let last = &answers[100..];
    assert!(last.iter().all(Answer::is_admitted));
    let calls = |name| last.iter().map(|answer| answer.calls(name)).sum::<u64>();
    assert_eq!(calls("proxy_set_shared_data"), 300);
    assert_eq!(calls("proxy_get_shared_data"), 300);
}

/// The bounds are a tenth above the measured values.
#[test]
fn fuel_per_accepted_request() {
    let mut over = Vec::new();
    for (algo, hot, asking) in [
        ("W", 12_900, 21_700),
        ("SW", 12_900, 23_400),
        ("TB", 12_900, 22_000),
        ("LB", 19_000, 21_400),
    ] {
        // One in twenty requests may lease. The others are ordinary.
        let mut hot_fuel: Vec<u64> =
            answers(&config("gateway", algo, "second", 100_000), 2_000, 500)
                .split_off(1_000)
                .iter()
                .map(|answer| answer.fuel)
                .collect();
        hot_fuel.sort_unstable();
        let rare = answers(&config("gateway", algo, "second", 100_000), 20, SECOND / 5);
        let rare_fuel = rare.iter().skip(10).map(|answer| answer.fuel).max().unwrap();
        println!("{algo}: {} of {hot} when hot, {rare_fuel} of {asking} else", hot_fuel[950]);
        if hot_fuel[950] > hot || rare_fuel > asking {
            over.push(algo);
        }
    }
    assert!(over.is_empty(), "{over:?}");
}
