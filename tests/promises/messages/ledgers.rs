//! The settlements of a worker while calls are lost and late, also after another secret of callers or another configuration:
//! Redis applies each of them once, and none of callers that were hashed with an earlier secret is sent.

use std::collections::BTreeMap;

use diana_algorithm::fixed_window;
use diana_policy::Quota;
use diana_policy::key::Key;
use diana_policy::time::{SECOND, Unit};
use diana_redis::ledger::Ledgers;
use diana_redis::protocol::{Charge, Numbers, SettlementBatch};
use diana_redis::shard::{Shard, Shards};
use kit::choices::Choices;
use kit::rules;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// A request ends.
    Add,
    Send,
    /// A call reaches Redis, perhaps after its timeout.
    Arrive(usize),
    /// The worker gets the reply to a call, or has none.
    End(usize),
    /// Callers are hashed with another secret.
    Clear,
    /// Another configuration applies.
    Change,
}

/// A call with a batch: its settlements, by number.
struct Call {
    settles: SettlementBatch,
    charges: Vec<usize>,
    has_arrived: bool,
    has_ended: bool,
}

#[derive(Default)]
struct World {
    ledgers: Ledgers,
    calls: Vec<Call>,
    /// How often Redis has applied each settlement, and the latest batch of each sender.
    applied: Vec<usize>,
    latest: BTreeMap<u64, u64>,
    /// The first settlement with the present secret.
    known: usize,
    changes: u64,
}

/// A trace of this number of acts.
pub fn world(acts: usize, choices: &mut Choices) {
    let mut world = World::default();
    world.ledgers.begin(world.changes);
    world.act(Act::Add);
    for _ in 0..acts {
        let all = world.acts();
        world.act(all[choices.pick(all.len())]);
    }
    // Each call has one batch of all that waits, so a few are enough.
    for _ in 0..2 * (acts + 2) {
        match world.calls.iter().position(|call| !call.has_ended) {
            Some(call) => [Act::Arrive(call), Act::End(call)].map(|act| world.act(act)),
            None => [Act::Send; 2].map(|act| world.act(act)),
        };
    }
    assert!(!world.ledgers.is_any(), "settlements wait for ever");
    let World { applied, known, .. } = world;
    assert!(applied[known..].iter().all(|times| *times == 1), "applied {applied:?}");
}

fn shard() -> Shard {
    Shards::new(1).all().next().expect("the only one")
}

impl World {
    fn acts(&self) -> Vec<Act> {
        let mut acts = vec![Act::Add, Act::Clear, Act::Change];
        acts.extend(self.ledgers.is_ready(&[]).then_some(Act::Send));
        for (number, call) in self.calls.iter().enumerate() {
            acts.extend((!call.has_arrived).then_some(Act::Arrive(number)));
            acts.extend((!call.has_ended).then_some(Act::End(number)));
        }
        acts
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Add => {
                self.ledgers.add(shard(), charge(self.applied.len()));
                self.applied.push(0);
            }
            Act::Send => {
                for (_, settles, charges) in self.ledgers.take(&[], SECOND) {
                    let charges: Vec<_> = charges.iter().map(|it| it.cost as usize).collect();
                    assert!(charges.iter().all(|it| *it >= self.known), "with an earlier secret");
                    let (has_arrived, has_ended) = (false, false);
                    self.calls.push(Call { settles, charges, has_arrived, has_ended });
                }
            }
            Act::Arrive(call) => {
                let call = &mut self.calls[call];
                let latest = self.latest.entry(call.settles.sender).or_default();
                if call.settles.number > *latest {
                    *latest = call.settles.number;
                    call.charges.iter().for_each(|it| self.applied[*it] += 1);
                    assert!(self.applied.iter().all(|times| *times <= 1), "applied twice");
                }
                call.has_arrived = true;
            }
            Act::End(call) => {
                let call = &mut self.calls[call];
                call.has_ended = true;
                self.ledgers.on_batch_end(shard(), call.settles, call.has_arrived);
            }
            Act::Clear => {
                self.ledgers.clear();
                self.known = self.applied.len();
            }
            Act::Change => {
                self.changes += 1;
                let mut before = std::mem::take(&mut self.ledgers);
                self.ledgers.begin(self.changes);
                self.ledgers.inherit(&mut before);
            }
        }
    }
}

/// A settlement with this number.
fn charge(number: usize) -> Charge {
    let quota = Quota::new(Unit::Second, 100);
    let numbers = Numbers::of_rule(&fixed_window::ENTRY, &quota).expect("an algorithm of Redis");
    let key = Key { hash: 1, second_hash: 1 };
    Charge { cost: number as u64, ..rules::charge(5, key, numbers) }
}
