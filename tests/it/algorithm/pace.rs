//! Clients that pace themselves by `ratelimit-policy`.

use diana_algorithm::REGISTRY;
use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use kit::store::gateway::START;
use kit::store::rule::Rule;

/// Quotas with every parameter that affects the window. A bucket with warm-up is slower on purpose.
fn quotas() -> Vec<Quota> {
    let mut quotas = Vec::new();
    for unit in [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Month] {
        for rpu in [1, 6, 7, 50, 1_000] {
            let quota = Quota::new(unit, rpu);
            let sliced = [1, 3, 7, 10, 60].map(|slices| Quota { slices: Some(slices), ..quota });
            let burst = [1, 3, 2_000].map(|burst| Quota { burst: Some(burst), ..quota });
            quotas.extend(sliced.into_iter().chain(burst));
            quotas.push(Quota { max_delay: Some(0), max_queue: Some(0), ..quota });
            quotas.push(Quota { max_delay: Some(20 * SECOND), ..quota });
        }
    }
    quotas
}

#[test]
fn client_paced_by_the_policy_header_is_never_refused() {
    for entry in REGISTRY {
        let rules = quotas().into_iter().filter_map(|quota| Rule::try_new(entry.short, quota));
        let mut tried = 0;
        for Rule { algorithm, .. } in rules {
            let (permits, window) = algorithm.properties().quota();
            let gap = window.div_ceil(permits);
            for gap in [gap, gap + 1] {
                for phase in [0, 1, gap - 1, window / 3, window - 1] {
                    let mut state = vec![0; algorithm.properties().words];
                    let mut now = START.later(phase);
                    for request in 0..3 * permits.min(1_000) + 70 {
                        let old = state.clone();
                        let decision = algorithm.step(&old, now, 0, 1, &mut state);
                        let what = (entry.short, permits, window, gap, phase);
                        assert!(decision.is_admitted(), "request {request} of {what:?}");
                        now = now.later(gap);
                    }
                }
            }
            tried += 1;
        }
        assert!(tried > 30, "{tried} of {}", entry.short);
    }
}

/// The window covers all slices that are counted together, rounded up to a microsecond.
#[test]
fn sliding_window_reports_its_unit_and_one_slice() {
    for (unit, slices, window) in [
        (Unit::Second, None, 1_100_000),
        (Unit::Second, Some(1), 2_000_000),
        (Unit::Second, Some(3), 1_333_334),
        (Unit::Minute, None, 66 * SECOND),
        (Unit::Minute, Some(60), 61 * SECOND),
        (Unit::Hour, None, 3_960 * SECOND),
    ] {
        let rule = Rule::new("SW", Quota { slices, ..Quota::new(unit, 6) });
        assert_eq!(rule.algorithm.properties().quota(), (6, window), "{slices:?} of {unit:?}");
    }
}
