//! The time until more permits are available, as reported to clients.

use diana_algorithm::{Balance, REGISTRY, latest_renewal};
use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use fastrand::Rng;
use kit::laws::case::Case;
use kit::laws::stream;
use kit::seed;
use kit::store::gateway::START;
use kit::store::rule::Rule;

/// One tick earlier there are no more permits. If the state is unknown, the reported time is no
/// earlier.
#[test]
fn permits_renew_at_the_reported_time() {
    let mut rng = Rng::with_seed(seed::next());
    let mut seen = 0;
    for entry in REGISTRY {
        for _ in 0..400 {
            let case = Case::random(entry, &mut rng);
            let algorithm = &*case.algorithm;
            let mut state = vec![0; algorithm.properties().words];
            for (now, cost) in stream::random(&case, &mut rng, 40) {
                let mut new = state.clone();
                let decision = algorithm.step(&state, now, 0, cost, &mut new);
                if decision.is_admitted() {
                    state = new;
                }
                let Balance { remaining: left, renewal, .. } = algorithm.balance(&state, now);
                let Some(renewal) = renewal else {
                    assert_eq!(left, algorithm.balance(&vec![0; state.len()], now).remaining);
                    continue;
                };
                seen += 1;
                assert!(algorithm.balance(&state, now.later(renewal)).remaining > left);
                assert_eq!(algorithm.balance(&state, now.later(renewal - 1)).remaining, left);
                if decision.is_admitted() {
                    let latest = latest_renewal(algorithm, cost, now).unwrap() + decision.wait();
                    assert!(latest >= renewal, "{latest} < {renewal}: {cost} of {:?}", case.quota);
                }
            }
        }
    }
    assert!(seen > 1_000, "{seen}");
}

#[test]
fn every_algorithm_reports_its_renewal() {
    let quota = Quota::new(Unit::Second, 10);
    for (short, quota, renewal) in [
        ("W", quota, SECOND),
        ("SW", quota, SECOND + SECOND / 10),
        ("TB", quota, SECOND / 10),
        ("LB", quota, SECOND / 10),
    ] {
        let algorithm = Rule::new(short, quota).algorithm;
        let begin = START.later(SECOND - START.wall % SECOND);
        let nobody = vec![0; algorithm.properties().words];
        assert_eq!(algorithm.balance(&nobody, begin).renewal, None, "{short}");
        let latest = latest_renewal(&*algorithm, 1, begin).unwrap();
        assert!(latest.abs_diff(renewal) <= SECOND / 10, "{short}: {latest}");
    }
    let nothing = Rule::new("TB", Quota::new(Unit::Second, 0)).algorithm;
    assert_eq!(latest_renewal(&*nothing, 1, START), None);
}
