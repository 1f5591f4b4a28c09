//! Properties of bans in every scope.

use diana_policy::key::Key;
use diana_policy::time::SECOND;

use super::{BAN, CALLER, KEYS, OTHER, SCOPES, TICK, Worker};

#[test]
fn refusals_of_a_shared_cache_slot_are_counted_once() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for scope in SCOPES {
        let mut workers = Worker::several(scope, 2);
        // Two callers share each line of a worker.
        let caller = |n: u64| Key { hash: n % 60 + n / 60 * KEYS as u64, second_hash: n };
        let mut refused = [0; 120];
        let mut now = SECOND;
        for n in 0..120 * BAN.after / 2 {
            now += rng.u64(0..SECOND / 50);
            let (number, worker) = (rng.usize(0..120), rng.usize(0..workers.len()));
            if n % 20 == 0 {
                workers.iter_mut().for_each(|worker| worker.maintain(now));
            }
            workers[worker].refused(caller(number as u64), now);
            refused[number] += 1;
        }
        workers.iter_mut().for_each(|worker| worker.maintain(now));
        now += SECOND;
        for (number, refused) in (0..).zip(refused) {
            for worker in &mut workers {
                let is_banned = worker.left(caller(number), now) > 0;
                assert_eq!(is_banned, refused >= BAN.after, "{scope:?}: {refused}");
            }
        }
    }
}

/// Workers report refusals on their timers, and may cache a ban that is over.
#[test]
fn refusals_before_a_reset_do_not_count() {
    for scope in SCOPES {
        let mut workers = Worker::several(scope, 2);
        let last = workers.len() - 1;
        let now = SECOND;
        workers[0].refused_times(BAN.after, CALLER, now);
        workers[last].refused_times(BAN.after - 1, CALLER, now);
        assert!(workers[0].set(CALLER, 0, now + TICK));
        workers[last].refused(CALLER, now + TICK);
        for worker in &mut workers {
            worker.maintain(now + 2 * TICK);
            assert_eq!(worker.left(CALLER, now + 2 * TICK), 0, "{scope:?}");
        }
        // After a second her earlier refusals do not count.
        let later = now + TICK + SECOND;
        for number in 1..=BAN.after {
            workers[last].refused(CALLER, later);
            workers[last].maintain(later);
            let left = if number < BAN.after { 0 } else { BAN.period };
            assert_eq!(workers[last].left(CALLER, later), left, "{scope:?}: after {number}");
        }
        // An operator's ban is not shortened by the reset, and later refusals count.
        assert!(workers[0].set(CALLER, 0, later) && workers[0].set(CALLER, SECOND, later + 1));
        let end = later + 1 + SECOND;
        assert_eq!(workers[0].left(CALLER, end - 1), 1, "{scope:?}");
        workers[0].refused_times(BAN.after, CALLER, end);
        assert_eq!(workers[0].left(CALLER, end), BAN.period, "{scope:?}");
    }
}

#[test]
fn operators_ban_holds_in_all_workers_until_reset() {
    for scope in SCOPES {
        let mut workers = Worker::several(scope, 2);
        let mut now = 7 * SECOND;
        let lefts = |workers: &mut [Worker], now, expected| {
            for worker in workers {
                assert_eq!(
                    (worker.left(CALLER, now), worker.left(OTHER, now)),
                    (expected, 0),
                    "{scope:?}"
                );
            }
        };
        lefts(&mut workers, now, 0);
        assert!(workers[0].set(CALLER, BAN.period, now));
        now += TICK;
        lefts(&mut workers, now, BAN.period - TICK);
        // Refusals of a banned caller neither extend its ban nor count later.
        workers[0].refused_times(BAN.after, CALLER, now);
        assert!(workers[0].set(CALLER, 0, now));
        now += SECOND;
        lefts(&mut workers, now, 0);
        workers[0].refused_times(BAN.after - 1, CALLER, now);
        workers[0].maintain(now);
        lefts(&mut workers, now, 0);
        workers[0].refused(CALLER, now);
        workers[0].maintain(now);
        assert_eq!(workers[0].left(CALLER, now), BAN.period, "{scope:?}");
        // An operator's ban does not affect the length of the next one.
        assert!(workers[0].set(OTHER, BAN.period, now));
        now += BAN.period;
        workers[0].refused_times(BAN.after, OTHER, now);
        assert_eq!(workers[0].left(OTHER, now), BAN.period, "{scope:?}");
    }
}

#[test]
fn ban_of_another_worker_replaces_cached_absence() {
    for scope in SCOPES {
        let mut workers = Worker::several(scope, 2);
        let last = workers.len() - 1;
        workers[last].refused_times(BAN.after, OTHER, SECOND);
        // With a ban of another caller, the first worker caches that she has none.
        let of_both =
            |worker: &mut Worker, now| (worker.left(OTHER, now), worker.left(CALLER, now));
        assert_eq!(of_both(&mut workers[0], SECOND), (BAN.period, 0), "{scope:?}");
        workers[last].refused_times(BAN.after, CALLER, SECOND);
        let left = BAN.period - TICK;
        assert_eq!(of_both(&mut workers[0], SECOND + TICK), (left, left), "{scope:?}");
    }
}
