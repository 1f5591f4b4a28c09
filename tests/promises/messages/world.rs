//! A fleet of gateways and one Redis: requests come, messages are lost, doubled and late, gateways and Redis fail.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_policy::time::{DAY, Micros, Now, SECOND};
use kit::choices::Choices;
use kit::module::Gateway;

use super::case::{Case, Size};
use super::network::{Message, Network, Way};

/// Noon, and a tick after a full minute.
const NOON: Now = Now { mono: DAY, wall: 20_000 * DAY + DAY / 2 };
const MINUTE: Micros = 60 * SECOND;

/// The longest time until a request is decided, without the timeout: the time after which the module waits for no report of it,
/// and a tick of the timer.
const GRACE: Micros = SECOND / 250 + SECOND / 1000;

/// How late a call may come: Redis then still knows the other attempts of its batch.
const SOON: Micros = SECOND / 500;
const LATEST: Micros = 19 * SECOND / 10;

/// After which requests that were admitted are reported.
const REPORTS: Micros = SECOND / 50 + SECOND / 1000;

/// Requests that make a caller busy, and the time between them.
const BUSY: usize = 22;
const OFTEN: Micros = SECOND / 50;
pub const BUSY_FOR: Micros = 2 * SOON + BUSY as Micros * OFTEN;

/// The pause of a call after another one where Redis is far, then that of a probe after a failure.
const PAUSES: [Micros; 2] = [SECOND / 4, SECOND / 10];

/// An outage of one worker, within the pause of a call of another one.
const OUTAGE: Micros = SECOND * 4 / 25;

/// After which an outage leaves no trace in the breaker.
const CALM: Micros = 12 * SECOND;

/// After which the fleet is at rest: breakers are closed, leases returned, demand is forgotten, the slots of dead gateways
/// free.
const REST: Micros = 21 * SECOND / 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The message with this index arrives.
    Arrival(usize),
    /// There is no further event.
    Over,
    /// A gateway gets a request.
    Request(usize),
    /// An admitted request ends, with the permits that it used.
    End(usize, u64),
    /// The timer of a gateway fires that must call soon.
    Tick,
    /// Time passes until this instant. Redis answers new calls if this is true.
    Wait(Micros, bool),
    Loss(usize),
    Copy(usize),
    /// The connection of a call ends, before or after it arrives.
    Reset(usize),
    /// The same, also when it is sent again.
    Refusal(usize),
    /// A gateway ends, with all that it knows.
    Death(usize),
    /// Another gateway begins.
    Birth,
    /// Another configuration applies in a gateway, with the same rules.
    Reload(usize),
    /// A gateway stops, and continues.
    Still(usize),
    Wake(usize),
    /// A gateway cannot reach Redis, and can again.
    Cut(usize),
    Mend(usize),
    /// Redis has its first calls only.
    Forgets(usize),
}

struct Life {
    /// `None` after its end.
    gateway: Option<Gateway>,
    is_still: bool,
    is_cut: bool,
    /// Whether any of its messages was late or lost, so that it may have used its share.
    has_failed: bool,
    /// Whether it has had a reply, so that it knows the secret of the fleet.
    has_reply: bool,
    /// When a call failed twice, until a later question has a reply: Redis is not asked then.
    failed_at: Option<Micros>,
    /// Permits that it admitted and that no reply contains, and the most of them.
    unknown: u64,
    most_unknown: u64,
}

struct Request {
    life: usize,
    stream: u32,
    arrived: Micros,
    passes: Option<bool>,
    /// When it was decided, and whether by a reply.
    decided: Micros,
    by_reply: bool,
    /// Whether its gateway had never had a reply: Redis cannot know the caller of its share.
    is_unknown: bool,
    /// The permits that it used, once it has ended.
    used: Option<u64>,
}

pub struct World<'c> {
    case: &'c Case,
    left: Size,
    now: Rc<Cell<Now>>,
    lives: Vec<Life>,
    network: Network,
    requests: Vec<Request>,
    /// Whether all messages have arrived once and in time.
    is_calm: bool,
    /// How often Redis has lost data.
    losses: u64,
    /// Whether the latest event was a timer.
    has_ticked: bool,
}

/// Runs a world until it ends, or until a state that another one had. Returns its outcome in the first case.
pub fn world(case: &Case, size: Size, choices: &mut Choices) -> Option<String> {
    let mut world = World::new(case, size);
    loop {
        let events = world.events();
        match events[choices.pick(events.len())] {
            Event::Over => break,
            event => world.happens(event),
        }
        world.collect(false);
        if choices.is_known(world.hash()) {
            return None;
        }
    }
    Some(world.close())
}

