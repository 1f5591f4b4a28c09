//! Rules that ask Redis after they have decided, with the worker of the module: workers of a gateway together admit the limit, and
//! Redis has charged each admitted request once, also where another rule refuses after the charge.

use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_config::Reader;
use diana_policy::Policy;
use diana_policy::port::SharedData;
use diana_policy::time::{DAY, Micros, Now, SECOND};
use kit::choices::Choices;
use kit::model::redis::Redis;
use kit::module::{Call, Gateway};

use super::stage::{Between, Stage, Work};
use crate::messages::network;

const START: Now = Now { mono: DAY, wall: 20_000 * DAY + DAY / 2 };

/// After which requests that were admitted are reported.
const REPORTS: Micros = SECOND / 50 + SECOND / 1000;

/// The value of shared data that stands for Redis.
const REDIS: &str = "redis";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    Take,
    /// The timer, whose calls have a reply at once.
    Report,
}

const ACTS: [Act; 2] = [Act::Take, Act::Report];

/// A rule that asks after, and another one.
pub struct Case {
    policy: Policy,
    limit: u64,
}

struct Worker {
    stage: Rc<Stage>,
    gateway: RefCell<Gateway>,
    redis: Rc<RefCell<Redis>>,
    /// Permits that are left by the latest reply.
    left: Rc<Cell<Option<u64>>>,
    admitted: Rc<Cell<u64>>,
}

pub fn cases() -> Vec<Case> {
    let case = |limit: u64, more: &str| {
        let text = format!(
            "namespace: fleet\nkeys: 16\nredis: {{cluster: redis, timeout: 20ms, gateways: 1}}\n\
             limits: [{{Url: /, rules: [\
             {{name: r, actor: account, unit: day, rpu: {limit}, algo: window, scope: global, ask: after}}{more}]}}]"
        );
        Case { policy: Reader::default().policy(text.as_bytes()).expect("a document"), limit }
    };
    let other = ", {name: g, actor: account, unit: day, rpu: 1, algo: window, scope: gateway}";
    vec![case(2, ""), case(8, other)]
}

/// A world of workers, each with this number of acts.
pub fn world(number: usize, case: &Case, workers: usize, acts: usize, choices: &mut Choices) {
    let stage = Rc::new(Stage::new(workers, START, false));
    let now = Rc::new(Cell::new(START));
    let redis = Rc::<RefCell<Redis>>::default();
    let (left, admitted) = (Rc::default(), Rc::<Cell<u64>>::default());
    let open = |number: usize| {
        let gateway = Gateway::of(&case.policy, now.clone(), number as u64 + 1, stage.data.clone());
        let (stage, redis) = (stage.clone(), redis.clone());
        let (left, admitted) = (Rc::clone(&left), admitted.clone());
        Rc::new(Worker { stage, gateway: RefCell::new(gateway), redis, left, admitted })
    };
    let workers: Vec<Rc<Worker>> = (0..workers).map(open).collect();
    let all_report = |times: usize| {
        for _ in 0..times {
            now.set(now.get().later(REPORTS));
            workers.iter().for_each(|worker| worker.report());
        }
    };
    // Each gets a first reply of Redis.
    for (worker, account) in workers.iter().zip(["ann", "bob", "cay"]) {
        worker.gateway.borrow_mut().request(account);
        worker.report();
    }
    all_report(2);
    workers.iter().for_each(|worker| drop(worker.gateway.borrow_mut().take_decided()));
    left.set(None);
    let is_known = choices.pick(2) == 1;
    if is_known {
        workers[0].take();
        all_report(1);
    }
    now.set(now.get().later(REPORTS));
    let mut programs = vec![Vec::new(); workers.len()];
    for program in &mut programs {
        (0..acts).for_each(|_| program.push(ACTS[choices.pick(ACTS.len())]));
    }
    let mut hasher = DefaultHasher::new();
    (number, is_known, &programs).hash(&mut hasher);
    let work = |(worker, acts): (&Rc<Worker>, Vec<Act>)| {
        let worker = worker.clone();
        let work: Work = Box::new(move || acts.into_iter().for_each(|act| worker.act(act)));
        work
    };
    let works = workers.iter().zip(programs).map(work).collect();
    let ran = stage.run(works, Between::default(), choices, hasher.finish());
    if ran.is_none() {
        return;
    }
    all_report(3);
    let charged = case.limit - left.get().unwrap_or(case.limit);
    assert_eq!(charged, admitted.get(), "charged");
    assert!(admitted.get() <= case.limit, "admitted");
    if case.limit == 2 {
        workers.iter().for_each(|worker| (0..2).for_each(|_| worker.take()));
        assert_eq!(admitted.get(), case.limit, "it fits");
    }
}

impl Worker {
    fn act(&self, act: Act) {
        match act {
            Act::Take => self.take(),
            Act::Report => self.report(),
        }
    }

    fn take(&self) {
        let mut gateway = self.gateway.borrow_mut();
        gateway.request("caller");
        let decided = gateway.take_decided();
        assert_eq!(decided.len(), 1, "it does not wait");
        self.admitted.set(self.admitted.get() + u64::from(decided[0].1));
    }

    /// The timer fires, until it makes no further call.
    fn report(&self) {
        let mut gateway = self.gateway.borrow_mut();
        loop {
            gateway.tick();
            let calls = gateway.take_calls();
            if calls.is_empty() {
                return;
            }
            for Call { token, body, .. } in calls {
                let reply = self.exchange(body);
                gateway.answer(token, 200, &reply);
            }
        }
    }

    /// Redis answers, in a step of its own.
    fn exchange(&self, body: Vec<u8>) -> Vec<u8> {
        let before = self.stage.data.get(REDIS);
        let reply = self.redis.borrow_mut().answer(&body, START.wall);
        let mut hasher = DefaultHasher::new();
        (before, &body).hash(&mut hasher);
        self.stage.data.set(REDIS, &hasher.finish().to_le_bytes());
        let told = network::Call::new(body, 0).granted(&reply).and_then(|(_, last)| last);
        self.left.set(told.map(|(left, _)| left).or(self.left.get()));
        reply
    }
}
