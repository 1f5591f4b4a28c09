//! Complete decisions of several workers, each interrupted by the others just before it writes: a
//! request is charged to all of its rules or to none.

mod lost_race;

use diana_limiter::{Limiter, Verdict};
use diana_policy::time::Now;
use diana_policy::{Quota, Scope};
use diana_store::permit::End;
use fastrand::Rng;
use kit::fake::{FakeClock, FakeMetrics, FakeSharedData};
use std::cell::RefCell;
use std::rc::Rc;

use super::{from, limiter};
use kit::oracle::Admission;
use kit::seed;
use kit::store::gateway::{PACE, START};
use kit::store::rule::Rule;

const CALLERS: usize = 2;

/// A rule of the configuration, and each caller's admissions under it. For a `local` rule, in each
/// worker.
struct Book {
    rule: Rule,
    local: bool,
    past: Vec<[Vec<Admission>; CALLERS]>,
}

struct Gateway {
    text: String,
    data: Rc<FakeSharedData>,
    clock: FakeClock,
    workers: Vec<RefCell<Limiter>>,
    books: RefCell<Vec<Book>>,
}

/// Some rules for the same requests, with rates of the same order.
fn text(rng: &mut Rng) -> String {
    let rules = (0..rng.usize(2..5)).map(|number| {
        let scope = if rng.u8(0..4) == 0 { "local" } else { "gateway" };
        let cost = rng.u64(1..4);
        let rpu = cost * rng.u64(1..60);
        let algo = match rng.u8(0..7) {
            0 => format!("W, rpu: {rpu}"),
            1 => format!("SW, rpu: {rpu}"),
            2 => format!("TB, rpu: {rpu}"),
            3 => format!("TB, rpu: {rpu}, burst: {}", cost * rng.u64(1..60)),
            // Too small for leases.
            4 => format!("TB, rpu: {rpu}, burst: {}", cost * rng.u64(1..9)),
            5 => format!("LB, rpu: {rpu}, max_delay: {}ms", rng.u64(1000..2000)),
            _ => format!("TB, rpu: {rpu}, max_delay: {}ms", rng.u64(1..2000)),
        };
        format!("{{name: r{number}, actor: account, unit: second, scope: {scope}, cost: {cost}, algo: {algo}}}")
    });
    let rules: Vec<String> = rules.collect();
    format!("limits: [{{Url: /, rules: [{}]}}]\naccepted: {{headers: true}}", rules.join(", "))
}

impl Gateway {
    fn new(text: String, workers: usize) -> Gateway {
        let policy = crate::config::policy(&text);
        let rules = policy.limits.iter().flat_map(|limit| &limit.rules);
        // The record does not include returns.
        let rules = rules.filter(|rule| rule.settling.is_none());
        let books = rules.map(|rule| Book {
            rule: Rule::new(rule.algo, rule.quota),
            local: rule.scope == Scope::Local,
            past: vec![Default::default(); workers],
        });
        let books = RefCell::new(books.collect());
        let data = Rc::new(FakeSharedData::default());
        let workers = (0..workers).map(|_| RefCell::new(limiter(&text, data.clone()))).collect();
        let clock = FakeClock::at(START);
        Gateway { text, data, clock, workers, books }
    }

    fn request(&self, worker: usize, caller: usize) {
        let Ok(mut limiter) = self.workers[worker].try_borrow_mut() else { return };
        let now = self.clock.0.get();
        let leaves = match limiter.decide(&from(&caller.to_string()), 0, &self.clock) {
            Verdict::Admit(..) => now.mono,
            Verdict::Hold(held) => {
                held.position.finish(End::Served);
                held.until
            }
            Verdict::Refuse(_) | Verdict::Pending { .. } => return,
        };
        for book in self.books.borrow_mut().iter_mut() {
            book.give(worker, caller, now, leaves);
        }
    }

    fn decide(&self, worker: usize, caller: usize) -> Verdict {
        self.workers[worker].borrow_mut().decide(&from(&caller.to_string()), 0, &self.clock)
    }

