//! The values that count requests in flight: a worker that finds a value of another form, or cannot
//! write, never admits too many.

use std::rc::Rc;

use diana_limiter::Verdict;
use diana_policy::port::SharedData;
use diana_policy::time::SECOND;
use kit::fake::{FakeRequest, FakeSharedData};

use super::limiter;
use super::slots::{self, clock, request};

const HOLDERS: &str = "diana/2/alone/holders";

fn document(keys: usize) -> String {
    slots::document(keys, 1)
}

fn slots(data: &FakeSharedData) -> Vec<String> {
    let is_slot = |key: &String| key.rsplit('/').next().is_some_and(|name| name.contains('.'));
    data.keys().into_iter().filter(is_slot).collect()
}

/// The first worker determined the number of values, for its number of callers.
#[test]
fn workers_with_other_keys_share_a_callers_slots() {
    for (first, second) in [(16, 10_000), (10_000, 16)] {
        let (data, clock) = (Rc::default(), clock());
        let [mut one, mut other] = [first, second].map(|keys| limiter(&document(keys), &data));
        let open: Vec<_> = (0..20).map(|caller| request(&mut one, caller, &clock)).collect();
        assert!(open.iter().all(Option::is_some));
        for caller in 0..20 {
            assert!(request(&mut other, caller, &clock).is_none(), "{caller} has a place");
        }
    }
}

/// The slot of a worker that is not registered as living would not count.
#[test]
fn unregistered_worker_takes_no_slot() {
    let (data, clock) = (Rc::<FakeSharedData>::default(), clock());
    let mut limiter = limiter(&document(16), &data);
    *data.before_swap.borrow_mut() = Some(Box::new(|data, key| {
        if key == HOLDERS {
            data.set(key, b"another one");
        }
    }));
    assert!(request(&mut limiter, 1, &clock).is_none());
    data.before_swap.borrow_mut().take();
    assert!(request(&mut limiter, 1, &clock).is_some(), "it has none");
}

/// No living worker holds the slots of a dead one, and its remains are removed while others live.
#[test]
fn slots_of_a_dead_worker_are_removed() {
    let (data, clock) = (Rc::<FakeSharedData>::default(), clock());
    let mut dead = limiter(&document(16), &data);
    let open = request(&mut dead, 1, &clock);
    let another = "limits: [{Url: /, rules: [{actor: account, in_flight: 1}]}]";
    let mut lives = limiter(another, &data);
    let own = lives.decide(&FakeRequest::get("/").header("x-account-id", "ann"), 0, &clock);
    assert!(open.is_some() && matches!(own, Verdict::Admit(..)));
    let shared: Rc<dyn SharedData> = data.clone();
    let mut remains = dead.remains(&"alone".into(), &shared, clock.0.get().mono);
    drop((open, dead));
    for _ in 0..10 {
        clock.0.set(clock.0.get().later(SECOND / 4));
        lives.maintain(clock.0.get());
    }
    let full = slots(&data).iter().filter(|key| data.get(key).unwrap().0.len() > 8).count();
    assert_eq!(full, 2);
    assert!(!remains[0].work(clock.0.get()) || remains[0].due() < clock.0.get().mono + SECOND);
    let full = slots(&data).iter().filter(|key| data.get(key).unwrap().0.len() > 8).count();
    assert_eq!(full, 1);
}