impl World<'_> {
    fn new(case: &Case, size: Size) -> World<'_> {
        let wall = case.before_edge.map_or(NOON.wall, |before| NOON.wall + MINUTE - before);
        let mut world = World {
            case,
            left: size,
            now: Rc::new(Cell::new(Now { wall, ..NOON })),
            lives: Vec::new(),
            network: Network::default(),
            requests: Vec::new(),
            is_calm: true,
            losses: 0,
            has_ticked: false,
        };
        let lives = size.gateways * case.workers;
        (0..lives).for_each(|_| world.begin());
        // Each gets the secret of the fleet.
        (0..lives).for_each(|life| world.ask(life, "other"));
        world.pass(world.mono() + 2 * SOON, true);
        assert!(world.requests.iter().all(|request| request.passes.is_some()));
        if case.reloads {
            // An earlier configuration that has no request ends.
            (0..lives).for_each(|number| world.end(number, case.reserve));
            world.pass(world.mono() + 2 * SOON, true);
        }
        for _ in 0..if case.is_spent { case.limit } else { 0 } {
            world.ask(0, "caller");
            world.pass(world.mono() + SOON, true);
        }
        world.requests.clear();
        world.network.forget();
        for _ in 0..if case.is_busy { BUSY } else { 0 } {
            world.ask(0, "caller");
            world.pass(world.mono() + OFTEN, true);
        }
        for _ in 0..case.calls {
            world.ask(0, "caller");
            world.pass(world.mono() + PAUSES[0] + SOON, false);
        }
        if case.stands_still {
            // The first worker waits for a reply, and then for its turn to ask again. There it stands still.
            world.ask(0, "caller");
            world.pass(world.mono() + SOON, false);
            world.ask(0, "caller");
            world.change(Event::Still(0));
        }
        world
    }

    fn begin(&mut self) {
        let number = self.lives.len() as u64 + 1;
        let policy = &self.case.policy;
        let is_beside = !self.lives.len().is_multiple_of(self.case.workers);
        let before = self.lives.last().filter(|_| is_beside).and_then(|it| it.gateway.as_ref());
        let gateway = match before {
            Some(before) => before.beside(policy, number),
            None => Gateway::new(policy, self.now.clone(), number),
        };
        self.lives.push(Life {
            gateway: Some(gateway),
            is_still: false,
            is_cut: false,
            has_failed: false,
            has_reply: false,
            failed_at: None,
            unknown: 0,
            most_unknown: 0,
        });
    }

    fn mono(&self) -> Micros {
        self.now.get().mono
    }

    /// The longest time until a request is decided.
    fn decided(&self) -> Micros {
        self.case.timeout + GRACE
    }

    /// The gateway of a life, unless it has ended or stands still.
    fn running(&mut self, life: usize) -> Option<&mut Gateway> {
        let Life { gateway, is_still, .. } = &mut self.lives[life];
        gateway.as_mut().filter(|_| !*is_still)
    }

    fn runs(&self, life: usize) -> bool {
        self.lives[life].gateway.is_some() && !self.lives[life].is_still
    }

    fn is_under_way(&self) -> bool {
        self.network.messages.iter().any(|message| !matches!(message.way, Way::Nowhere))
    }

    /// Returns true if a message can arrive.
    fn can_arrive(&self, message: &Message) -> bool {
        match (&message.way, message.owner) {
            (Way::There, _) => true,
            (Way::Back(_), Some((life, _))) => self.runs(life),
            _ => false,
        }
    }

    /// All that may happen next.
    fn events(&self) -> Vec<Event> {
        let (left, messages) = (self.left, &self.network.messages);
        let mut events = Vec::new();
        let under_way = || messages.iter().enumerate();
        events
            .extend(under_way().filter(|it| self.can_arrive(it.1)).map(|it| Event::Arrival(it.0)));
        let is_soon = self.next_tick().is_some_and(|due| due <= self.mono() + SOON)
            && !(self.has_ticked && self.case.ticks_once);
        events.extend(is_soon.then_some(Event::Tick));
        if left.requests == 0 && !self.is_under_way() && !is_soon {
            events.push(Event::Over);
        }
        let running: Vec<usize> = (0..self.lives.len()).filter(|life| self.runs(*life)).collect();
        if left.requests > 0 {
            // At first they are all alike, until something happens to one of them.
            let is_new = |life: &Life| life.gateway.is_some() && !life.has_failed;
            let begun = left.gateways * self.case.workers;
            let are_alike = self.lives.len() == begun && self.lives.iter().all(is_new);
            let is_first = self.requests.is_empty() && are_alike && !self.case.is_busy;
            let few = if is_first { 1 } else { running.len() };
            events.extend(running.iter().take(few).map(|life| Event::Request(*life)));
        }
        for (number, request) in self.requests.iter().enumerate() {
            if request.passes == Some(true) && request.used.is_none() && self.runs(request.life) {
                events.extend(self.case.used.iter().map(|used| Event::End(number, *used)));
            }
        }
        // With messages under way, these are late.
        let now = self.mono();
        if left.waits > 0 && self.case.is_far() {
            let is_one = !self.case.stands_still && self.case.calls == 0;
            let pause = match is_one {
                true => PAUSES[PAUSES.len() - left.waits],
                false if self.case.calls > 0 => PAUSES[0],
                false => OUTAGE,
            };
            // At first other calls are made beside those that are pending.
            let serves = !is_one || left.waits < PAUSES.len();
            events.push(Event::Wait(now + pause + SOON, serves));
        } else if left.waits > 0 && (!self.is_under_way() || left.faults > 0) {
            if !messages.is_empty() {
                let late = [self.case.timeout / 2 + SOON, self.decided()];
                events.extend(late.map(|it| Event::Wait(now + it, false)));
            }
            if self.case.asks_after {
                events.push(Event::Wait(now + REPORTS, false));
            }
            if let Some(before) = self.case.before_edge {
                let edge = NOON.mono + before;
                let instants = [edge - 1, edge].into_iter().filter(|at| *at > now);
                events.extend(instants.map(|at| Event::Wait(at, true)));
            }
            if !self.case.is_busy || self.case.before_edge.is_none() {
                events.extend([6, 18].map(|tenths| Event::Wait(now + tenths * SECOND / 10, true)));
            }
            let is_over = messages.is_empty() && self.requests.iter().all(|it| it.passes.is_some());
            if is_over && self.lives.iter().any(|life| life.has_failed) {
                events.push(Event::Wait(now + CALM, true));
            }
        }
        if left.faults > 0 {
            for (index, message) in under_way().filter(|it| it.1.owner.is_some()) {
                if !matches!(message.way, Way::Nowhere) {
                    match self.case.is_far() {
                        true => events.push(Event::Refusal(index)),
                        false => events.extend([Event::Loss(index), Event::Reset(index)]),
                    }
                }
                if matches!(message.way, Way::There) && !self.case.is_far() {
                    events.push(Event::Copy(index));
                }
            }
        }
        for (life, it) in self.lives.iter().enumerate().filter(|(_, it)| it.gateway.is_some()) {
            events.extend(it.is_still.then_some(Event::Wake(life)));
            events.extend(it.is_cut.then_some(Event::Mend(life)));
            if left.cuts > 0 {
                events.extend((!it.is_cut).then_some(Event::Cut(life)));
            }
            if left.changes > 0 && self.case.reloads {
                events.push(Event::Reload(life));
            } else if left.changes > 0 {
                events.extend((!it.is_still).then_some(Event::Still(life)));
                let others = self.lives.iter().filter(|other| other.gateway.is_some()).count() - 1;
                events.extend((others > 0).then_some(Event::Death(life)));
            }
        }
        if left.changes > 0 && !self.case.reloads {
            events.push(Event::Birth);
            let had = self.network.had();
            events.extend([0, had - 1, had.saturating_sub(2)].map(Event::Forgets));
        }
        events
    }

    fn happens(&mut self, event: Event) {
        self.has_ticked = event == Event::Tick;
        match event {
            Event::Over => {}
            Event::Arrival(index) => self.arrive(index),
            Event::Request(life) => {
                self.left.requests -= 1;
                (0..self.case.flood).for_each(|_| self.ask(life, "caller"));
            }
            Event::End(request, used) => self.end(request, used),
            Event::Tick => _ = self.pass_to_next(Micros::MAX),
            Event::Wait(until, serves) => {
                self.left.waits -= 1;
                if self.is_under_way() && !self.case.is_far() {
                    self.left.faults -= 1;
                    for message in &self.network.messages {
                        if let Some((life, _)) = message.owner.filter(|_| message.given_up <= until)
                        {
                            (self.is_calm, self.lives[life].has_failed) = (false, true);
                        }
                    }
                }
                self.pass(until, serves);
            }
            Event::Loss(index) => {
                (self.left.faults, self.is_calm) = (self.left.faults - 1, false);
                let message = &mut self.network.messages[index];
                message.way = Way::Nowhere;
                message.owner.iter().for_each(|(life, _)| self.lives[*life].has_failed = true);
            }
            Event::Copy(index) => {
                self.left.faults -= 1;
                let copy = Message { owner: None, ..self.network.messages[index].clone() };
                self.network.messages.push(copy);
            }
            Event::Reset(index) => {
                (self.left.faults, self.is_calm) = (self.left.faults - 1, false);
                let Message { owner, .. } = self.network.messages.remove(index);
                let Some((life, token)) = owner else { return };
                self.lives[life].has_failed = true;
                if let Some(gateway) = self.running(life) {
                    gateway.answer(token, None, b"");
                }
            }
            Event::Reload(life) => {
                self.left.changes -= 1;
                let policy = &self.case.policy;
                if let Some(gateway) = &mut self.lives[life].gateway {
                    gateway.configure(policy);
                }
            }
            Event::Refusal(index) => {
                (self.left.faults, self.is_calm) = (self.left.faults - 1, false);
                let Message { owner, call, .. } = self.network.messages.remove(index);
                let Some((life, token)) = owner else { return };
                (self.lives[life].is_cut, self.lives[life].has_failed) = (true, true);
                if let Some(gateway) = self.running(life) {
                    gateway.answer(token, 503, b"");
                    self.collect(false);
                    // Unless another attempt has a reply, or may have one.
                    if self.network.is_lost(&call) {
                        self.lives[life].failed_at = Some(self.mono());
                    }
                }
                self.lives[life].is_cut = false;
            }
            Event::Wake(life) => self.lives[life].is_still = false,
            Event::Mend(life) => self.mend(life),
            Event::Cut(life) => {
                (self.left.cuts, self.is_calm) = (self.left.cuts - 1, false);
                (self.lives[life].is_cut, self.lives[life].has_failed) = (true, true);
                if self.case.refuses {
                    self.refuse(life);
                } else {
                    self.reset(life);
                }
            }
            Event::Death(_) | Event::Birth | Event::Still(_) | Event::Forgets(_) => {
                (self.left.changes, self.is_calm) = (self.left.changes - 1, false);
                self.change(event);
            }
        }
    }

    /// The host of a gateway refuses calls, or makes them again.
    fn refuse(&mut self, life: usize) {
        let Life { gateway, is_cut, .. } = &mut self.lives[life];
        gateway.iter_mut().for_each(|it| it.refuse_calls(*is_cut));
    }

    fn mend(&mut self, life: usize) {
        self.lives[life].is_cut = false;
        if self.case.refuses {
            self.refuse(life);
        }
    }

    fn change(&mut self, event: Event) {
        match event {
            Event::Death(life) => {
                self.lives[life].gateway = None;
                for message in &mut self.network.messages {
                    message.owner = message.owner.filter(|owner| owner.0 != life);
                }
                self.network
                    .messages
                    .retain(|it| it.owner.is_some() || matches!(it.way, Way::There));
            }
            Event::Birth => self.begin(),
            Event::Still(life) => {
                (self.lives[life].is_still, self.lives[life].has_failed) = (true, true);
            }
            Event::Forgets(kept) => {
                self.losses += 1;
                self.network.lose(kept);
            }
            _ => {}
        }
    }

    /// The connections of a gateway to Redis end.
    fn reset(&mut self, life: usize) {
        let is_its = |it: &mut Message| it.owner.is_some_and(|owner| owner.0 == life);
        let ended: Vec<Message> = self.network.messages.extract_if(.., is_its).collect();
        if let Some(gateway) = self.running(life) {
            for (_, token) in ended.into_iter().filter_map(|message| message.owner) {
                gateway.answer(token, 503, b"");
            }
        }
    }

    fn ask(&mut self, life: usize, account: &str) {
        let arrived = self.mono();
        // One flood after another.
        let has_other = self.case.has_plans && self.left.requests % 2 == 1;
        let Some(gateway) = self.running(life) else { return };
        let stream = gateway.request_under(account, if has_other { "other" } else { "" });
        let is_unknown = !self.lives[life].has_reply;
        let (passes, decided, by_reply, used) = Default::default();
        let request =
            Request { life, stream, arrived, passes, decided, by_reply, is_unknown, used };
        self.requests.push(request);
        if self.lives[life].failed_at.is_some() {
            self.decide(life, false);
            let is_decided = self.requests.last().is_some_and(|it| it.passes.is_some());
            assert!(is_decided, "a request waits for Redis before a rehearsal");
        }
    }

    fn end(&mut self, request: usize, used: u64) {
        let Request { life, stream, .. } = self.requests[request];
        self.requests[request].used = Some(used);
        if let Some(gateway) = self.running(life) {
            gateway.end(stream, used);
        }
    }

    /// A message arrives.
    fn arrive(&mut self, index: usize) {
        let Message { owner, call, way, sent, .. } = self.network.messages[index].clone();
        match (way, owner) {
            (Way::There, owner) => {
                // Redis runs one call after the other, so replies to two workers differ in its time.
                let runs = if self.case.workers > 1 { self.network.had() as Micros } else { 0 };
                let wall = self.now.get().wall + runs;
                let (left, has_answer) = self.network.arrive(index, wall);
                // Nobody waits for a copy, which may come after the next call.
                assert!(
                    has_answer || owner.is_none(),
                    "a gateway waits for a call without an answer"
                );
                if let (Some(left), Some((life, _))) = (left, owner) {
                    self.check_arrears(life, sent, left);
                }
            }
            (Way::Back(reply), Some((life, token))) => {
                self.network.messages.remove(index);
                let reported = self.network.answered(&call);
                let it = &mut self.lives[life];
                it.has_reply = true;
                it.unknown = it.unknown.saturating_sub(reported);
                let workers = self.case.workers;
                let gateway = self.lives.chunks_mut(workers).nth(life / workers);
                for it in gateway.into_iter().flatten() {
                    it.failed_at = it.failed_at.filter(|at| sent <= *at || !call.asks());
                }
                if let Some(gateway) = self.running(life) {
                    gateway.answer(token, 200, &reply);
                    self.decide(life, true);
                }
            }
            _ => {}
        }
    }

    /// A call contains the arrears of its gateway, and Redis charges them before it decides.
    fn check_arrears(&self, life: usize, sent: Micros, left: u64) {
        let Case { limit, workers, .. } = *self.case;
        if !self.case.is_exact() || self.losses > 0 {
            return;
        }
        let is_own = |it: &&Request| it.life / workers == life / workers;
        // Another worker may admit a request between a question and its call.
        let is_before = |it: &Request| it.decided + if workers > 1 { 2 * SOON } else { 0 } < sent;
        let is_owed = |it: &&Request| !it.by_reply && !it.is_unknown && is_before(it);
        let owed = self.requests.iter().filter(is_own).filter(is_owed);
        let owed: u64 = owed.map(|request| self.permits(request)).sum();
        let granted = self.network.all_granted();
        assert!(
            limit - left >= limit.min(granted + owed),
            "{left} remain of {limit}, {granted} granted and {owed} owed"
        );
    }

    /// Collects calls and decisions. If `serves` is true, Redis answers the calls at once.
    fn collect(&mut self, serves: bool) {
        let (now, mut is_done) = (self.mono(), false);
        while !is_done {
            is_done = true;
            for (life, it) in self.lives.iter_mut().enumerate() {
                let Some(gateway) = &mut it.gateway else { continue };
                for call in gateway.take_calls() {
                    is_done = false;
                    let times = (now, call.timeout);
                    self.network.send((life, call.token), call.body, times, gateway.seen);
                    if it.is_cut {
                        // Returns are sent once.
                        self.network.messages.pop();
                        gateway.answer(call.token, 503, b"");
                    }
                }
            }
            (0..self.lives.len()).for_each(|life| self.decide(life, false));
            while serves && let Some(index) = self.served() {
                self.arrive(index);
                is_done = false;
            }
        }
        self.check();
    }

    /// Collects the decisions of a gateway, which Redis has made if `is_reply` is true.
    fn decide(&mut self, life: usize, is_reply: bool) {
        let now = self.mono();
        let Some(gateway) = &mut self.lives[life].gateway else { return };
        for (stream, passes) in gateway.take_decided() {
            let is_it = |it: &&mut Request| (it.life, it.stream) == (life, stream);
            let request = self.requests.iter_mut().rev().find(is_it);
            let request = request.expect("a request of the world");
            (request.passes, request.decided, request.by_reply) = (Some(passes), now, is_reply);
            if passes && self.case.asks_after {
                let Life { unknown, most_unknown, .. } = &mut self.lives[life];
                *unknown += 1;
                *most_unknown = (*most_unknown).max(*unknown);
            }
            if passes && !is_reply && self.case.is_plain() {
                // What Redis granted counts, too, and leased permits may be spent.
                // Reservations by Redis of open requests do not count.
                let is_open = |it: &Request| it.by_reply && it.used.is_none();
                let workers = self.case.workers;
                let is_own = |it: &&Request| it.life / workers == life / workers;
                let own = self.requests.iter().filter(is_own);
                let own = own.filter(|it| self.case.used.is_empty() || !is_open(it));
                let admitted = own.map(|request| self.permits(request)).sum::<u64>();
                let share = self.case.share(self.left.gateways);
                let leased = if self.case.is_busy { self.network.granted(life) } else { 0 };
                let most = share.max(leased);
                assert!(admitted <= most, "{admitted} of a share of {share}, {leased} leased");
            }
        }
    }

    /// The most permits beyond the limit: of requests that used more than they reserved; and of gateways that ask after, all that
    /// these had admitted without a reply, but for one.
    fn over(&self) -> u64 {
        let gateways = || self.lives.chunks(self.case.workers);
        let unknown =
            || gateways().map(|workers| workers.iter().map(|life| life.most_unknown).sum::<u64>());
        let used = self.requests.iter().filter_map(|request| request.used);
        let more: u64 = used.map(|used| used.saturating_sub(self.case.reserve)).sum();
        more + unknown().sum::<u64>() - unknown().min().unwrap_or(0)
    }

    /// A message that arrives in time.
    fn served(&self) -> Option<usize> {
        let now = self.mono();
        let is_new = |message: &Message| message.sent == now && message.owner.is_some();
        self.network.messages.iter().position(|it| is_new(it) && self.can_arrive(it))
    }

    /// Time passes until this instant. If `serves` is true, Redis answers the calls of this time at once.
    fn pass(&mut self, until: Micros, serves: bool) {
        self.collect(serves);
        while self.pass_to_next(until) {
            self.collect(serves);
        }
    }

    /// When the next timer fires.
    fn next_tick(&self) -> Option<Micros> {
        let running = (0..self.lives.len()).filter(|life| self.runs(*life));
        running.filter_map(|life| self.lives[life].gateway.as_ref()?.due()).min()
    }

    /// Time passes until a timer fires, or a call is given up, but not beyond `until`. Returns false if that comes first.
    fn pass_to_next(&mut self, until: Micros) -> bool {
        let messages = self.network.messages.iter();
        let waiting = messages.filter(|it| it.owner.is_some_and(|(life, _)| self.runs(life)));
        let next =
            self.next_tick().into_iter().chain(waiting.map(|message| message.given_up)).min();
        let at = next.unwrap_or(until).clamp(self.mono(), until);
        self.now.set(self.now.get().later(at - self.mono()));
        // Redis no longer knows their batches.
        self.network.messages.retain(|it| it.owner.is_some() || at < it.sent + LATEST);
        if next.is_none_or(|next| next > until) {
            return false;
        }
        for index in 0..self.network.messages.len() {
            let Message { owner, given_up, .. } = self.network.messages[index];
            let Some((life, token)) = owner.filter(|_| given_up <= at) else { continue };
            if let Some(gateway) = self.running(life) {
                gateway.answer(token, 504, b"");
                self.network.messages[index].owner = None;
            }
        }
        let is_left = |it: &Message| it.owner.is_some() || matches!(it.way, Way::There);
        self.network.messages.retain(is_left);
        for life in 0..self.lives.len() {
            if let Some(gateway) = self.running(life)
                && gateway.due().is_some_and(|due| due <= at)
            {
                gateway.tick();
            }
        }
        true
    }

    /// The permits of an admitted request: those that it used, or reserves.
    fn permits(&self, request: &Request) -> u64 {
        match request.passes {
            Some(true) if self.case.is_in_flight => u64::from(request.used.is_none()),
            Some(true) => request.used.unwrap_or(self.case.reserve),
            _ => 0,
        }
    }

    fn admitted(&self) -> u64 {
        self.requests.iter().map(|request| self.permits(request)).sum()
    }

    /// The laws that hold at every instant.
    fn check(&self) {
        let Case { limit, .. } = *self.case;
        for request in self.requests.iter().filter(|it| it.passes.is_none()) {
            let waited = self.mono() - request.arrived;
            assert!(
                !self.runs(request.life)
                    || waited <= self.decided()
                    || !self.is_calm && waited <= 3 * SECOND,
                "a request waits for {waited}"
            );
        }
        if !self.is_calm {
            return;
        }
        if let Some(before) = self.case.before_edge {
            // In the next window no refusal of the last one holds.
            let later = self.requests.iter().filter(|it| it.arrived >= NOON.mono + before);
            let is_refused = later.clone().any(|it| it.passes == Some(false));
            let undecided = later.filter(|it| it.passes.is_none()).count() as u64;
            let granted = self.network.all_granted_since(NOON.wall + MINUTE);
            let is_full = granted + undecided >= limit;
            assert!(!is_refused || is_full || self.case.is_busy, "a request was refused that fits");
            return;
        }
        let admitted = self.admitted();
        assert!(admitted <= limit + self.over(), "{admitted} permits");
        // While no message is lost.
        let undecided = self.requests.iter().filter(|it| it.passes.is_none()).count() as u64;
        let is_refused = self.requests.iter().any(|it| {
            it.passes == Some(false) && self.left_beside(it.life).is_none_or(|left| left > 0)
        });
        let is_full = admitted + undecided * self.case.reserve >= limit;
        assert!(
            // While permits are leased, a refusal is not final.
            !is_refused || is_full || self.case.is_in_flight || self.case.is_busy,
            "a request was refused that fits"
        );
    }

    /// Permits that a gateway has left of the other rule: each request that passes has one, and none that is refused.
    fn left_beside(&self, life: usize) -> Option<u64> {
        let passed = self.requests.iter().filter(|it| it.life == life && it.passes == Some(true));
        // Its first request had one, too.
        let passed = 1 + passed.count() as u64;
        assert!(self.case.beside == 0 || passed <= self.case.beside, "{passed} by the other rule");
        self.case.beside.checked_sub(passed)
    }

    /// Another caller gets all that is left of the other rule.
    fn end_beside(&mut self) {
        // The other laws are about one caller.
        self.is_calm = false;
        let lives = if self.case.beside > 0 { self.left.gateways } else { 0 };
        for life in 0..lives {
            let (left, before) = (self.left_beside(life).unwrap_or(0), self.requests.len());
            for number in 0..=left {
                self.ask(life, &format!("probe {number}"));
                self.pass(self.mono() + 2 * SOON, true);
            }
            let passed = self.requests[before..].iter().filter(|it| it.passes == Some(true));
            assert_eq!(passed.count() as u64, left, "left of the other rule");
        }
    }

    /// All messages arrive, the fleet becomes quiet, and Redis reports its charges.
    fn close(&mut self) -> String {
        let living = |life: &&mut Life| life.gateway.is_some();
        for life in self.lives.iter_mut().filter(living) {
            life.is_still = false;
        }
        (0..self.lives.len()).for_each(|life| self.mend(life));
        // It is not asked, also if a late reply has come in the meantime. And a new configuration looks for Redis once it has a request.
        for life in 0..self.lives.len() {
            if self.lives[life].failed_at.is_some() || self.case.reloads {
                self.ask(life, "caller");
            }
        }
        self.pass(self.mono() + if self.is_calm { SOON } else { self.decided() }, true);
        for number in 0..self.requests.len() {
            let Request { passes, used, .. } = self.requests[number];
            if let (Some(true), None, Some(most)) = (passes, used, self.case.used.last()) {
                self.end(number, *most);
            }
        }
        let Case { is_in_flight, is_busy, asks_after, .. } = *self.case;
        let is_lasting = is_in_flight || is_busy || asks_after || !self.is_calm;
        let before = self.network.had();
        self.pass(self.mono() + if is_lasting { REST } else { SOON }, true);
        self.collect(true);
        let renewals = self.network.renewals(before);
        assert!(renewals <= self.lives.len(), "{renewals} blocks are asked for without a request");
        let is_left = |request: &Request| request.passes.is_none() && self.runs(request.life);
        assert!(!self.requests.iter().any(is_left), "a request is never decided");
        self.end_laws();
        self.end_beside();
        let requests = self.requests.iter().map(|it| (it.life, it.arrived, it.passes, it.used));
        format!("{:?}, {} lost", requests.collect::<Vec<_>>(), self.network.lost())
    }

    fn end_laws(&mut self) {
        let (admitted, lost) = (self.admitted(), self.network.lost());
        let (limit, share) = (self.case.limit, self.case.share(self.left.gateways));
        let failed = self.lives.iter().filter(|life| life.has_failed).count() as u64;
        if !self.case.is_in_flight && self.case.before_edge.is_none() {
            let most = limit * (1 + self.losses) + failed * share + self.over();
            assert!(admitted <= most, "{admitted} permits of {most}");
        }
        // What passes in a window is charged in it.
        for life in (0..self.lives.len()).filter(|life| !self.lives[*life].has_failed) {
            let Some(before) = self.case.before_edge else { break };
            let is_later = |it: &&Request| it.life == life && it.arrived >= NOON.mono + before;
            let passed = self.requests.iter().filter(is_later).filter(|it| it.passes == Some(true));
            let (passed, granted) =
                (passed.count() as u64, self.network.granted_since(life, NOON.wall + MINUTE));
            assert!(passed <= granted, "{passed} of {granted} granted in this window");
        }
        // All costs are settled, so a request that is refused waits for the end of the window.
        if self.case.used.len() > 1 && !self.case.has_room() && self.is_calm {
            self.network.is_soon = false;
            self.ask(0, "caller");
            self.pass(self.mono() + SOON, true);
            assert!(!self.network.is_soon, "only reservations are missing");
        }
        // Blocks that are not returned may be all that was left.
        if !self.case.has_room()
            || self.case.before_edge.is_some()
            || self.case.is_busy && !self.is_calm
        {
            return;
        }
        let before = self.requests.len();
        // One worker of each gateway: another one may have to wait for its lease.
        let mut probing = (0..self.lives.len()).step_by(self.case.workers);
        if self.case.beside > 0 {
            // The others have used up the other rule.
            self.begin();
            probing = (self.lives.len() - 1..self.lives.len()).step_by(1);
        }
        let living: Vec<usize> = probing.filter(|life| self.runs(*life)).collect();
        for life in &living {
            self.ask(*life, "caller");
            let soon = if self.case.asks_after { 2 * REPORTS + SOON } else { 2 * SOON };
            self.pass(self.mono() + soon, true);
        }
        let probes = living.len() as u64;
        assert!(self.requests[before..].iter().all(|it| it.passes == Some(true)), "there is room");
        let charged = limit - self.network.left - probes;
        if self.case.is_in_flight {
            assert_eq!(charged, 0, "slots in use");
        } else {
            // Settlements that a gateway had not sent before its end.
            let dead = |it: &&Request| self.lives[it.life].gateway.is_none();
            let most = self.case.used.iter().copied().max().unwrap_or(0).max(self.case.reserve);
            let unsent = self.requests[..before].iter().filter(dead).count() as u64 * most;
            let reported = admitted + lost;
            let is_unknown = |it: &&Request| it.is_unknown && !it.by_reply;
            let unknown = self.requests[..before].iter().filter(is_unknown);
            let unsent = unsent + unknown.map(|it| self.permits(it)).sum::<u64>();
            // Arrears wait for the next question, and the other rule lets none pass.
            let by_share = self.requests[..before].iter().filter(|it| !it.by_reply);
            let by_share = by_share.map(|it| self.permits(it)).sum::<u64>();
            let owed = if self.case.beside > 0 { by_share } else { 0 };
            // A Redis that loses data loses charges and settlements.
            let all = match self.losses {
                0 => reported.saturating_sub(unsent + owed)..=reported + unsent,
                _ => {
                    0..=self.requests.iter().filter(|it| it.passes == Some(true)).count() as u64
                        * most
                        + lost
                }
            };
            assert!(
                all.contains(&charged),
                "{charged} charged of {admitted} admitted and {lost} lost"
            );
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Size { requests, waits, faults, changes, cuts, .. } = self.left;
        (requests, waits, faults, changes, cuts, self.mono()).hash(&mut hasher);
        (self.is_calm, self.losses).hash(&mut hasher);
        (self.has_ticked && self.case.ticks_once).hash(&mut hasher);
        for life in &self.lives {
            let Life { gateway, is_still, is_cut, has_failed, has_reply, .. } = life;
            let Life { failed_at, unknown, most_unknown, .. } = life;
            let seen = gateway.as_ref().map(|gateway| gateway.seen);
            (seen, is_still, is_cut, has_failed, has_reply).hash(&mut hasher);
            (failed_at, unknown, most_unknown).hash(&mut hasher);
        }
        for Request { life, stream, passes, used, .. } in &self.requests {
            (life, stream, passes, used).hash(&mut hasher);
        }
        self.network.hash(&mut hasher);
        hasher.finish()
    }
}