    /// Advances the clock, with maintenance of all workers.
    fn wait(&self, mut ticks: u64) {
        while ticks > 0 {
            let step = ticks.min(PACE);
            self.clock.0.set(self.clock.0.get().later(step));
            self.workers
                .iter()
                .for_each(|worker| _ = worker.borrow_mut().maintain(self.clock.0.get()));
            ticks -= step;
        }
    }

    /// A new worker's report to a caller about each rule, and whether it charged the request for
    /// that.
    fn ask(&self, caller: usize) -> (Vec<u64>, bool) {
        let mut limiter = limiter(&self.text, self.data.clone());
        let verdict = limiter.decide(&from(&caller.to_string()), 0, &self.clock);
        let (fields, admitted) = match verdict {
            Verdict::Admit(_, Some(report)) => (report.headers(), true),
            Verdict::Hold(held) => (held.report.headers(), true),
            Verdict::Refuse(refusal) => (refusal.headers(), false),
            Verdict::Admit(_, None) | Verdict::Pending { .. } => {
                panic!("the report is missing")
            }
        };
        let limits = fields.get("ratelimit").unwrap().split(", ");
        let left = |limit: &str| {
            let left = limit.split("r=").nth(1).unwrap();
            left.split(';').next().unwrap().parse().unwrap()
        };
        (limits.map(left).collect(), admitted)
    }
}

impl Book {
    fn give(&mut self, worker: usize, caller: usize, at: Now, leaves: u64) {
        let worker = if self.local { worker } else { 0 };
        let leaves = if self.rule.queues() { leaves } else { at.mono };
        let one = Admission { at, leaves, cost: self.rule.quota.cost };
        self.past[worker][caller].push(one);
    }
}

#[test]
fn all_rules_are_charged_or_none_despite_races() {
    let seed = seed::next();
    for number in 0..600 {
        let seed = seed.wrapping_add(number);
        let mut rng = Rng::with_seed(seed);
        let gateway = Rc::new(Gateway::new(text(&mut rng), rng.usize(1..5)));
        println!("seed {seed}: {}", gateway.text);
        let (often, here, mut other) = (rng.u8(1..9), Rc::downgrade(&gateway), rng.fork());
        *gateway.data.before_swap.borrow_mut() = Some(Box::new(move |_, _| {
            let Some(gateway) = here.upgrade() else { return };
            if other.u8(0..often) == 0 {
                gateway.request(other.usize(0..gateway.workers.len()), other.usize(0..CALLERS));
            }
        }));
        for _ in 0..200 {
            if rng.u8(0..4) == 0 {
                let longest = 1 << rng.u8(1..21);
                gateway.wait(rng.u64(0..longest));
            }
            gateway.request(rng.usize(0..gateway.workers.len()), rng.usize(0..CALLERS));
        }
        for book in gateway.books.borrow().iter() {
            book.past.iter().flatten().for_each(|past| book.rule.verify(past));
        }
        gateway.data.before_swap.borrow_mut().take();
        let now = gateway.clock.0.get();
        for worker in &gateway.workers {
            worker.borrow_mut().retire("test", now, &FakeMetrics::default());
        }
        for caller in 0..CALLERS {
            let (reported, charged) = gateway.ask(caller);
            let now = gateway.clock.0.get();
            for (book, reported) in gateway.books.borrow_mut().iter_mut().zip(reported) {
                if book.local || book.rule.queues() {
                    continue;
                }
                if charged {
                    book.give(0, caller, now, now.mono);
                }
                let left = book.rule.left(&book.past[0][caller], now);
                assert!(
                    reported <= left,
                    "{reported} left instead of {left} by {:?}",
                    book.rule.quota
                );
                let Quota { rpu, burst, cost, .. } = book.rule.quota;
                let is_small = burst.unwrap_or(rpu) <= 8 * cost;
                if is_small || book.rule.algorithm.properties().most_out == u64::MAX {
                    assert_eq!(reported, left, "{:?}", book.rule.quota);
                }
            }
        }
    }
}
