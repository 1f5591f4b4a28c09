//! What a worker holds of a caller's permits in Redis, against a record of every block.

mod books;

use std::rc::Rc;

use diana_core::algorithm::sliding_window;
use diana_core::key::Key;
use diana_core::policy::Quota;
use diana_core::policy::redis::OnFailure;
use diana_core::redis::handle::{Handle, Operation};
use diana_core::redis::part::Parts;
use diana_core::redis::protocol::RuleReply;
use diana_core::redis::store::RedisStore;
use diana_core::store::stores::Stores;
use diana_core::store::tables::Tables;
use diana_core::time::{Micros, Now, SECOND, Unit};
use fastrand::Rng;
use kit::fake::FakeSharedData;
use kit::store::gateway::{START, key};
use kit::store::rule::Rule;

use books::{Books, Held, WHILE};

const MS: Micros = SECOND / 1000;

/// A worker with one caller.
struct Desk {
    store: RedisStore,
    handle: Handle,
    rule: Rule,
    /// How long before its end another block is asked for.
    ahead: Micros,
    now: Now,
    ann: Key,
    books: Books,
    rng: Rng,
    receipts: u64,
    /// What came to pass: spent, refused for a moment, asked for, turned to the next block, given back since it was
    /// too little.
    seen: [u64; 5],
}

impl Desk {
    fn new(mut rng: Rng) -> Desk {
        let quota = Quota {
            slices: Some(rng.u64(5..20)),
            cost: rng.u64(1..9),
            ..Quota::new(Unit::Second, 1 << 40)
        };
        let data = Rc::new(FakeSharedData::default());
        let mut tables = Tables::default();
        let mut stores = Stores::new("test".into(), data, &mut tables);
        let rule = Rule { is_even: rng.bool(), ..Rule::new("SW", quota) };
        let spec = rule.spec(100);
        Desk {
            store: RedisStore::new(spec, 3, Parts::ONE, &mut stores).unwrap(),
            handle: Handle::new(OnFailure::Gateway, Parts::ONE),
            rule,
            ahead: (sliding_window::ENTRY.codec(&quota).unwrap().ahead)(&quota),
            now: START,
            ann: key(1),
            books: Books::default(),
            rng,
            receipts: 0,
            seen: [0; 5],
        }
    }

    /// Some time passes, often until something changes or a tick less or more.
    fn pass(&mut self) {
        let turn = self.rng.choice(self.books.turns()).unwrap();
        let until = (turn + self.rng.u64(0..3)).saturating_sub(self.now.mono + 1);
        let ticks = match self.rng.u8(0..8) {
            0..2 if until < SECOND => until,
            2 => self.ahead.min(until).abs_diff(until),
            3 => self.rng.u64(0..30 * MS),
            _ => self.rng.u64(0..MS),
        };
        self.now = self.now.later(ticks);
        if self.rng.u8(0..100) == 0 {
            self.now.wall += self.rng.u64(0..WHILE);
        }
    }

    fn request(&mut self) {
        let (now, cost) = (self.now, self.rule.cost(&mut self.rng));
        // It comes often.
        self.store.hint_demand(self.ann, 50);
        let turned = self.books.back.len();
        let can = self.books.can_spend(cost, now);
        self.seen[3] += (self.books.back.len() - turned) as u64;
        let mut reservation = self.store.check(self.ann, cost, now, &mut self.handle);
        if !can {
            let too_little = self.books.hand.has(1, now);
            if too_little {
                self.books.hand_in();
                self.seen[4] += 1;
            }
            let pressing = now.mono < self.books.short;
            assert_eq!(reservation.asks(), !pressing, "at {now:?}");
            let wants = pressing && now.mono >= self.books.dry;
            self.done(wants);
            if pressing {
                self.seen[1] += 1;
            } else if self.rng.bool() {
                let charge = self.store.question((self.ann, cost), now, false, false);
                if !self.books.asking {
                    (self.books.asking, self.books.soon) = (true, charge.soon);
                }
            }
            return;
        }
        assert!(self.store.charge(&mut reservation, 0, &mut self.handle).is_admitted());
        self.seen[0] += 1;
        let Books { hand, next, used, dry, .. } = &mut self.books;
        hand.left -= cost;
        *used = now.mono;
        let ends_soon = next.permits == 0 && hand.ends.mono < now.mono + self.ahead;
        let wants = (hand.left <= hand.permits / 2 || ends_soon) && now.mono >= *dry;
        self.done(wants);
        if self.rng.u8(0..8) == 0 {
            self.store.undo(&mut reservation);
            self.books.hand.left += cost;
        }
    }

