//! Whatever comes back, whenever, and however often.

use std::collections::BTreeMap;
use std::rc::Rc;

use diana_core::key::Seed;
use diana_core::port::Call;
use diana_core::redis::client::Completion;
use diana_core::redis::handle::Operation;
use diana_core::redis::pending::Settled;
use diana_core::redis::protocol::{Back, Charge, Script};
use diana_core::redis::target::Target;
use diana_core::time::SECOND;
use fastrand::Rng;
use kit::fake::FakeSharedData;

use super::redis::{Seen, admits, decides, no_script, other_seed};
use super::{MILLISECOND, Response, Worker, charge, ok, reset, status};
use kit::seed;

/// An answer on its way.
struct Coming {
    at: u64,
    token: u32,
    response: Response,
}

struct Play {
    rng: Rng,
    timeout: u64,
    worker: Worker,
    now: u64,
    coming: Vec<Coming>,
    /// Calls that are not answered, with when they leave off.
    out: Vec<(u32, u64)>,
    /// Requests that wait, and since when.
    waiting: BTreeMap<u64, u64>,
    /// Errands that give something back, by their callers, and whether they were sent.
    backs: BTreeMap<u64, bool>,
    /// Errands that want something, by their callers.
    wants: BTreeMap<u64, usize>,
    callers: u64,
    /// How much goes wrong, of ten.
    trouble: u8,
    alone: usize,
}

impl Play {
    fn new(seed: u64) -> Play {
        let mut rng = Rng::with_seed(seed);
        let timeout = [1, 2, 20, 100, 1000][rng.usize(0..5)] * MILLISECOND;
        Play {
            timeout,
            worker: Worker::with(&Rc::new(FakeSharedData::default()), timeout),
            now: 0,
            coming: Vec::new(),
            out: Vec::new(),
            waiting: BTreeMap::new(),
            backs: BTreeMap::new(),
            wants: BTreeMap::new(),
            callers: 0,
            trouble: rng.u8(0..5),
            alone: 0,
            rng,
        }
    }

    fn tick(&mut self) {
        let now = self.now;
        while let Some(place) = self.coming.iter().position(|coming| coming.at <= now) {
            let Coming { token, response, .. } = self.coming.swap_remove(place);
            let told = self.worker.answer(token, &response, now);
            self.out.retain(|(out, _)| *out != token);
            self.hear(told.unwrap_or_default());
        }
        let limit = 1 << self.rng.u8(0..9);
        if self.rng.u8(0..3) == 0 {
            for _ in 0..self.rng.usize(0..limit) {
                self.request();
            }
        }
        for _ in 0..self.rng.usize(0..3) {
            self.errand();
        }
        if self.rng.u8(0..20) == 0 {
            let stranger = self.rng.u32(1_000_000..);
            assert_eq!(self.worker.answer(stranger, &ok(decides(&[])), now), None);
        }
        if self.worker.next(now).is_some_and(|next| next <= now) {
            let told = self.worker.work(now);
            self.hear(told);
        }
        self.send();
        // Who is not answered by the host is let go by the client.
        let longest = self.timeout + 10 * MILLISECOND;
        for (ticket, since) in &self.waiting {
            assert!(now - since <= longest, "{ticket} waits for {} µs", now - since);
        }
    }

    /// Nothing comes any more, until what is out by now must have been given up.
    fn be_silent(&mut self) {
        for _ in 0..self.timeout / MILLISECOND + 12 {
            self.coming.clear();
            let told = self.worker.work(self.now);
            self.hear(told);
            self.now += MILLISECOND;
        }
    }

    fn request(&mut self) {
        self.callers += 1;
        let ticket = self.worker.ask(self.callers, self.now);
        assert_eq!(self.waiting.insert(ticket, self.now), None);
    }

    fn errand(&mut self) {
        self.callers += 1;
        let none = Charge { cost: 0, ..charge(self.callers) };
        if self.rng.bool() {
            let back = Back::Cost { receipt: 1, term: 0, permits: 1 };
            self.worker.send(Operation::GiveBack(Charge { back, ..none }));
            self.backs.insert(self.callers, false);
        } else {
            self.worker.send(Operation::Renew(0, 0, Charge { want: 5, ..none }));
            self.wants.insert(self.callers, 0);
        }
    }

