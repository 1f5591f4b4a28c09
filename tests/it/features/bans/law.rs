//! The step, checked by an oracle that remembers every refusal and every ban.

use diana_policy::Ban;
use diana_policy::ban::WORDS;
use diana_policy::time::SECOND;

/// The history of one caller.
#[derive(Default)]
struct Oracle {
    /// Refusals since the last ban.
    refusals: Vec<u64>,
    until: u64,
    level: u32,
}

impl Oracle {
    fn counted(&self, now: u64, within: u64) -> usize {
        self.refusals.iter().filter(|at| now - **at < within).count()
    }

    /// The length of a ban that begins now.
    fn length(&mut self, ban: &Ban, now: u64) -> u64 {
        let quiet = (now - self.until) / ban.halve_after;
        self.level = self.level.saturating_sub(u32::try_from(quiet).unwrap_or(u32::MAX));
        let mut length = ban.period;
        (0..self.level).for_each(|_| length = (2 * length).min(ban.max));
        if length < ban.max {
            self.level += 1;
        }
        length
    }
}

fn random(rng: &mut fastrand::Rng) -> Ban {
    let period = rng.u64(100_000..10 * SECOND);
    let max = period * [1, 2, 5, 64, 1000][rng.usize(0..5)];
    Ban {
        after: [1, 2, 3, 10, 50][rng.usize(0..5)],
        within: rng.u64(100_000..10 * SECOND),
        period,
        max,
        halve_after: rng.u64(100_000..3 * max),
        is_shadow: false,
    }
}

/// A step of time: usually short, sometimes as long as a period of the ban.
fn pause(rng: &mut fastrand::Rng, ban: &Ban) -> u64 {
    match rng.u8(0..40) {
        0 => rng.u64(0..2 * ban.max),
        1 => rng.u64(0..3 * ban.halve_after),
        2..4 => rng.u64(0..2 * ban.within),
        4 => 0,
        _ => rng.u64(0..ban.within / ban.after + 2),
    }
}

#[test]
fn ban_step_agrees_with_the_oracle() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let mut begun = 0;
    for _ in 0..300 {
        let ban = random(&mut rng);
        let mut oracle = Oracle::default();
        let (mut state, mut now) = ([0; WORDS], rng.u64(0..1 << 50));
        for _ in 0..500 {
            now += pause(&mut rng, &ban);
            let begins = ban.count(&mut state, now, 1);
            if now < oracle.until {
                assert!(!begins, "a refusal by the ban itself counts");
                continue;
            }
            oracle.refusals.push(now);
            let longest = 8 * ban.within.div_ceil(7);
            let (must, may) = (oracle.counted(now, ban.within), oracle.counted(now, longest));
            assert!(begins || (must as u64) < ban.after, "{ban:?}: {must} refusals and no ban");
            assert!(!begins || may as u64 >= ban.after, "{ban:?}: a ban after {may} refusals");
            if begins {
                oracle.until = now + oracle.length(&ban, now);
                assert_eq!(Ban::until(&state), oracle.until, "{ban:?}");
                oracle.refusals.clear();
                begun += 1;
            }
        }
    }
    assert!(begun > 1000, "{begun}");
}

#[test]
fn relapses_double_and_quiet_halves() {
    let minute = 60 * SECOND;
    let ban = Ban {
        after: 1,
        within: SECOND,
        period: minute,
        max: 5 * minute,
        halve_after: 10 * minute,
        is_shadow: false,
    };
    let (mut state, mut now) = ([0; WORDS], 77 * minute);
    let mut lengths = Vec::new();
    for quiet in [0, 0, 0, 0, 9, 10, 20, 30, 0, 1000, 0] {
        now += quiet * minute;
        assert!(ban.count(&mut state, now, 1));
        lengths.push((Ban::until(&state) - now) / minute);
        now = Ban::until(&state);
    }
    assert_eq!(lengths, [1, 2, 4, 5, 5, 4, 2, 1, 2, 1, 2]);
}

#[test]
fn expired_state_decides_like_an_empty_one() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let mut forgotten = 0;
    for _ in 0..2000 {
        let ban = random(&mut rng);
        let (mut state, mut now) = ([0; WORDS], rng.u64(0..1 << 50));
        for _ in 0..rng.u64(1..30) {
            now += pause(&mut rng, &ban);
            ban.count(&mut state, now, rng.u64(1..3));
        }
        now += pause(&mut rng, &ban) * rng.u64(0..20);
        if ban.weight(&state, now) > 0 {
            continue;
        }
        forgotten += 1;
        let mut nobody = [0; WORDS];
        for _ in 0..60 {
            now += pause(&mut rng, &ban);
            assert_eq!(ban.count(&mut state, now, 1), ban.count(&mut nobody, now, 1), "{ban:?}");
            assert_eq!(ban.weight(&state, now), ban.weight(&nobody, now), "{ban:?}");
        }
    }
    assert!(forgotten > 100, "{forgotten}");
}

#[test]
fn clocks_that_step_back_end_no_ban() {
    let ban = Ban {
        after: 2,
        within: SECOND,
        period: SECOND,
        max: SECOND,
        halve_after: SECOND,
        is_shadow: false,
    };
    let (mut state, now) = ([0; WORDS], 100 * SECOND);
    assert!(!ban.count(&mut state, now, 1));
    assert!(ban.count(&mut state, now - 3 * SECOND, 1), "the count of the newest slice stands");
    let until = Ban::until(&state);
    let back = until - 2 * SECOND;
    assert!(!ban.count(&mut state, back, 9));
    assert_eq!((Ban::until(&state), ban.weight(&state, back)), (until, u64::MAX));
}
