//! Workers that are threads of one process: they count `gateway` rules together in one table.

use std::rc::Rc;

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::Now;
use diana_store::permit::End;
use diana_store::process::Process;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};

use super::from;

const START: Now = Now { mono: 1_000_000_000, wall: 1_700_000_040_000_000 };

fn process() -> &'static Process {
    Box::leak(Box::default())
}

/// A worker's limiter in a process.
fn worker(text: &str, process: &'static Process) -> Limiter {
    let mut tables = Tables::default();
    let data = Rc::new(FakeSharedData::default());
    let mut stores = Stores::new("test".into(), data, &mut tables);
    stores.process = Some((process, START));
    let policy = crate::config::policy(text);
    Limiter::new(policy, Seed { k0: 7, k1: 9 }, stores, None).unwrap()
}

fn admits(limiter: &mut Limiter, request: &FakeRequest, clock: &FakeClock) -> bool {
    match limiter.decide(request, 0, clock) {
        Verdict::Hold(held) => {
            held.position.finish(End::Served);
            true
        }
        Verdict::Admit(..) => true,
        Verdict::Refuse(_) => false,
        Verdict::Pending { .. } => panic!("nothing is asked"),
    }
}

#[test]
fn usage_stays_through_an_update_and_after_a_rule_was_removed() {
    let process = process();
    let text = |rpu: u32| {
        format!(
            "limits: [{{Url: /, rules: [{{name: counted, actor: account, unit: day, rpu: {rpu}, algo: W, scope: gateway}}]}}]"
        )
    };
    let clock = FakeClock::at(START);
    let mut first = worker(&text(2), process);
    assert!(admits(&mut first, &from("ada"), &clock));
    assert!(admits(&mut first, &from("ada"), &clock));
    assert!(!admits(&mut first, &from("ada"), &clock));
    let mut second = worker(&text(3), process);
    drop(first);
    assert!(admits(&mut second, &from("ada"), &clock));
    drop(second);
    let mut without = worker("limits: []", process);
    assert!(admits(&mut without, &from("ada"), &clock));
    let mut third = worker(&text(3), process);
    assert!(!admits(&mut third, &from("ada"), &clock));
    assert!(admits(&mut third, &from("bob"), &clock));
}
