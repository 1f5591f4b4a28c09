//! Gateways that take another number of parts, one after the other, under load: each number counts up to the limit, and no
//! more.

use std::collections::BTreeSet;
use std::rc::Rc;

use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::seed;

use diana_core::time::{Micros, Now, SECOND};

use super::worker::Worker;
use super::{EPOCH, MILLISECOND, Plan, World, random};

/// A gateway takes another number of parts, by an update or by a restart.
#[derive(Debug)]
struct Change {
    at: Micros,
    gateway: usize,
    parts: usize,
    restarts: bool,
}

impl World {
    fn carry_out(&mut self, change: &Change) {
        let configuration = self.plan.configuration(change.parts);
        let each = self.plan.workers;
        let workers = change.gateway * each..(change.gateway + 1) * each;
        if !change.restarts {
            self.workers[workers].iter_mut().for_each(|it| it.configure(&configuration, change.at));
            return;
        }
        // What it has sent still gets there, and nobody is left to hear the answer.
        for way in self.ways.extract_if(.., |way| workers.contains(&way.worker)) {
            way.there.iter().for_each(|body| drop(self.proxy.answer(body, EPOCH + change.at)));
        }
        let data = Rc::new(FakeSharedData::default());
        let clocks = Now { mono: self.rng.u64(0..1 << 40), wall: EPOCH };
        for worker in &mut self.workers[workers] {
            *worker = Worker::new(&configuration, &data, clocks, self.rng.u64(1..));
        }
    }
}

/// Some changes between these numbers of parts.
fn changes(rng: &mut Rng, plan: &Plan, numbers: &[usize], until: Micros) -> Vec<Change> {
    let change = |rng: &mut Rng| Change {
        at: rng.u64(0..until) / MILLISECOND * MILLISECOND,
        gateway: rng.usize(0..plan.gateways),
        parts: numbers[rng.usize(0..numbers.len())],
        restarts: rng.bool(),
    };
    let mut changes: Vec<Change> = (0..rng.usize(1..8)).map(|_| change(rng)).collect();
    changes.sort_by_key(|change| change.at);
    changes
}

#[test]
fn of_parts_that_change_cost_one_further_limit_each() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut further, mut full) = (0, 0);
    for _ in 0..40 {
        let plan = Plan { acquainted: 0, ..random(&mut rng, &["W", "SW", "TB"]) };
        let numbers: Vec<usize> = (0..rng.usize(1..=2)).map(|_| 1 << rng.u8(0..=5)).collect();
        let changes = changes(&mut rng, &plan, &numbers, 2 * SECOND);
        let told = changes.iter().map(|change| change.parts);
        let seen: BTreeSet<usize> = told.chain([plan.parts]).collect();
        let mut world = World::new(plan);
        world.run_with(3 * SECOND, |world, now| {
            changes.iter().filter(|change| change.at == now).for_each(|it| world.carry_out(it));
        });
        let plan = &world.plan;
        for place in [0, 1] {
            let (rpu, all) = (plan.rpu[place], seen.len() as u64);
            let callers = [plan.accounts, plan.devices][place];
            for whose in 0..callers {
                let used = world.used(place, whose, Micros::MAX);
                assert!(used <= all * rpu, "{plan:?}, {changes:?}: {used} of {all} x {rpu}");
                further += usize::from(used > rpu);
                full += usize::from(all > 1 && used == all * rpu);
            }
        }
    }
    assert!(further > 20 && full > 5, "too tame: {further}, {full}");
}
