//! Where asks of requests and errands of stores become trips to Redis, and answers are handed out.
//!
//! While a trip is out the next asks gather, so that the busier a worker is, the more of them share a
//! trip. Nobody waits longer than the timeout: then the gateway counts alone, and only probes go out,
//! which no request waits for.

mod batch;
mod offset;
mod stats;

use std::collections::VecDeque;
use std::rc::Rc;

use super::handle::Handle;
use super::health::Head;
use super::part::Part;
use super::protocol::{Answer, Ask, Failure, Login, Opinion, Outcome, Script};
use crate::key::{Key, Seed};
use crate::port::{self, Callout, SharedData};
use crate::time::{Micros, Now, SECOND};
use batch::{Flight, Wait};
use offset::Offset;
pub use stats::Happened;

/// Most rules in a trip: Redis does nothing else meanwhile.
const MOST: usize = 256;

/// How many of them are for errands, however many requests wait.
const ERRANDS: usize = MOST / 4;

/// Trips that may be out at once: if Redis is far away, asks wait no longer than a part of the timeout
/// before they leave.
const FLIGHTS: usize = 4;

/// How long after its timeout an answer is given up; the host makes one up before, unless it was busy
/// or has forgotten who asked.
const GRACE: Micros = SECOND / 250;

/// How Redis is reached.
#[derive(Clone)]
pub struct Way {
    /// The host's name for the bridge to Redis.
    pub cluster: String,
    /// Ticks that an answer may take.
    pub timeout: Micros,
    /// How to get in.
    pub login: Login,
}

/// What became of the ask of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// Redis decided.
    Decided {
        /// As it said.
        outcome: Outcome,
        /// When it was asked.
        sent: Now,
        /// When it decided, on this gateway's monotonic clock.
        at: Micros,
    },
    /// The gateway has to decide alone.
    Alone,
    /// The question came to nothing, since callers are hashed with another secret from now on or since no
    /// answer will be told: the request is to be judged anew, and has waited meanwhile.
    Again,
    /// It was not asked about at all, but waited for permits: it is to be judged anew.
    Anew,
}

/// What there is to hand out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// To the request with this ticket.
    Request(u64, Answered),
    /// To the store with this number: what became of an errand; nothing if it came to nothing.
    Store(usize, Key, Option<(Opinion, Now)>),
}

/// The one place of an engine from which Redis is asked.
pub struct Desk {
    way: Way,
    namespace: Rc<str>,
    data: Rc<dyn SharedData>,
    /// Where [`Head`] is kept.
    key: String,
    /// The secret that callers are hashed with, as far as is known.
    seed: Seed,
    gateway: u64,
    tickets: u64,
    waiting: VecDeque<Wait>,
    flights: Vec<Flight>,
    /// What all workers knew when this one last looked.
    head: Head,
    offset: Offset,
    /// See [`Happened`].
    pub happened: Happened,
}

impl Desk {
    /// A client of one engine. `own` is the secret that is proposed to the fleet, and `random` the number
    /// that this gateway gets if it has none.
    pub fn new(
        way: Way,
        namespace: Rc<str>,
        data: Rc<dyn SharedData>,
        own: Seed,
        random: u64,
    ) -> Desk {
        let key = format!("diana/1/{namespace}/fleet");
        let head = Head::update(&*data, &key, |head| {
            let is_new = head.gateway == 0;
            if is_new {
                head.gateway = random.max(1);
            }
            is_new
        });
        Desk {
            way,
            namespace,
            data,
            key,
            seed: head.seed().unwrap_or(own),
            gateway: head.gateway,
            tickets: 0,
            waiting: VecDeque::new(),
            flights: Vec::new(),
            head,
            offset: Offset::default(),
            happened: Happened::default(),
        }
    }

    /// The secret that callers of rules for the fleet are hashed with.
    #[must_use]
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Whether the fleet counts together.
    #[must_use]
    pub fn is_together(&self) -> bool {
        !self.head.is_alone()
    }

    /// Takes the ask of a request that has waited since then. The ticket under which the answer comes.
    pub fn ask(&mut self, ask: Ask, since: Micros, handle: &mut Handle) -> u64 {
        self.tickets += 1;
        handle.in_use = true;
        let place = self.waiting.partition_point(|wait| wait.since <= since);
        self.waiting.insert(place, Wait { ticket: self.tickets, since, ask });
        self.tickets
    }

    /// When there is something to do the next time.
    #[must_use]
    pub fn next(&self, now: Micros, handle: &Handle) -> Option<Micros> {
        let flights = self.flights.iter().map(|flight| flight.given_up());
        let operations = self.flights.is_empty() && handle.has_operations();
        let leave = operations || !self.waiting.is_empty();
        flights.chain(self.probe(now, handle)).chain(leave.then_some(now)).min()
    }

    fn probe(&self, now: Micros, handle: &Handle) -> Option<Micros> {
        self.head.probe(now).filter(|_| handle.in_use)
    }

