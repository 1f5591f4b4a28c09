//! Every order in which the thread for calls, or Envoy's main thread, delivers replies to a worker whose requests wait for them: each is processed as soon
//! as the worker runs, also if others came before, and decides the requests of its call; a request that another rule then holds goes on at its
//! turn.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use diana_native::explored::{self, Module};
use fastrand::Rng;
use kit::choices::{Choices, Tried, try_all};
use kit::model::redis::Redis;

use super::{HOUR, tell};
use crate::gateway::Gateway;
use crate::stream::{self, Outcome, Stream};
use crate::worker::Queue;

/// Calls by the thread for them, and by Envoy's main thread.
const WAYS: [&str; 2] = ["pipe: '@replies', ", ""];

const RULES: &str = "namespace: replies
actors: {account: [{header: x-account}]}
redis: {cluster: redis, WAY timeout: 1s}
limits: [{Url: /fleet, rules: [{name: counted, actor: account, unit: day, rpu: 9, cost: 5, algo: W, scope: global},
{name: held, actor: all, unit: second, rpu: 500, algo: LB, scope: gateway}]}]";

/// After which a second call is made while the first one is pending.
const PAUSE: u64 = 300_000;

/// The time between two wakes of a worker whose requests wait, and how many are enough after a reply.
const TICK: u64 = 1_000;
const WAKES: usize = 8;

/// The wall clock of Redis, at which no day ends.
const NOON: u64 = 1_700_000_000_000_000;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// A call has its reply.
    Reply(usize),
    /// A call of the main thread fails.
    Fail(usize),
    /// The worker runs its next event.
    Event,
    /// The thread for timers wakes.
    Fire,
    /// Envoy's main thread runs its events.
    Main,
    /// The client of an open request leaves.
    Leave(usize),
}

/// The requests of a world: of two callers, or of one that has permits for one of them, by one worker or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Apart,
    Together,
    OfTwoWorkers,
}

const KINDS: [Kind; 3] = [Kind::Apart, Kind::Together, Kind::OfTwoWorkers];

struct World<'r> {
    gateway: &'static Gateway,
    redis: &'r RefCell<Redis>,
    now: u64,
    queue: Arc<Queue>,
    kind: Kind,
    requests: Vec<*mut Stream>,
    /// The requests of the calls that are pending, and the one that Redis has decided first.
    asked: Vec<usize>,
    first: Option<usize>,
    failures: usize,
    has_left: bool,
}

#[test]
fn no_reply_is_lost() {
    for way in WAYS {
        tell(&RULES.replace("WAY", way), try_replies);
    }
}

/// Returns their number.
fn try_replies(gateway: &'static Gateway) -> u64 {
    let (hours, redis) = (Cell::new(2), RefCell::new(Redis::default()));
    gateway.kept.lock().unwrap().get_or_insert_default();
    // The worker gets the secret of the fleet.
    World::new(gateway, HOUR, &redis, Kind::Apart).begin_and_close();
    let Tried { worlds, .. } = try_all(1..=8, |acts, choices| {
        hours.set(hours.get() + 1);
        // Worlds of more kinds are smaller.
        let kind = KINDS[choices.pick(if acts > 5 { 1 } else { KINDS.len() })];
        let mut world = World::new(gateway, hours.get() * HOUR, &redis, kind);
        world.rest();
        for (calls, pause) in [(1, TICK), (2, PAUSE)] {
            world.begin();
            world.pass(pause);
            world.work();
            assert_eq!(world.calls(), calls, "calls that are pending");
            world.asked.push(calls - 1);
        }
        (0..acts).for_each(|_| world.act(choices));
        world.close();
    });
    worlds
}

