//! Requests that wait for their turn.

use diana_limiter::{Held, Verdict};
use diana_store::permit::End;
use diana_worker::hold::Queue;
use kit::fake::FakeRequest;

use super::{Gate, from};

const MS: u64 = 1000;

/// The rules in the given scope.
fn gate(rules: &str, scope: &str) -> Gate {
    let rules = rules.replace('}', &format!(", scope: {scope}}}"));
    Gate::new(&format!("{{Url: /, rules: [{rules}]}}"))
}

impl Gate {
    fn held(&mut self, request: &FakeRequest) -> Held {
        match self.decide(request) {
            Verdict::Hold(held) => *held,
            other => panic!("{other:?}"),
        }
    }

    /// The wait of a request. `None` if it is refused.
    fn waits(&mut self, request: &FakeRequest) -> Option<u64> {
        let now = self.clock.0.get().mono;
        match self.decide(request) {
            Verdict::Admit(..) => Some(0),
            Verdict::Hold(held) => {
                held.position.finish(End::Served);
                Some(held.until - now)
            }
            Verdict::Refuse(_) | Verdict::Pending { .. } => None,
        }
    }
}

#[test]
fn request_held_by_two_rules_does_not_move_up() {
    let two = "{actor: account, unit: second, rpu: 10, algo: LB}, {actor: all, unit: second, rpu: 10, algo: LB}";
    let one = "{actor: account, unit: second, rpu: 10, algo: LB}, {actor: all, unit: second, rpu: 100, algo: W}";
    for (rules, scope, moves) in
        [(two, "local", false), (one, "local", true), (one, "gateway", false)]
    {
        let mut gate = gate(rules, scope);
        assert_eq!(gate.waits(&from("ann")), Some(0));
        assert_eq!(gate.held(&from("ann")).line.is_some(), moves, "{scope} {rules}");
    }
}

#[test]
fn request_that_moves_up_keeps_its_turn_in_other_queues() {
    let mut gate = Gate::new(
        "{Url: /, rules: [
            {name: all, actor: all, unit: second, rpu: 10, algo: LB, max_delay: 10s, max_queue: 50, scope: local},
            {name: each, actor: account, unit: second, rpu: 1, algo: LB, max_queue: 1, scope: local}]}",
    );
    let mut queue = Queue::default();
    let mut join = |gate: &mut Gate, stream, who| {
        let held = gate.held(&from(who));
        queue.join(stream, 0, held);
    };
    assert_eq!(gate.waits(&from("first")), Some(0));
    join(&mut gate, 1, "ann");
    join(&mut gate, 2, "bob");
    // The first caller leaves. The second may leave earlier, but its own second is still taken.
    queue.leave(1).unwrap().finish(End::Left);
    let wait = gate.waits(&from("bob"));
    assert!(wait.is_none_or(|wait| wait >= 1000 * MS), "{wait:?}");
}
