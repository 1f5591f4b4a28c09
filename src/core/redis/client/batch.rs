//! What goes out, and what is out.

use super::{Answered, Desk, ERRANDS, FLIGHTS, GRACE, MOST, Told};
use crate::key::Key;
use crate::port::{self, Call, Callout};
use crate::redis::handle::{Handle, Operation};
use crate::redis::health::Head;
use crate::redis::part::Part;
use crate::redis::protocol::{Answer, Ask, Failure, Login, Outcome, Script, Trip};
use crate::time::{Micros, Now, SECOND};

/// The shortest timeout that a host can tell.
const SHORTEST: Micros = SECOND / 1000;

/// A request's ask that has not left yet.
pub(super) struct Wait {
    pub(super) ticket: u64,
    pub(super) since: Micros,
    pub(super) ask: Ask,
}

/// For whom an ask is on its way.
enum Who {
    Request(u64),
    Store(usize, Key),
    /// What only gives something back.
    Nobody,
}

/// A trip that is out.
pub(super) struct Flight {
    pub(super) token: u32,
    pub(super) trip: Trip,
    /// How it names the script.
    pub(super) script: Script,
    /// Whether it only finds out if Redis is back.
    pub(super) probing: bool,
    /// Who is told of its answer.
    caller: u32,
    pub(super) sent: Now,
    timeout: Micros,
    who: Vec<Who>,
    /// Rules that it is about, those of all asks added up.
    rules: usize,
}

impl Flight {
    /// When its answer is not waited for any more.
    pub(super) fn given_up(&self) -> Micros {
        self.sent.mono.saturating_add(self.timeout + GRACE)
    }

    /// What an answer says.
    pub(super) fn read(
        &self,
        login: &Login,
        answer: &port::Answer<'_>,
        now: Micros,
    ) -> Result<Answer, Failure> {
        match answer.status {
            None if now.saturating_sub(self.sent.mono) < self.timeout => Err(Failure::Reset),
            None | Some(504) => Err(Failure::Timeout),
            Some(503) => Err(Failure::Unreachable),
            Some(200) => self.trip.answer(login, &(answer.body)().unwrap_or_default()),
            Some(_) => Err(Failure::Garbage),
        }
    }

    /// Hands out what Redis decided at this instant.
    pub(super) fn hand_out(self, outcomes: Vec<Outcome>, at: Micros, told: &mut Vec<Told>) {
        let sent = self.sent;
        told.extend(self.who.into_iter().zip(outcomes).filter_map(|(who, outcome)| match who {
            Who::Request(ticket) => {
                Some(Told::Request(ticket, Answered::Decided { outcome, sent, at }))
            }
            Who::Store(store, key) => {
                let opinion = outcome.rules.first().map(|opinion| (*opinion, sent));
                Some(Told::Store(store, key, opinion))
            }
            Who::Nobody => None,
        }));
    }

    /// Leaves those who wait for it to the gateway.
    pub(super) fn give_up(self, told: &mut Vec<Told>) {
        self.tell(&Answered::Alone, told);
    }

    /// Has those who wait for it judged anew.
    pub(super) fn ask_again(self, told: &mut Vec<Told>) {
        self.tell(&Answered::Again, told);
    }

    fn tell(self, answered: &Answered, told: &mut Vec<Told>) {
        told.extend(self.who.into_iter().filter_map(|who| match who {
            Who::Request(ticket) => Some(Told::Request(ticket, answered.clone())),
            Who::Store(store, key) => Some(Told::Store(store, key, None)),
            Who::Nobody => None,
        }));
    }

    fn add_request(&mut self, Wait { ticket, ask, .. }: Wait) {
        self.rules += ask.rules.len();
        self.who.push(Who::Request(ticket));
        self.trip.asks.push(ask);
    }

    fn add_operations(&mut self, operations: Vec<Operation>) {
        self.rules += operations.len();
        for operation in operations {
            let asks = operation.asks();
            let Operation { store, charge } = operation;
            self.who.push(if asks { Who::Store(store, charge.caller) } else { Who::Nobody });
            self.trip.asks.push(Ask { delay: 0, rules: vec![charge] });
        }
    }
}

impl Desk {
    /// Sends as much as may be on its way at once.
    pub(super) fn send_all(
        &mut self,
        now: Now,
        callout: &dyn Callout,
        told: &mut Vec<Told>,
        handle: &mut Handle,
    ) {
        while !handle.is_alone(Part::Whole) && self.may_send(now.mono, handle) {
            let waited = self.waited(now.mono);
            let mut flight = self.flight();
            flight.add_operations(handle.take(ERRANDS));
            while flight.rules < MOST
                && let Some(wait) = self.waiting.pop_front()
            {
                flight.add_request(wait);
            }
            flight.add_operations(handle.take(MOST.saturating_sub(flight.rules)));
            flight.timeout = self.way.timeout.saturating_sub(waited).max(SHORTEST);
            self.send(flight, now, callout, told, handle);
        }
    }

