//! What each algorithm promises, held against an oracle that remembers every admission.

use diana::algorithm::Entry;
use diana::decision::Decision;
use diana::time::Now;
use fastrand::Rng;

use super::case::Case;
use super::stream;

/// An admission: when it was decided, when it leaves on the monotonic clock, and its permits.
struct Admission {
    at: Now,
    leaves: u64,
    cost: u64,
}

/// Follows one caller through random arrivals and checks every decision.
pub fn holds(entry: &Entry, case: &Case, rng: &mut Rng) {
    let mut state = vec![0; case.algorithm.words()];
    let mut past: Vec<Admission> = Vec::new();
    for (now, cost) in stream::random(case, rng, 200) {
        let mut new = state.clone();
        let decision = case.algorithm.step(&state, now, cost, &mut new);
        let fits = fits(entry.short, case, &past, now, cost);
        match decision {
            Decision::Admit { wait } => {
                assert_ne!(fits, Some(false), "{} admitted too much at {now:?}", entry.short);
                past.push(Admission { at: now, leaves: now.mono + wait, cost });
                state = new;
            }
            Decision::Refuse { .. } => {
                assert_ne!(fits, Some(true), "{} refused what fits at {now:?}", entry.short);
            }
        }
    }
}

/// Whether one more request fits beside all that was admitted. Of a sliding window only "it does
/// not fit" is certain: slices make it stingier than the bound.
fn fits(short: &str, case: &Case, past: &[Admission], now: Now, cost: u64) -> Option<bool> {
    let quota = &case.quota;
    let (rpu, unit) = (u128::from(quota.rpu), u128::from(quota.period()));
    let cost = u128::from(cost);
    match short {
        "W" => {
            let local = |now: Now| now.wall.saturating_add_signed(quota.zone * 1_000_000);
            let window = |now: Now| local(now) / quota.period();
            let same = past.iter().filter(|old| window(old.at) == window(now));
            Some(same.map(|old| u128::from(old.cost)).sum::<u128>() + cost <= rpu)
        }
        "SW" => {
            let recent = past.iter().filter(|old| old.at.mono + quota.period() > now.mono);
            let sum = recent.map(|old| u128::from(old.cost)).sum::<u128>() + cost;
            (sum > rpu).then_some(false)
        }
        "TB" => {
            let burst =
                u128::from(if quota.rpu == 0 { 0 } else { quota.burst.unwrap_or(quota.rpu) });
            let mut sum = cost;
            let mut fits = sum <= burst;
            for old in past.iter().rev() {
                sum += u128::from(old.cost);
                let span = u128::from(now.mono - old.at.mono);
                fits &= sum * unit <= burst * unit + rpu * span;
            }
            Some(fits)
        }
        "LB" => {
            if rpu == 0 {
                return Some(false);
            }
            // The slot in permits times ticks from now: behind everybody who is still ahead.
            let mut owed: u128 = 0;
            let mut last = 0;
            for old in past {
                owed = owed.saturating_sub(u128::from(old.at.mono - last) * rpu);
                last = old.at.mono;
                let slot = u128::from(old.at.mono) * rpu + owed;
                assert_eq!(u128::from(old.leaves), slot.div_ceil(rpu), "not its slot");
                owed += u128::from(old.cost) * unit;
            }
            owed = owed.saturating_sub(u128::from(now.mono - last) * rpu);
            let queue = u128::from(quota.max_queue.unwrap_or(quota.rpu));
            Some(owed <= queue * unit && owed <= 1_000_000 * rpu)
        }
        other => panic!("state here what `{other}` promises"),
    }
}
