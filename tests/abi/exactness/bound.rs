//! What a caller may have been admitted at the very most, found by brute force from a memory of
//! every admission.

use super::rule::Rule;
use host::clock::Clock;

/// When a request was admitted, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Admission {
    pub wall: u64,
    pub monotonic: u64,
}

impl Admission {
    pub fn at(clock: &Clock) -> Admission {
        Admission { wall: clock.wall(), monotonic: clock.monotonic() }
    }
}

/// Panics if `admissions` of one caller, in order, are more than `rule` allows.
pub fn check(rule: &Rule, admissions: &[Admission]) {
    match rule.algo {
        "W" => aligned_windows(rule, admissions),
        "SW" => every_interval(rule, admissions),
        "TB" => every_pair(rule, admissions, rule.burst.unwrap_or(rule.rpu)),
        other => panic!("no bound for {other}"),
    }
}

/// At most `rpu` in each window of local time.
fn aligned_windows(rule: &Rule, admissions: &[Admission]) {
    let window = |admission: &Admission| rule.window(admission.wall);
    for group in admissions.chunk_by(|a, b| window(a) == window(b)) {
        let permits = group.len() as u64 * rule.cost;
        assert!(permits <= rule.rpu, "{rule:?}: {permits} in the window of {:?}", group[0]);
    }
}

/// At most `rpu` in each [t, t + unit). It is enough to look where an admission begins it.
fn every_interval(rule: &Rule, admissions: &[Admission]) {
    for (index, first) in admissions.iter().enumerate() {
        let inside = admissions[index..]
            .iter()
            .take_while(|admission| admission.monotonic < first.monotonic + rule.unit);
        let permits = inside.count() as u64 * rule.cost;
        assert!(permits <= rule.rpu, "{rule:?}: {permits} within a unit of {first:?}");
    }
}

/// At most `burst + rpu · t / unit` in any t, both ends included.
fn every_pair(rule: &Rule, admissions: &[Admission], burst: u64) {
    for (index, first) in admissions.iter().enumerate() {
        for (more, last) in admissions[index..].iter().enumerate() {
            let permits = (more as u128 + 1) * u128::from(rule.cost);
            let span = u128::from(last.monotonic - first.monotonic);
            let allowed = u128::from(burst) * u128::from(rule.unit) + u128::from(rule.rpu) * span;
            assert!(
                permits * u128::from(rule.unit) <= allowed,
                "{rule:?}: {permits} from {first:?} to {last:?}"
            );
        }
    }
}
