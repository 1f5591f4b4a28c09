//! Shared data that is lost, corrupted, or changed by another worker before each write.

use std::rc::Rc;

use diana_policy::Quota;
use diana_policy::decision::Decision;
use diana_policy::port::SharedData;
use diana_policy::time::{SECOND, Unit};
use fastrand::Rng;

use super::races::{gap, rounds};
use kit::store::Take;
use kit::store::gateway::{Gateway, START, key, open};
use kit::store::rule::Rule;

/// Rules whose permits do not return during a test.
fn lasting(short: &str) -> Rule {
    let quota = Quota::new(Unit::Day, 1000);
    Rule::new(short, Quota { burst: (short == "TB").then_some(1000), ..quota })
}

#[test]
fn lost_data_grants_at_most_one_fresh_limit() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for short in ["W", "SW", "TB"] {
        let gateway = Gateway::new(lasting(short), 100, 4);
        let mut losses = 0;
        for _ in 0..30_000 {
            gateway.wait(rng.u64(0..2000));
            gateway.request(rng.usize(0..4), 1);
            if rng.u16(0..1000) == 0 {
                gateway.data.clear();
                losses += 1;
            }
        }
        // A bucket regains the permits of a minute.
        let given = gateway.past(1).len() as u64;
        assert!(given <= 1001 * (losses + 1), "{short}: {given} after {losses} losses");
        assert!(given >= 1000);
    }
}

/// Corrupts a value.
fn garbage(old: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = old.to_vec();
    match rng.u8(0..6) {
        0 => bytes.clear(),
        1 => bytes.truncate(rng.usize(0..bytes.len().max(1))),
        2 => bytes.extend((0..rng.usize(1..40)).map(|_| rng.u8(..))),
        3 => bytes = (0..rng.usize(0..300)).map(|_| rng.u8(..)).collect(),
        4 => bytes.iter_mut().skip(8).for_each(|byte| *byte = rng.u8(..)),
        _ => {
            if let Some(byte) = bytes.get_mut(rng.usize(0..old.len().max(1))) {
                *byte ^= 1 << rng.u8(0..8);
            }
        }
    }
    bytes
}

#[test]
fn corrupt_bytes_cause_no_panic() {
    let mut corrupt = 0;
    rounds(100, |rule, rng| {
        let gateway = Gateway::new(rule, rng.usize(1..40), 2);
        let many = rng.u64(1..100);
        for _ in 0..200 {
            gateway.wait(gap(&gateway.rule, rng));
            gateway.request(rng.usize(0..2), rng.u64(0..many));
            let keys = gateway.data.keys();
            if !keys.is_empty() && rng.u8(0..8) == 0 {
                let name = &keys[rng.usize(0..keys.len())];
                let (old, _) = gateway.data.get(name).unwrap();
                gateway.data.set(name, &garbage(&old, rng));
            }
        }
        corrupt += gateway.traffic(0).corrupt.get();
    });
    assert!(corrupt > 0);
}

#[test]
fn bytes_of_another_layout_count_as_empty() {
    let gateway = Gateway::new(lasting("W"), 1, 1);
    let traffic = gateway.traffic(0);
    assert!(gateway.request(0, 1).unwrap().is_admitted());
    let keys = gateway.data.keys();
    let slot = keys.iter().find(|name| !name.ends_with("slots")).unwrap();
    let (bytes, _) = gateway.data.get(slot).unwrap();
    let one_word_more = [&bytes[..], &[0; 8]].concat();
    let other_words = [&bytes[..6], &[9], &bytes[7..]].concat();
    let other_mark = [&[0], &bytes[1..]].concat();
    for (number, corrupt) in [one_word_more, other_words, other_mark].into_iter().enumerate() {
        gateway.data.set(slot, &corrupt);
        assert_eq!(gateway.left(1), 1000);
        gateway.pass(SECOND);
        assert!(gateway.request(0, 1).unwrap().is_admitted());
        assert_eq!(traffic.corrupt.get(), number as u64 + 1);
        assert_eq!(gateway.left(1), 999, "and it is replaced");
    }
}

/// As after a change of the rule that keeps its fingerprint. Some rows of one have the length of
/// the other.
#[test]
fn state_of_another_length_counts_as_empty() {
    let gateway = Gateway::new(lasting("W"), 1, 1);
    let width = |rule: &Rule| 2 + rule.algorithm.properties().words;
    let sliding = |slices| Quota { slices: Some(slices), ..Quota::new(Unit::Day, 1000) };
    let longer = (1..60).map(|slices| Rule::new("SW", sliding(slices)));
    let longer = longer
        .filter(|rule| width(rule) > width(&gateway.rule))
        .find(|rule| width(rule) % width(&gateway.rule) == 0);
    let longer = longer.expect("a multiple");
    for caller in 0..width(&longer) / width(&gateway.rule) {
        assert!(gateway.admits(caller as u64));
    }
    let mut worker = open(&longer, 1, gateway.data.clone());
    let reservation = worker.store.checked(key(0).into(), 1, START);
    assert_eq!(
        (worker.store.remaining(&reservation).map(|it| it.permits), worker.traffic.corrupt.get()),
        (Some(1000), 1)
    );
}