impl<'r> World<'r> {
    fn new(
        gateway: &'static Gateway,
        now: u64,
        redis: &'r RefCell<Redis>,
        kind: Kind,
    ) -> World<'r> {
        let (queue, requests, asked) = Default::default();
        let (first, failures, has_left) = (None, 1, false);
        let mut world =
            World { gateway, redis, now, queue, kind, requests, asked, first, failures, has_left };
        world.pass(0);
        world.finish();
        world
    }

    /// The gateway has just sent a heartbeat, so that it makes no other call for a second.
    fn rest(&mut self) {
        while self.calls() == 0 {
            self.pass(explored::next_due(self.module()).saturating_sub(self.now));
            self.work();
        }
        self.finish();
    }

    fn module(&self) -> &Module {
        &self.gateway.module
    }

    fn pass(&mut self, ticks: u64) {
        self.now += ticks;
        explored::set_clock(self.module(), self.now);
    }

    fn begin(&mut self) {
        let number = self.requests.len() as u64;
        let mut stream = Stream::new(
            self.gateway,
            number,
            if self.kind == Kind::OfTwoWorkers { number as usize } else { 0 },
            "/fleet",
            self.queue.clone(),
            &mut Rng::with_seed(1),
        );
        let caller = if self.kind == Kind::Apart { number } else { 0 };
        let account = format!("{}-{caller}", self.now / HOUR);
        stream.request.retain(|(name, _)| name.starts_with(b":"));
        stream.request.push((b"x-account".to_vec(), account.into_bytes()));
        stream.is_hasty = false;
        let stream = Box::into_raw(stream);
        self.requests.push(stream);
        stream::begin(stream);
    }

    fn begin_and_close(mut self) {
        self.begin();
        self.close();
    }

    fn is_open(&self, number: usize) -> bool {
        // SAFETY: it is freed at the end of the world.
        let stream = unsafe { &*self.requests[number] };
        stream.outcome == Outcome::Open && !stream.has_ended
    }

    fn has_event(&self) -> bool {
        !self.queue.lock().unwrap().is_empty()
    }

    fn is_due(&self) -> bool {
        explored::next_due(self.module()) <= self.now
    }

    fn act(&mut self, choices: &mut Choices) {
        let mut acts: Vec<Act> = (0..self.calls()).map(Act::Reply).collect();
        acts.extend(self.gateway.has_events().then_some(Act::Main));
        let fails = if self.failures > 0 { self.kept() } else { 0 };
        acts.extend((0..fails).map(Act::Fail));
        acts.extend(self.has_event().then_some(Act::Event));
        acts.extend(self.is_due().then_some(Act::Fire));
        let open = (0..self.requests.len()).filter(|number| self.is_open(*number));
        acts.extend(open.map(Act::Leave));
        if acts.is_empty() {
            return;
        }
        match acts[choices.pick(acts.len())] {
            Act::Reply(number) => self.reply(number),
            Act::Event => self.run_event(),
            Act::Fail(number) => {
                self.failures -= 1;
                self.end_kept(number, |_| (None, Vec::new()));
            }
            Act::Main => self.gateway.run_events(),
            Act::Fire => explored::fire(self.module()),
            Act::Leave(number) => {
                self.has_left = true;
                stream::end(self.requests[number]);
            }
        }
    }

    /// The calls that are pending.
    fn calls(&self) -> usize {
        explored::calls(self.module()) + self.kept()
    }

    /// Those of the main thread.
    fn kept(&self) -> usize {
        self.gateway.kept.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    fn reply(&mut self, number: usize) {
        if number < self.asked.len() {
            let asked = self.asked.remove(number);
            self.first.get_or_insert(asked);
        }
        let answer = |body: &[u8]| self.redis.borrow_mut().answer(body, NOON);
        match explored::calls(self.module()) {
            0 => self.end_kept(number, |body| (Some("200"), answer(body))),
            _ => explored::reply(self.module(), number, answer),
        }
    }

    fn end_kept(&self, number: usize, end: impl Fn(&[u8]) -> (Option<&'static str>, Vec<u8>)) {
        let kept = self.gateway.kept.lock().unwrap().as_mut().map(|kept| kept.remove(number));
        let (config, id, body) = kept.expect("a call");
        if let Some(config) = config.upgrade() {
            let (status, reply) = end(&body);
            config.reply_with(id, status, &reply);
        }
    }

    /// Envoy drops the events of streams that have ended.
    fn run_event(&self) {
        let Some((id, event)) = self.queue.lock().unwrap().pop_front() else { return };
        let stream = self.requests[id as usize];
        // SAFETY: as in `is_open`.
        if !unsafe { (*stream).has_ended } {
            stream::schedule(stream, event);
        }
    }

    /// Both threads do their work.
    fn work(&self) {
        while self.has_event() || self.is_due() || self.gateway.has_events() {
            self.gateway.run_events();
            explored::fire(self.module());
            self.run_event();
        }
    }

    /// All calls have replies, and the worker wakes a few times.
    fn finish(&mut self) {
        for _ in 0..WAKES {
            while self.calls() > 0 {
                self.reply(0);
            }
            self.pass(TICK);
            self.work();
        }
    }

    fn close(mut self) {
        self.finish();
        for number in 0..self.requests.len() {
            assert!(!self.is_open(number), "request {number} has no reply");
        }
        if self.kind != Kind::Apart && self.failures > 0 && !self.has_left {
            // SAFETY: as in `is_open`.
            let passes = |it: &*mut Stream| unsafe { (**it).outcome == Outcome::Passed };
            let passed = self.requests.iter().position(passes);
            assert_eq!(passed, self.first, "the request that Redis admits");
        }
        for stream in self.requests {
            stream::end(stream);
            // SAFETY: no hook of the stream follows.
            drop(unsafe { Box::from_raw(stream) });
        }
    }
}
