//! The switch from one day to the next.

use std::collections::HashMap;

use diana_policy::Quota;
use diana_policy::decision::{Decision, Retry};
use diana_policy::time::{Now, SECOND};
use diana_store::tables::Tables;
use fastrand::Rng;

use super::{DAY, START, admits, by_day, key, open};
use kit::seed;
use kit::store::{Decided, Take};

/// The current day by the specification, with the permits of each account on it.
#[derive(Default)]
struct Oracle {
    day: Option<(u64, u64)>,
    latest: u64,
    stepped_back: bool,
    given: HashMap<u64, u64>,
}

impl Oracle {
    /// The permits of the account today, and the length of today.
    fn given(&mut self, account: u64, now: Now) -> (u64, u64) {
        let number = now.wall / DAY;
        self.stepped_back |= now.wall + SECOND < self.latest;
        self.latest = self.latest.max(now.wall);
        let lasts = |(number, began): (u64, u64), stepped_back: bool| {
            let by_wall = ((number + 1) * DAY).saturating_sub(now.wall);
            let by_mono = (began + DAY).saturating_sub(now.mono);
            if stepped_back { by_wall.min(by_mono) } else { by_wall }
        };
        let is_over = |day| lasts(day, self.stepped_back) == 0;
        if self.day.is_none_or(is_over) || self.given.is_empty() {
            (self.latest, self.stepped_back) = (now.wall, false);
            self.day = Some((number, now.mono));
            self.given.clear();
        }
        let left = self.day.map_or(0, |day| lasts(day, self.stepped_back));
        (self.given.get(&account).copied().unwrap_or(0), left)
    }

    /// Adds permits of the account today.
    fn give(&mut self, account: u64, permits: u64) {
        *self.given.entry(account).or_default() += permits;
    }
}

/// The time of the next request, usually near midnight.
fn later(now: Now, rng: &mut Rng) -> Now {
    let to_midnight = DAY - now.wall % DAY;
    let ticks = match rng.u8(0..40) {
        0 => to_midnight.saturating_sub(rng.u64(0..3 * SECOND)),
        1 => to_midnight - 1,
        2 => to_midnight,
        // The host was suspended.
        3 => rng.u64(0..5 * DAY),
        4 => rng.u64(0..DAY / 4),
        _ => rng.u64(0..SECOND / 10),
    };
    let now = now.later(ticks);
    let wall = match rng.u8(0..60) {
        0 => now.wall - rng.u64(0..SECOND),
        1 => now.wall - rng.u64(0..2 * DAY),
        2 => now.wall + rng.u64(0..2 * DAY),
        3 => now.wall - now.wall % DAY - 1,
        _ => now.wall,
    };
    Now { wall, ..now }
}

#[test]
fn daily_permits_agree_with_the_oracle() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..100 {
        let cost = rng.u64(1..4);
        let rpu = cost * rng.u64(1..8) + rng.u64(0..cost);
        let mut store = open(Quota { cost, ..by_day(rpu) }, 10_000, 100, &mut Tables::default());
        let mut oracle = Oracle::default();
        let (mut now, mut days) = (START, 0);
        for _ in 0..3_000 {
            let before = now.wall / DAY;
            now = later(now, &mut rng);
            days += u64::from(now.wall / DAY != before);
            let account = rng.u64(0..20);
            let (given, lasts) = oracle.given(account, now);
            let mut reservation = store.checked(key(account).into(), cost, now);
            let decision = reservation.decision();
            if given + cost <= rpu {
                assert_eq!(decision, Decision::NOW, "{given} given at {now:?}");
                if rng.u8(0..4) > 0 {
                    store.charged(&mut reservation, 0);
                    oracle.give(account, cost);
                }
            } else {
                let retry = Retry::After(lasts);
                assert_eq!(decision, Decision::Refuse { retry }, "{given} given at {now:?}");
            }
            let (given, _) = oracle.given(account, now);
            let left = store.remaining(&reservation).map(|it| it.permits).unwrap();
            assert!(left <= rpu - given && left / cost == (rpu - given) / cost, "{left} left");
        }
        assert!(days > 100, "{days}");
    }
}

#[test]
fn overfull_filter_admits_no_account_beyond_its_limit() {
    let mut rng = Rng::with_seed(seed::next());
    let mut store = open(by_day(3), 1_000, 10_000, &mut Tables::default());
    for day in 0..20 {
        let mut given = vec![0; 2_000];
        // Twice the configured number.
        for _ in 0..20_000 {
            let account = rng.usize(0..given.len());
            let now = START.later(day * DAY + rng.u64(0..DAY / 2));
            given[account] += u64::from(admits(&mut *store, account as u64, now));
        }
        assert!(given.iter().all(|given| *given <= 3));
        let full = given.iter().filter(|given| **given == 3).count();
        assert!((1_400..=2_000).contains(&full), "{full}");
    }
}

/// The clock of the host is slewed by up to 500 millionths, or a leap second is smeared over a day.
#[test]
fn clock_that_lags_a_little_ends_no_day_early() {
    let mut store = open(by_day(1), 100, 1_000, &mut Tables::default());
    let midnight = Now { mono: 0, wall: 20_000 * DAY };
    assert!(admits(&mut *store, 1, midnight));
    for second in 1..86_400 {
        let now = midnight.later(second * SECOND);
        let slewed = Now { mono: now.mono + second * 500, ..now };
        assert!(!admits(&mut *store, 1, slewed), "after {second} s");
    }
    assert!(admits(&mut *store, 1, midnight.later(DAY)));
}