    /// What is to be done in Redis: what the books say, and more is asked for if it is wanted.
    fn done(&mut self, wants: bool) {
        let mut asked = None;
        let mut back = Vec::new();
        for operation in self.handle.take(usize::MAX) {
            match operation {
                Operation::GiveBack(charge) => back.push(charge.back),
                Operation::Renew(3, _, charge) => asked = Some(charge),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(back, std::mem::take(&mut self.books.back), "at {:?}", self.now);
        assert_eq!(asked.is_some(), wants && !self.books.asking, "at {:?}", self.now);
        if let Some(charge) = asked {
            assert!(charge.want > 0 && charge.cost == 0);
            (self.books.asking, self.books.soon) = (true, charge.soon);
            self.seen[2] += 1;
        }
    }

    /// Redis lends some permits, to be spent now or from some instant on.
    fn lend(&mut self) {
        self.receipts += 2;
        let (now, receipt) = (self.now, self.receipts);
        let ago = self.rng.u64(0..5 * MS);
        let sent = Now { mono: now.mono - ago, wall: now.wall - ago };
        let later = self.rng.u8(0..3) == 0;
        let permits = self.rule.spec(1).unit_cost * self.rng.u64(u64::from(later)..20);
        let starts = if later { self.rng.u64(1..40 * MS) } else { 0 };
        let spend = self.rng.u64(1..3 * WHILE / 2);
        let above = *self.rng.choice(&[0, 1, 20, 1 << 30]).unwrap();
        let reply = RuleReply {
            retry: None,
            loan: 0,
            remaining: above,
            receipt: 0,
            term: receipt + 1,
            block: permits,
            lease: receipt,
            starts,
            spend,
            overflow: false,
        };
        self.store.receive(
            self.ann,
            &reply,
            (self.rule.quota.cost, 0),
            (sent, now),
            &mut self.handle,
        );
        let books = &mut self.books;
        books.asking = false;
        let begins = now.mono + starts;
        let of = |life| Held { receipt, permits, left: permits, begins, ends: sent.later(life) };
        let before = if later {
            std::mem::replace(&mut books.next, of(spend))
        } else if permits > 0 || books.hand.permits == 0 {
            books.used = sent.mono;
            std::mem::replace(&mut books.hand, of(spend.min(WHILE)))
        } else {
            Held::default()
        };
        books.give_back(before);
        books.above = above + before.left;
        if books.above < books.soon {
            books.short = books.short.max(now.mono + WHILE);
            books.dry = if books.above == 0 { now.mono + WHILE } else { books.dry };
        }
        self.done(false);
    }

    fn step(&mut self) {
        self.pass();
        match self.rng.u8(0..12) {
            0 => self.lend(),
            1..3 => {
                let out = self.books.is_out();
                self.books.tidy(self.now);
                assert_eq!(self.store.tidy(self.now, &mut self.handle), out);
                self.done(false);
            }
            3 => {
                self.store.complete(self.ann, None, self.now, &mut self.handle);
                self.books.asking = false;
            }
            _ => self.request(),
        }
    }
}

/// Each block is spent while it may be and no longer, asked for anew in time, and goes back once, with what is left of
/// it, when it was idle or is over.
#[test]
fn every_block_is_spent_in_its_time_and_goes_back_once() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let mut seen = [0; 5];
    for _ in 0..600 {
        let mut desk = Desk::new(rng.fork());
        (0..500).for_each(|_| desk.step());
        desk.books.give_back(desk.books.hand);
        desk.books.give_back(desk.books.next);
        desk.store.close(desk.now, &mut desk.handle);
        desk.done(false);
        seen.iter_mut().zip(desk.seen).for_each(|(sum, of)| *sum += of);
    }
    assert!(seen.iter().all(|number| *number > 500), "{seen:?}");
}
