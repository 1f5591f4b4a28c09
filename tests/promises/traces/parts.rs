//! The blocks of a gateway and the parts that its workers take: Redis gets each permit back once, spent or unspent, for its own
//! block.

use std::rc::Rc;

use diana_policy::time::{Micros, SECOND};
use diana_redis::protocol::RuleReply;
use diana_store::gateway_leases::{GatewayLease, GatewayLeases};
use diana_store::lease::{Block, Lease, Lessor, Pace, Received, Wanted};
use kit::choices::Choices;
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};

const WORKERS: usize = 2;

/// Permits of a block, and of a part.
const BLOCK: u64 = 5;
const PART: u64 = 2;

/// The terms in which Redis counts blocks together.
const LONG: u64 = 5;

const ASKED: Wanted = Wanted { permits: BLOCK, ahead: SECOND / 10 };
const LESSOR: Lessor = Lessor { unit_cost: 1, longest_pause: None, is_final: true };

#[derive(Debug, Clone, Copy)]
enum Act {
    /// A worker takes a part, in place of the one that it has.
    Take(usize),
    Spend(usize),
    Return(usize),
    /// The next block comes, charged as the one before, or later.
    Next(bool),
    /// The question for the next block returns the spent ones.
    Ask,
    ReturnAll,
    /// The block ends.
    Wait,
}

/// All blocks that are charged together.
#[derive(Debug, Clone, Copy, Default)]
struct Charged {
    permits: u64,
    unspent: u64,
}

struct World {
    leases: GatewayLeases,
    now: Micros,
    parts: [(Block, u64); WORKERS],
    charged: Vec<Charged>,
    returned: Vec<(Block, u64)>,
}

/// A trace of this number of acts, of a caller that has requests or none.
pub fn world(acts: usize, choices: &mut Choices) {
    let leases = GatewayLeases::new("promises", 7, Rc::new(FakeSharedData::default()));
    let (parts, charged, returned) = Default::default();
    let mut world = World { leases, now: 0, parts, charged, returned };
    if choices.pick(2) == 1 {
        world.change(|known| known.lease.count(100, START, pace()));
    }
    world.act(Act::Next(true));
    for _ in 0..acts {
        let all = world.acts();
        world.act(all[choices.pick(all.len())]);
        world.check();
    }
}

fn pace() -> Pace {
    Pace::of_fleet(SECOND / 500, SECOND / 20, Micros::MAX, 1000)
}

impl World {
    fn change<T>(&mut self, change: impl FnMut(&mut GatewayLease) -> T) -> T {
        let changed = self.leases.change(key(1).into(), START.mono + self.now, change);
        changed.expect("the line of the caller")
    }

    fn acts(&self) -> Vec<Act> {
        let mut acts = vec![Act::Next(false), Act::Next(true), Act::Ask, Act::ReturnAll, Act::Wait];
        for (worker, (part, left)) in self.parts.iter().enumerate() {
            acts.push(Act::Take(worker));
            acts.extend((*left > 0).then_some(Act::Spend(worker)));
            acts.extend((part.permits > 0).then_some(Act::Return(worker)));
        }
        acts
    }

    fn act(&mut self, act: Act) {
        let (now, pace) = (START.later(self.now), pace());
        match act {
            Act::Take(worker) => {
                self.give_back(worker);
                let own = Lease::default();
                let part = self.change(|known| known.lease.give(&own, PART, 1, now, pace));
                self.parts[worker] = (part, part.permits);
            }
            Act::Spend(worker) => {
                let (part, left) = &mut self.parts[worker];
                self.charged[number(*part)].unspent -= 1;
                *left -= 1;
            }
            Act::Return(worker) => self.give_back(worker),
            Act::Next(is_later) => self.lease(is_later),
            Act::Ask => {
                let blocks = self.change(|known| known.take_before_next(now, pace));
                self.returned.extend(blocks);
            }
            Act::ReturnAll => {
                let blocks = self.change(GatewayLease::take_blocks);
                self.returned.extend(blocks);
            }
            Act::Wait => self.now += SECOND / 2,
        }
    }

    fn give_back(&mut self, worker: usize) {
        let (part, left) = std::mem::take(&mut self.parts[worker]);
        if !self.change(|known| known.merge(part, left)) {
            self.returned.push((part, left));
        }
    }

    /// A later block has another receipt, or belongs to another term.
    fn lease(&mut self, is_later: bool) {
        if is_later {
            self.charged.push(Charged::default());
        }
        let charge = self.charged.len() as u64 - 1;
        let charged = &mut self.charged[charge as usize];
        let term = charge / 2 * LONG + if charged.permits > 0 { LONG - 1 } else { 0 };
        (charged.permits, charged.unspent) = (charged.permits + BLOCK, charged.unspent + BLOCK);
        let reply = RuleReply {
            retry: None,
            is_outstanding: false,
            remaining: 500,
            receipt: 0,
            term,
            block: BLOCK,
            lease: charge.div_ceil(2),
            charged: 0,
            spend: SECOND,
            overflow: false,
        };
        let (now, asked) = (START.later(self.now), ASKED);
        let (sent, at) = (now, now.mono);
        let received = Received { reply: &reply, cost: 1, charged: 0, asked, sent, at, now };
        let former = self.change(|known| {
            let before = known.lease.on_admission(received, LESSOR);
            known.follow(before)
        });
        self.returned.extend(former);
    }

    /// The gateway, its workers and Redis have all permits.
    fn check(&mut self) {
        let kept = self.change(|known| { *known }.take_blocks());
        let all = || self.parts.iter().chain(&kept).chain(&self.returned);
        for (charge, Charged { permits, unspent }) in self.charged.iter().enumerate() {
            let of = || all().filter(|(block, _)| block.permits > 0 && number(*block) == charge);
            assert_eq!(of().map(|(block, _)| block.permits).sum::<u64>(), *permits, "permits");
            assert_eq!(of().map(|(_, left)| left).sum::<u64>(), *unspent, "unspent permits");
        }
        assert!(all().all(|(block, left)| *left <= block.permits), "more than the block");
    }
}

/// The number of the charge of a block.
fn number(block: Block) -> usize {
    (block.receipt + block.term / LONG) as usize
}
