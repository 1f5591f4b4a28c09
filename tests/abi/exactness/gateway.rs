//! Rules that several workers count together. `tests/sim` checks their bounds; this file checks `retry-after`.

use super::rule::{MINUTE, Rule, SECOND};
use host::Host;
use host::request::Request;

const WORKERS: usize = 4;

/// Also when the refusal is one that the worker remembers, and when others hold permits.
#[test]
fn whoever_comes_back_when_he_was_told_to_is_admitted() {
    for (seed, rule) in (930..).zip([
        Rule::new("W", MINUTE, 20),
        Rule::new("SW", MINUTE, 20),
        Rule::new("TB", MINUTE, 20).cost(2),
    ]) {
        let rule = rule.gateway();
        let mut proxy = Host::new(seed).start_proxy(WORKERS, &rule.config()).unwrap();
        let request = Request::get("/").header("x-device-id", "ann");
        for worker in (0..WORKERS).cycle().take(60) {
            proxy.workers[worker].request(&request);
            proxy.run(20_000);
        }
        proxy.run(SECOND);
        for times in [1, 2, 7] {
            let mut told = 0;
            for _ in 0..times {
                let answer = proxy.workers[0].request(&request);
                told = answer.retry_after().unwrap_or_else(|| panic!("{rule:?}: {answer:?}"));
                proxy.run(told.min(1) * 100_000);
            }
            proxy.run(told * SECOND - 100_000);
            assert!(proxy.workers[1].request(&request).is_admitted(), "{rule:?}: {told} s");
            while proxy.workers[2].request(&request).is_admitted() {}
        }
    }
}
