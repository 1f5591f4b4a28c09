//! When those that wait for permits are decided about anew, and what becomes of them when their clients leave.

use std::rc::Rc;

use diana_core::engine::{Engine, Resumed};
use diana_core::verdict::Verdict;
use kit::fake::{FakeClock, FakeSharedData};
use kit::store::gateway::START;

use super::permit_queue::Nobody;
use super::{engine, from};

const MS: u64 = 1000;

/// A worker that holds permits of callers, and one in which others wait for them.
struct Pair {
    holder: Engine,
    other: Engine,
    clock: FakeClock,
}

impl Pair {
    fn new() -> Pair {
        let data = Rc::new(FakeSharedData::default());
        let rule = "{actor: account, unit: day, rpu: 200, algo: W, scope: gateway}";
        let text = format!("limits: [{{Url: /, rules: [{rule}]}}]");
        let clock = FakeClock::default();
        clock.0.set(START);
        Pair { holder: engine(&text, data.clone()), other: engine(&text, data), clock }
    }

    /// The holder gets a block for a caller, and the other worker all the rest.
    fn hold(&mut self, caller: &str) {
        (0..25).for_each(|_| _ = self.holder.decide(&from(caller), &self.clock));
        // The last one of this waits.
        while matches!(self.other.decide(&from(caller), &self.clock), Verdict::Admit(..)) {}
    }

    fn at(&self, ticks: u64) {
        self.clock.0.set(START.later(ticks));
    }

    /// The ticket of a request that waits.
    fn waits(&mut self, caller: &str) -> Option<u64> {
        match self.other.decide(&from(caller), &self.clock) {
            Verdict::Ask { ticket } => Some(ticket),
            Verdict::Refuse(_) => None,
            Verdict::Admit(..) | Verdict::Hold(_) => panic!("the holder has the rest"),
        }
    }

    /// How long until there is something to do.
    fn next(&self) -> Option<u64> {
        let next = self.other.next(self.clock.0.get().mono);
        next.map(|next| next.saturating_sub(START.mono))
    }

    fn due(&mut self) -> Vec<Resumed> {
        self.other.work(self.clock.0.get(), &Nobody)
    }

    fn again(&mut self, caller: &str, resumed: &Resumed) -> Verdict {
        self.other.decide_again(resumed, &from(caller), &self.clock)
    }
}

/// All of a worker at the same instants, so that they share calls, and none longer than two tenths of a second.
#[test]
fn those_that_wait_are_decided_about_anew_at_instants_twenty_milliseconds_apart() {
    let mut pair = Pair::new();
    pair.at(3 * MS);
    pair.hold("ann");
    for ticks in (20..200).step_by(20) {
        assert_eq!(pair.next(), Some(ticks * MS));
        pair.at(ticks * MS - 1);
        assert!(pair.due().is_empty(), "at {ticks}");
        pair.at(ticks * MS);
        let due = pair.due();
        assert_eq!(due.len(), 1, "at {ticks}");
        assert!(matches!(pair.again("ann", &due[0]), Verdict::Ask { .. }), "at {ticks}");
    }
    assert_eq!(pair.next(), Some(200 * MS));
    pair.at(200 * MS);
    let due = pair.due();
    assert!(matches!(pair.again("ann", &due[0]), Verdict::Refuse(_)));
    assert_eq!(pair.next(), None);
}

#[test]
fn when_one_is_decided_the_next_one_is_at_once() {
    let mut pair = Pair::new();
    pair.hold("ann");
    assert!(pair.waits("ann").is_some());
    pair.at(9 * MS);
    pair.holder.retire("test", pair.clock.0.get(), &super::Lines::default());
    pair.at(20 * MS);
    for _ in 0..2 {
        assert!(pair.next().is_some_and(|next| next <= 20 * MS));
        let due = pair.due();
        assert_eq!(due.len(), 1);
        assert!(matches!(pair.again("ann", &due[0]), Verdict::Admit(..)));
    }
    assert_eq!(pair.next(), None);
    let lines = super::Lines::default();
    pair.other.flush("ns", &lines);
    let lines = lines.0.take();
    assert!(lines.iter().any(|line| line.contains("lent") && line.ends_with("2")), "{lines:?}");
}

#[test]
fn nobody_decides_about_a_request_whose_client_left() {
    let mut pair = Pair::new();
    pair.hold("ann");
    let first = pair.waits("ann").unwrap();
    let second = pair.waits("ann").unwrap();
    pair.other.forget(first);
    pair.at(20 * MS);
    let due = pair.due();
    // The one with which it was found out that there is no more came first.
    let third = pair.again("ann", &due[0]);
    let Verdict::Ask { ticket } = third else { panic!("it waits on") };
    pair.other.forget(ticket);
    pair.at(40 * MS);
    assert_eq!(pair.due().iter().map(|due| due.ticket).collect::<Vec<_>>(), [second]);
    pair.at(60 * MS);
    assert_eq!(pair.next(), None);
}

#[test]
fn callers_wait_in_queues_of_their_own() {
    let mut pair = Pair::new();
    pair.hold("ann");
    pair.hold("bob");
    assert!((1..64).all(|_| pair.waits("ann").is_some()));
    assert!(pair.waits("ann").is_none(), "too many of ann's wait");
    assert!(pair.waits("bob").is_some(), "of bob's two");
}

/// Each queue takes memory, and time whenever one is looked for.
#[test]
fn no_more_than_a_thousand_callers_wait() {
    let mut pair = Pair::new();
    let callers: Vec<String> = (0..1400).map(|number| format!("caller-{number}")).collect();
    let mut waiting = 0;
    for caller in &callers {
        (0..25).for_each(|_| _ = pair.holder.decide(&from(caller), &pair.clock));
        waiting += loop {
            match pair.other.decide(&from(caller), &pair.clock) {
                Verdict::Admit(..) => {}
                Verdict::Ask { .. } => break 1,
                Verdict::Refuse(_) | Verdict::Hold(_) => break 0,
            }
        };
    }
    assert_eq!(waiting, 1024);
}