#[test]
fn impossible_watermark_is_ignored() {
    for short in ["W", "SW", "TB"] {
        for (mono, wall) in
            [(u64::MAX, 0), (0, u64::MAX), (START.mono, u64::MAX), (1 << 60, 1 << 60)]
        {
            let gateway = Gateway::new(Rule::new(short, Quota::new(Unit::Minute, 10)), 1, 1);
            gateway.request(0, 2);
            let keys = gateway.data.keys();
            let slot = keys.iter().find(|name| !name.ends_with("slots")).unwrap();
            let (mut bytes, _) = gateway.data.get(slot).unwrap();
            bytes[8..24].copy_from_slice([mono, wall].map(u64::to_le_bytes).as_flattened());
            gateway.data.set(slot, &bytes);
            let admitted =
                || (0..50).filter(|_| gateway.request(0, 1).unwrap().is_admitted()).count();
            assert_eq!(admitted(), 10, "{short}, as of {mono} and {wall}");
            gateway.wait(120 * SECOND);
            assert_eq!(admitted(), 10, "{short}, as of {mono} and {wall}, two minutes later");
        }
    }
}

#[test]
fn foreign_number_of_slots_is_bounded() {
    let gateway = Gateway::new(lasting("W"), 1000, 1);
    gateway.request(0, 1);
    let keys = gateway.data.keys();
    let count = keys.iter().find(|name| name.ends_with("slots")).unwrap();
    for corrupt in [u64::MAX.to_le_bytes().to_vec(), vec![0; 8], vec![7; 9], Vec::new()] {
        gateway.data.clear();
        gateway.data.set(count, &corrupt);
        gateway.crash(0);
        gateway.request(0, 1);
        let names = gateway.data.keys();
        let slot = names.iter().find(|name| *name != count).unwrap();
        let slots = slot.rsplit(['/', '.']).nth(1).unwrap();
        // The maximum, or the number that a worker computes.
        let agreed = if corrupt == [0xff; 8] { 1 << 20 } else { 1000_u64.div_ceil(16) };
        assert_eq!(u64::from_str_radix(slots, 16).unwrap(), agreed, "{slot}");
    }
}

#[test]
fn request_that_always_loses_the_race_is_refused() {
    for keys in [1000, 1] {
        let gateway = Rc::new(Gateway::new(lasting("W"), keys, 1));
        // Enough for new callers to share a bucket if there is only one slot.
        (10..42).for_each(|caller| _ = gateway.request(0, caller));
        let traffic = gateway.traffic(0);
        let (conflicts, writes) = (traffic.conflicts.get(), traffic.writes.get());
        *gateway.data.before_swap.borrow_mut() = Some(Box::new(|data, name| {
            let old = data.get(name).map(|(bytes, _)| bytes).unwrap_or_default();
            data.set(name, &old);
        }));
        assert_eq!(gateway.request(0, 1), Some(Decision::retry(1)));
        assert_eq!(traffic.exhausted.get(), 1);
        assert_eq!(traffic.conflicts.get() - conflicts, 1000);
        assert_eq!(traffic.writes.get(), writes);
    }
}

#[test]
fn request_without_number_of_slots_is_refused() {
    let gateway = Gateway::new(lasting("W"), 1000, 1);
    *gateway.data.before_swap.borrow_mut() = Some(Box::new(|data, name| data.set(name, &[])));
    assert_eq!(gateway.request(0, 1), Some(Decision::retry(1)));
    let traffic = gateway.traffic(0);
    assert_eq!((traffic.exhausted.get(), traffic.conflicts.get()), (1, 1000));
}

#[test]
fn lost_race_in_the_slot_ends_retries_in_the_bucket() {
    let gateway = Rc::new(Gateway::new(lasting("W"), 1, 1));
    (10..42).for_each(|caller| _ = gateway.request(0, caller));
    *gateway.data.before_swap.borrow_mut() = Some(Box::new(|data, name| {
        if !name.contains('o') {
            let old = data.get(name).map(|(bytes, _)| bytes).unwrap_or_default();
            data.set(name, &old);
        }
    }));
    assert_eq!(gateway.request(0, 1), Some(Decision::retry(1)));
    assert_eq!(gateway.traffic(0).exhausted.get(), 1);
}
