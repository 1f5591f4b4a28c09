//! The bound of each algorithm, checked by an oracle that remembers every admission.

use diana_algorithm::Entry;
use diana_algorithm::calendar::Windows;
use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::time::Now;
use fastrand::Rng;

use super::case::Case;
use super::stream;

/// An admission: the instant of the decision, the instant at which it leaves on the monotonic
/// clock, and its permits.
#[derive(Clone)]
pub struct Admission {
    pub at: Now,
    pub leaves: u64,
    pub cost: u64,
}

/// The required decision about a request.
#[derive(Debug, PartialEq)]
pub enum Promise {
    Admitted {
        wait: u64,
    },
    Refused,
    /// The oracle accepts both.
    Either,
}

/// Checks every decision about random requests of one caller.
pub fn holds(entry: &Entry, case: &Case, rng: &mut Rng) {
    let mut state = vec![0; case.algorithm.properties().words];
    let mut past: Vec<Admission> = Vec::new();
    for (now, cost) in stream::random(case, rng, 200) {
        let mut new = state.clone();
        let decision = case.algorithm.step(&state, now, 0, cost, &mut new);
        let promise = promise(entry.short, &case.quota, &past, now, cost);
        let seen = match decision {
            Decision::Admit { wait } => {
                past.push(Admission { at: now, leaves: now.mono + wait, cost });
                state = new;
                Promise::Admitted { wait }
            }
            Decision::Refuse { .. } => Promise::Refused,
        };
        assert!(promise == Promise::Either || promise == seen, "{seen:?}, {promise:?} at {now:?}");
    }
    kept(entry.short, &case.quota, past);
}

/// The required decision about the next request after `past`.
pub fn promise(short: &str, quota: &Quota, past: &[Admission], now: Now, cost: u64) -> Promise {
    let (rpu, unit) = (u128::from(quota.rpu), u128::from(quota.period()));
    let cost = u128::from(cost);
    let at_once = |fits| if fits { Promise::Admitted { wait: 0 } } else { Promise::Refused };
    // The decision for a request with its turn `ahead` of now, in ticks times `rpu`.
    let held = |ahead: u128, longest: u64| {
        let queue = u128::from(quota.max_queue.unwrap_or(quota.rpu)) * unit;
        match u64::try_from(ahead.div_ceil(rpu.max(1))) {
            Ok(wait) if rpu > 0 && wait <= longest && ahead <= queue => Promise::Admitted { wait },
            _ => Promise::Refused,
        }
    };
    if quota.warm_up.is_some() {
        return Promise::Either;
    }
    match short {
        "W" => {
            let window = |now: Now| Windows::of(quota).at(now.wall);
            let same = past.iter().filter(|old| window(old.at) == window(now));
            at_once(same.map(|old| u128::from(old.cost)).sum::<u128>() + cost <= rpu)
        }
        "SW" => {
            let recent = past.iter().filter(|old| old.at.mono + quota.period() > now.mono);
            let sum = recent.map(|old| u128::from(old.cost)).sum::<u128>() + cost;
            // Slices may refuse more than the bound requires.
            if sum > rpu { Promise::Refused } else { Promise::Either }
        }
        "TB" => {
            let burst = u128::from(quota.burst.unwrap_or(quota.rpu));
            if cost > burst {
                return Promise::Refused;
            }
            // Maximum over all earlier arrivals: the permits since that arrival, minus those in the
            // bucket at that time.
            let (mut ahead, mut sum) = (0, cost);
            for old in past.iter().rev() {
                sum += u128::from(old.cost);
                let gone = burst * unit + rpu * u128::from(now.mono - old.at.mono);
                ahead = ahead.max((sum * unit).saturating_sub(gone));
            }
            held(ahead, max_delay(short, quota))
        }
        "LB" => {
            // The debt of all requests that have not drained.
            let mut owed: u128 = 0;
            let mut last = 0;
            for old in past {
                owed = owed.saturating_sub(u128::from(old.at.mono - last) * rpu);
                last = old.at.mono;
                owed += u128::from(old.cost) * unit;
            }
            owed = owed.saturating_sub(u128::from(now.mono - last) * rpu);
            held(owed, max_delay(short, quota))
        }
        other => panic!("state here what `{other}` promises"),
    }
}

/// Maximum delay of a rule in ticks. A rule without delay counts requests at the decision.
pub fn max_delay(short: &str, quota: &Quota) -> u64 {
    quota.max_delay.unwrap_or(if short == "LB" { 1_000_000 } else { 0 })
}

/// Checks the departures of a rule with a rate against its bound in all intervals. Turns are
/// rounded up to a tick, so an interval may appear one tick too short.
pub fn kept(short: &str, quota: &Quota, mut past: Vec<Admission>) {
    let burst = match short {
        _ if quota.warm_up.is_some() => 0,
        "TB" => quota.burst.unwrap_or(quota.rpu),
        "LB" => 0,
        _ => return,
    };
    let (rpu, unit) = (u128::from(quota.rpu), u128::from(quota.period()));
    past.sort_by_key(|old| old.leaves);
    for (number, first) in past.iter().enumerate() {
        let mut sum = 0;
        for last in &past[number..] {
            // A slot is as long as the cost of its request, and the last one may exceed the
            // interval.
            let fits = if burst == 0 { 0 } else { u128::from(last.cost) };
            let span = u128::from(last.leaves - first.leaves) + 1;
            assert!(
                (sum + fits) * unit < u128::from(burst) * unit + rpu * span,
                "{short} let too much leave from {} to {}",
                first.leaves,
                last.leaves
            );
            sum += u128::from(last.cost);
        }
    }
}