    /// Does what is due: sends what waits, gives up what does not come back.
    pub fn work(&mut self, now: Now, callout: &dyn Callout, handle: &mut Handle) -> Vec<Told> {
        let mut told = Vec::new();
        while let Some(late) = self.flights.iter().position(|it| it.given_up() <= now.mono) {
            let flight = self.flights.swap_remove(late);
            self.fail(flight, &Failure::Timeout, now.mono, &mut told, handle);
        }
        let head = Head::read(&*self.data, &self.key);
        self.follow(&head, handle);
        // Whatever the trips that are out bring, for those it comes too late.
        if self.waited(now.mono) >= self.way.timeout + GRACE {
            self.failed(&Failure::Timeout, now.mono, now.mono, false, handle);
        }
        if handle.is_alone(Part::Whole) {
            self.give_up(&Answered::Alone, &mut told, handle);
            if self.probe(now.mono, handle).is_some_and(|probe| probe <= now.mono) {
                self.send_probe(now, callout, &mut told, handle);
            }
        } else {
            self.send_all(now, callout, &mut told, handle);
        }
        told
    }

    /// Takes the answer to a call; nothing if the call was made by somebody else.
    pub fn answer(
        &mut self,
        token: u32,
        answer: &port::Answer<'_>,
        now: Now,
        callout: &dyn Callout,
        handle: &mut Handle,
    ) -> Option<Vec<Told>> {
        let number = self.flights.iter().position(|flight| flight.token == token)?;
        let flight = self.flights.swap_remove(number);
        let mut told = Vec::new();
        match flight.read(&self.way.login, answer, now.mono) {
            Ok(Answer::Decided(decided)) => {
                self.answered(now.mono, decided.gateways, flight.probing, handle);
                self.happened.foreign += decided.foreign;
                let at = self.offset.instant(decided.now, flight.sent.mono, now.mono);
                flight.hand_out(decided.asks, at, &mut told);
            }
            Ok(Answer::Seed(seed)) => {
                let probing = flight.probing;
                flight.ask_again(&mut told);
                self.reseed(seed, &mut told, handle);
                self.answered(now.mono, handle.gateways, probing, handle);
            }
            Err(Failure::NoScript) if flight.script == Script::Digest => {
                self.send_text(flight, now, callout, &mut told, handle);
            }
            Err(failure) => self.fail(flight, &failure, now.mono, &mut told, handle),
        }
        told.extend(self.work(now, callout, handle));
        Some(told)
    }

    /// Redis answered.
    fn answered(&mut self, now: Micros, gateways: u64, probing: bool, handle: &mut Handle) {
        let seed = self.seed;
        let mut back = false;
        let head = Head::update(&*self.data, &self.key, |head| {
            let was_alone = head.is_alone();
            let changed = head.answered(now, gateways, probing);
            back = was_alone && !head.is_alone();
            head.agree(seed) || changed
        });
        self.follow(&head, handle);
        if back {
            let line = format!(
                "rules for the fleet: Redis (cluster `{}`) is back; the fleet counts together",
                self.way.cluster
            );
            self.happened.news.push(line);
        }
    }

    /// A trip came to nothing.
    fn fail(
        &mut self,
        flight: Flight,
        failure: &Failure,
        now: Micros,
        told: &mut Vec<Told>,
        handle: &mut Handle,
    ) {
        self.failed(failure, now, flight.sent.mono, flight.probing, handle);
        flight.give_up(told);
    }

    /// Redis was asked in vain.
    fn failed(
        &mut self,
        failure: &Failure,
        now: Micros,
        sent: Micros,
        probing: bool,
        handle: &mut Handle,
    ) {
        self.happened.fail(failure.name());
        let mut left = false;
        let head = Head::update(&*self.data, &self.key, |head| {
            let was_alone = head.is_alone();
            let changed = head.failed(now, sent, probing);
            left = !was_alone && head.is_alone();
            changed
        });
        self.follow(&head, handle);
        if left {
            let line = format!(
                "rules for the fleet: Redis (cluster `{}`) cannot be relied upon: {failure}; this gateway \
                 goes by itself until it is back",
                self.way.cluster
            );
            self.happened.news.push(line);
        }
    }

    /// The fleet's secret is this one. What goes by another is of no use any more.
    fn reseed(&mut self, seed: Seed, told: &mut Vec<Told>, handle: &mut Handle) {
        if self.seed != seed {
            self.seed = seed;
            self.give_up(&Answered::Again, told, handle);
        }
    }

    /// Tells what is known of Redis.
    pub fn tell(&self, handle: &mut Handle) {
        handle.alone = self.head.is_alone();
        handle.gateways = self.head.gateways.max(1);
    }

    /// Goes by what all workers know.
    fn follow(&mut self, head: &Head, handle: &mut Handle) {
        self.head = *head;
        self.tell(handle);
    }
}
