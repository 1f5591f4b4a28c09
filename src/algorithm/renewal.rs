//! When more permits are left, as clients are told.

use super::Algorithm;
use diana_policy::time::{Micros, Now};

/// Ticks from `now` until more permits are left than then, if nobody else comes; nothing if none are used. What is held
/// by requests may come back with any of them, which is one tick.
pub fn renewal(algorithm: &dyn Algorithm, state: &[u64], now: Now) -> Option<Micros> {
    let until_all = algorithm.expires(state, now).saturating_sub(now.mono);
    match until_all {
        0 => return None,
        _ if algorithm.is_held() => return Some(1),
        _ => {}
    }
    let left = algorithm.remaining(state, now);
    let more_in = |ticks: Micros| algorithm.remaining(state, now.later(ticks)) > left;
    let (mut none_yet, mut enough) = (0, until_all);
    // Windows end as a whole, and buckets give back evenly: mostly there is little to be searched then.
    let (quota, window) = algorithm.policy();
    let apart = window.div_ceil(quota.max(1));
    if !more_in(until_all - 1) {
        none_yet = until_all - 1;
    } else if apart < until_all && more_in(apart) {
        enough = apart;
    }
    while enough - none_yet > 1 {
        let middle = none_yet + (enough - none_yet) / 2;
        *(if more_in(middle) { &mut enough } else { &mut none_yet }) = middle;
    }
    more_in(enough).then_some(enough)
}

/// The same at the latest, where nobody knows the state after a request of so many permits that leaves at once: as if
/// it were the only one.
pub fn latest_renewal(algorithm: &dyn Algorithm, cost: u64, now: Now) -> Option<Micros> {
    let nobody = vec![0; algorithm.words()];
    let mut charged = nobody.clone();
    algorithm.step(&nobody, now, cost, &mut charged);
    renewal(algorithm, &charged, now)
}