    fn hear(&mut self, told: Vec<Completion>) {
        for told in told {
            match told {
                Completion::Request(ticket, answered) => {
                    let since = self.waiting.remove(&ticket);
                    assert!(since.is_some(), "{ticket} is answered twice: {answered:?}");
                    self.alone +=
                        usize::from(answered.settled(Target::Rule(0)) == Some(Settled::Alone));
                }
                Completion::Operation(_, (key, _), _) => {
                    *self.wants.get_mut(&key.hash).unwrap() += 1
                }
            }
        }
    }

    /// Looks at the new calls and decides what becomes of them.
    fn send(&mut self) {
        for (token, call) in self.worker.calls.fresh() {
            let seen = Seen::of(&call);
            assert!(
                call.timeout >= MILLISECOND && call.timeout <= self.timeout,
                "{}",
                call.timeout
            );
            for caller in &seen.callers {
                let Some(sent) = self.backs.get_mut(caller) else { continue };
                let again = std::mem::replace(sent, true);
                assert!(!again || seen.script == Script::Text, "{caller} is given back twice");
            }
            let ends = self.now + call.timeout;
            self.out.retain(|(_, until)| *until + 4 * MILLISECOND > self.now);
            if !seen.callers.is_empty() {
                self.out.push((token, ends));
            }
            assert!(self.out.len() <= 4, "{} trips are out", self.out.len());
            self.answer(token, &call, ends, seen.script);
        }
    }

    fn answer(&mut self, token: u32, call: &Call, ends: u64, script: Script) {
        let at = self.now + self.rng.u64(0..=call.timeout);
        let bad = self.rng.u8(0..10) < self.trouble;
        let response = match self.rng.u8(0..10) {
            _ if !bad && script == Script::Digest && self.rng.u8(0..5) == 0 => ok(no_script()),
            _ if !bad => ok(admits(call)),
            0 => ok(other_seed(Seed { k0: self.rng.u64(1..3), k1: 1 })),
            1 => ok(no_script()),
            2 => status(503),
            3 => reset(),
            4 => ok((0..self.rng.usize(0..50)).map(|_| self.rng.u8(..)).collect()),
            5 => {
                let mut bytes = admits(call);
                let place = self.rng.usize(0..bytes.len());
                bytes[place] = self.rng.u8(..);
                ok(bytes)
            }
            6 => {
                let bytes = admits(call);
                ok(bytes[..self.rng.usize(0..bytes.len())].into())
            }
            7 => status(self.rng.u16(..)),
            // The host has its timer, and is sometimes late.
            8 => {
                let late = self.rng.u64(0..30 * MILLISECOND);
                return self.coming.push(Coming { at: ends + late, token, response: status(504) });
            }
            _ => return,
        };
        self.coming.push(Coming { at, token, response: response.clone() });
        if self.rng.u8(0..8) == 0 {
            self.coming.push(Coming { at: at + self.rng.u64(0..SECOND), token, response });
        }
    }
}

#[test]
fn everybody_is_answered_once_and_in_time() {
    let start = seed::next();
    let mut alone = 0;
    for number in 0..150 {
        let seed = start.wrapping_add(number);
        println!("seed {seed}");
        let mut play = Play::new(seed);
        let ticks = play.rng.u64(200..2000);
        for _ in 0..ticks {
            play.tick();
            play.now += MILLISECOND;
        }
        play.be_silent();
        assert!(play.waiting.is_empty(), "{} wait for ever", play.waiting.len());
        // What nobody waits for may leave only when the trips before it are given up.
        play.be_silent();
        let twice = play.wants.iter().find(|(_, told)| **told != 1);
        assert_eq!(twice, None, "what is wanted is answered once");
        alone += play.alone;
    }
    assert!(alone > 1000, "too tame");
}
