//! Equivalence of two states.

use diana_algorithm::Algorithm;
use diana_policy::time::Now;

/// Compares the decisions from both states about the same arrivals.
pub fn decide(algorithm: &dyn Algorithm, a: &[u64], b: &[u64], arrivals: Vec<(Now, u64)>) {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    for (now, cost) in arrivals {
        let [left_a, left_b] = [&a, &b].map(|state| algorithm.balance(state, now).remaining);
        assert_eq!(left_a, left_b, "at {now:?}");
        let (mut charged_a, mut charged_b) = (a.clone(), b.clone());
        let decision = algorithm.step(&a, now, 0, cost, &mut charged_a);
        assert_eq!(decision, algorithm.step(&b, now, 0, cost, &mut charged_b), "at {now:?}");
        (a, b) = (charged_a, charged_b);
    }
}