    /// Whether there is something to be sent that should not wait for the trips that are out.
    fn may_send(&self, now: Micros, handle: &Handle) -> bool {
        let long = self.waited(now) >= self.way.timeout / FLIGHTS as u64;
        // Who asks for nothing is in nobody's way.
        match self.flights.iter().filter(|flight| !flight.probing).count() {
            0 => !self.waiting.is_empty() || handle.has_operations(),
            FLIGHTS.. => false,
            _ => self.waiting.len() >= MOST || !self.waiting.is_empty() && long,
        }
    }

    /// How long the oldest ask has waited.
    pub(super) fn waited(&self, now: Micros) -> Micros {
        self.waiting.front().map_or(0, |wait| now.saturating_sub(wait.since))
    }

    /// Finds out whether Redis is back, unless another worker does.
    pub(super) fn send_probe(
        &mut self,
        now: Now,
        callout: &dyn Callout,
        told: &mut Vec<Told>,
        handle: &mut Handle,
    ) {
        let mut takes = false;
        let head = Head::update(&*self.data, &self.key, |head| {
            takes = head.take_probe(now.mono);
            takes
        });
        self.follow(&head, handle);
        if takes {
            self.send(Flight { probing: true, ..self.flight() }, now, callout, told, handle);
        }
    }

    /// A trip that nobody asks for anything yet.
    pub(super) fn flight(&self) -> Flight {
        let (namespace, seed, gateway) = (self.namespace.clone(), self.seed, self.gateway);
        Flight {
            token: 0,
            trip: Trip { namespace, seed, gateway, now: None, asks: Vec::new() },
            script: Script::Digest,
            probing: false,
            caller: 0,
            sent: Now::default(),
            timeout: self.way.timeout,
            who: Vec::new(),
            rules: 0,
        }
    }

    /// Sends a trip.
    pub(super) fn send(
        &mut self,
        mut flight: Flight,
        now: Now,
        callout: &dyn Callout,
        told: &mut Vec<Told>,
        handle: &mut Handle,
    ) {
        (flight.sent, flight.caller) = (now, callout.caller());
        self.happened.trips += 1;
        self.happened.asks += flight.trip.asks.len() as u64;
        let pseudo = [(":method", "POST"), (":path", "/"), (":authority", &self.way.cluster)];
        let call = Call {
            cluster: self.way.cluster.clone(),
            headers: pseudo.map(|(name, value)| (name.into(), value.into())).into(),
            body: flight.trip.pipeline(&self.way.login, flight.script),
            timeout: flight.timeout,
        };
        match callout.send(&call) {
            Ok(token) => {
                flight.token = token;
                self.flights.push(flight);
            }
            Err(why) => self.fail(flight, &Failure::Other(why.into()), now.mono, told, handle),
        }
    }

    /// Sends a trip again with the text of the script, which Redis does not know yet.
    pub(super) fn send_text(
        &mut self,
        mut flight: Flight,
        now: Now,
        callout: &dyn Callout,
        told: &mut Vec<Told>,
        handle: &mut Handle,
    ) {
        let elapsed = now.mono.saturating_sub(flight.sent.mono);
        flight.timeout = flight.timeout.saturating_sub(elapsed).max(SHORTEST);
        flight.script = Script::Text;
        self.send(flight, now, callout, told, handle);
    }

    /// Who made calls has ended, and nobody will be told of their answers: that says nothing about Redis.
    pub fn lose(&mut self, caller: u32) -> Vec<Told> {
        let mut told = Vec::new();
        for lost in self.flights.extract_if(.., |flight| flight.caller == caller) {
            lost.ask_again(&mut told);
        }
        told
    }

    /// Asks for nothing of all that waits.
    pub(super) fn give_up(
        &mut self,
        answered: &Answered,
        told: &mut Vec<Told>,
        handle: &mut Handle,
    ) {
        for Wait { ticket, .. } in self.waiting.drain(..) {
            told.push(Told::Request(ticket, answered.clone()));
        }
        let operations = handle.take(usize::MAX);
        told.extend(operations.into_iter().filter_map(|operation| {
            let asks = operation.asks();
            let Operation { store, charge } = operation;
            asks.then_some(Told::Store(store, charge.caller, None))
        }));
    }
}
