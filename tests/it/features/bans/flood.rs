//! A flood of addresses does not displace banned callers.

use std::rc::Rc;

use diana_policy::key::Key;
use diana_policy::time::SECOND;
use diana_policy::{Ban, Scope};
use kit::fake::FakeSharedData;

use super::{Worker, key};

const BAN: Ban = Ban {
    after: 10,
    within: 60 * SECOND,
    period: 600 * SECOND,
    max: 600 * SECOND,
    halve_after: 1,
    is_shadow: false,
};

/// The configured number of callers.
const KEYS: usize = 10_000;

const SCOPES: [Scope; 2] = [Scope::Local, Scope::Gateway];

fn open(scope: Scope, keys: usize) -> Worker {
    Worker::of(BAN, scope, keys, &Rc::<FakeSharedData>::default())
}

/// Bans this number of new callers, and returns them with the ends of their bans.
fn banned(bans: &mut Worker, rng: &mut fastrand::Rng, number: usize) -> Vec<(Key, u64)> {
    let ban = |n| {
        let (key, now) = (key(rng), n as u64 * 100);
        bans.refused_times(BAN.after, key, now);
        let left = bans.left(key, now);
        assert_eq!(left, BAN.period, "{n}");
        (key, now + left)
    };
    (0..number).map(ban).collect()
}

#[test]
fn million_new_addresses_displace_no_ban() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for scope in SCOPES {
        for refusals in [1, BAN.after - 1, BAN.after] {
            let mut bans = open(scope, KEYS);
            let earlier = banned(&mut bans, &mut rng, KEYS / 4);
            let now = SECOND;
            for _ in 0..1_000_000 / refusals {
                let new = key(&mut rng);
                bans.refused_times(refusals, new, now);
            }
            for (key, until) in earlier {
                assert_eq!(bans.left(key, now), until - now, "{scope:?}, {refusals} each");
                assert_eq!(bans.left(key, until), 0);
            }
        }
    }
}

#[test]
fn frequent_offender_is_banned_during_a_flood() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for scope in SCOPES {
        let mut bans = open(scope, KEYS);
        (0..20 * KEYS).for_each(|_| bans.refused(key(&mut rng), SECOND));
        let often: Vec<Key> = (0..100).map(|_| key(&mut rng)).collect();
        for round in 0..2 * BAN.after {
            for key in &often {
                if bans.left(*key, SECOND) == 0 {
                    bans.refused(*key, SECOND);
                }
            }
            (0..KEYS / 100).for_each(|_| bans.refused(key(&mut rng), SECOND + round));
            bans.maintain(SECOND);
        }
        // A new caller with equally few refusals may be displaced by another one.
        let banned = often.iter().filter(|key| bans.left(**key, SECOND) > 0).count();
        assert!(banned >= 95, "{scope:?}: {banned}");
    }
}

/// Sets do not fill evenly, and still hardly any caller is lost up to the configured number.
#[test]
fn sets_hold_nearly_the_configured_callers() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for scope in SCOPES {
        let mut bans = open(scope, KEYS);
        let callers: Vec<Key> = (0..KEYS).map(|_| key(&mut rng)).collect();
        for _ in 0..BAN.after {
            callers.iter().for_each(|key| bans.refused(*key, SECOND));
        }
        bans.maintain(SECOND);
        let banned = callers.iter().filter(|key| bans.left(**key, SECOND) > 0).count();
        assert!(banned > KEYS * 98 / 100, "{scope:?}: {banned}");
    }
}

#[test]
fn excess_bans_displace_no_ban() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for scope in SCOPES {
        let mut bans = open(scope, KEYS);
        let mut begun = Vec::new();
        for _ in 0..4 * KEYS {
            let key = key(&mut rng);
            bans.refused_times(BAN.after, key, 0);
            if bans.left(key, 0) > 0 {
                begun.push(key);
            }
        }
        bans.maintain(0);
        assert!(begun.len() > KEYS && begun.len() < 3 * KEYS, "{scope:?}: {}", begun.len());
        assert_eq!(bans.bans.begun, begun.len() as u64);
        assert!(begun.iter().all(|key| bans.left(*key, 0) == BAN.period), "{scope:?}");
    }
}

/// The fixed capacity of a set, for any callers.
#[test]
fn set_holds_sixteen_callers() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for scope in SCOPES {
        let mut bans = open(scope, 1);
        let callers: Vec<Key> = (0..16).map(|_| key(&mut rng)).collect();
        for caller in &callers {
            bans.refused_times(BAN.after - 1, *caller, SECOND);
        }
        for caller in &callers {
            bans.refused(*caller, SECOND);
            bans.maintain(SECOND);
        }
        assert!(callers.iter().all(|it| bans.left(*it, SECOND) == BAN.period), "{scope:?}");
    }
}
