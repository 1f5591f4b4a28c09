//! Redis, the messages to it and from it, and the permits of each call that Redis has charged.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use diana_policy::time::Micros;
use diana_redis::protocol::resp::{Value, values};
use kit::model::redis::Redis;
use kit::model::wire::{Asking, commands};
use kit::model::{CHECKS, REPORT};

/// In place of a `retry-after`: only reservations are missing.
const SOON: i64 = -2;

/// The reply to a call that arrives after the next one in its place begins so.
const NO_ANSWER: &[u8] = b"*0\r\n";

/// A message that has not arrived.
#[derive(Clone, Hash)]
pub enum Way {
    /// A call to Redis.
    There,
    /// Its reply.
    Back(Rc<[u8]>),
    /// It was lost, and the gateway waits.
    Nowhere,
}

#[derive(Clone)]
pub struct Message {
    /// The gateway that waits for a reply, and its token. `None` for a copy, and after its timeout.
    pub owner: Option<(usize, u32)>,
    pub call: Rc<Call>,
    pub sent: Micros,
    /// When its gateway stops waiting.
    pub given_up: Micros,
    pub way: Way,
}

/// A call of a gateway: a batch, for the first or the second time.
pub struct Call {
    body: Vec<u8>,
    /// A hash of the batch.
    hash: u64,
    /// What identifies the batch, if it is decided once.
    number: Option<Box<str>>,
    questions: Vec<Asked>,
    /// The settlements in it.
    settles: Option<(Vec<u8>, u64)>,
}

/// The permits of a batch.
#[derive(Default)]
struct Account {
    life: usize,
    /// Charged for requests and blocks.
    granted: u64,
    /// Of returns, which are sent once.
    returned: u64,
    is_decided: bool,
    is_answered: bool,
    /// When, on the wall clock.
    at: Micros,
}

#[derive(Default)]
pub struct Network {
    redis: Redis,
    /// The calls that Redis has had, each with its time.
    had: Vec<(Rc<Call>, Micros)>,
    pub messages: Vec<Message>,
    accounts: BTreeMap<Box<str>, Account>,
    /// Batches of settlements that a reply has confirmed.
    confirmed: BTreeSet<(Vec<u8>, u64)>,
    /// Remaining permits by the latest reply about a request, and whether it refuses it until reservations end.
    pub left: u64,
    pub is_soon: bool,
    /// A hash of all that has happened to Redis.
    seen: u64,
}

impl Network {
    /// A gateway makes a call, as a result of its past events, `seen`.
    pub fn send(
        &mut self,
        owner: (usize, u32),
        body: Vec<u8>,
        (sent, timeout): (Micros, Micros),
        seen: u64,
    ) {
        let call = Call::new(body, hash((owner, seen)));
        if let Some(number) = &call.number {
            let returned = call.questions.iter().map(|asked| asked.returned).sum();
            let account = Account { life: owner.0, returned, ..Account::default() };
            self.accounts.entry(number.clone()).or_insert(account);
        }
        let (owner, given_up, way) = (Some(owner), sent + timeout, Way::There);
        self.messages.push(Message { owner, call: Rc::new(call), sent, given_up, way });
    }

    /// A call reaches Redis. Its reply is sent if the gateway still waits for it.
    /// Returns the permits that remain if it has decided a request, and whether the call has had an answer.
    pub fn arrive(&mut self, index: usize, wall: Micros) -> (Option<u64>, bool) {
        let Message { call, owner, .. } = self.messages[index].clone();
        let reply: Rc<[u8]> = self.redis.answer(&call.body, wall).into();
        self.seen = hash((self.seen, call.hash, wall));
        let mut decided = None;
        if let Some(account) = self.account(&call)
            && !account.is_decided
            && let Some((granted, left)) = call.granted(&reply)
        {
            (account.granted, account.is_decided, account.at) = (granted, true, wall);
            if let Some((left, is_soon)) = left {
                (decided, self.left, self.is_soon) = (Some(left), left, is_soon);
            }
        }
        let is_answered = self.account(&call).is_some_and(|account| account.is_answered);
        let has_answer = is_answered || !reply.starts_with(NO_ANSWER);
        self.had.push((call, wall));
        match owner {
            Some(_) => self.messages[index].way = Way::Back(reply),
            None => _ = self.messages.remove(index),
        }
        (decided, has_answer)
    }

    /// All permits that Redis has granted since an instant of the wall clock.
    pub fn all_granted_since(&self, wall: Micros) -> u64 {
        let later = self.accounts.values().filter(|it| it.at >= wall);
        later.map(|account| account.granted).sum()
    }

    /// All permits that Redis has granted.
    pub fn all_granted(&self) -> u64 {
        self.accounts.values().map(|account| account.granted).sum()
    }

    /// A gateway has got the reply to a call. Returns the permits that it reported, unless it knows that Redis has them.
    pub fn answered(&mut self, call: &Call) -> u64 {
        let Some(account) = self.account(call).filter(|account| account.is_decided) else {
            return 0;
        };
        account.is_answered = true;
        let is_new = call.settles.clone().is_some_and(|batch| self.confirmed.insert(batch));
        if is_new { call.questions.iter().map(|asked| asked.reported).sum() } else { 0 }
    }

    /// The permits that Redis granted to a gateway, as this one knows.
    pub fn granted(&self, life: usize) -> u64 {
        let own = self.accounts.values().filter(|it| it.life == life && it.is_answered);
        own.map(|account| account.granted).sum()
    }

    /// The permits that Redis has granted to a gateway since an instant of the wall clock.
    pub fn granted_since(&self, life: usize, wall: Micros) -> u64 {
        let own = self.accounts.values().filter(|it| it.life == life && it.at >= wall);
        own.map(|account| account.granted).sum()
    }

    fn account(&mut self, call: &Call) -> Option<&mut Account> {
        self.accounts.get_mut(call.number.as_deref()?)
    }

    /// Whether all attempts of a call have failed.
    pub fn is_lost(&self, call: &Call) -> bool {
        let pending = self.messages.iter().any(|it| it.call.number == call.number);
        let number = call.number.as_deref().filter(|_| !pending);
        number.and_then(|it| self.accounts.get(it)).is_some_and(|account| !account.is_answered)
    }

    /// Forgets the permits so far, which were of another caller.
    pub fn forget(&mut self) {
        self.accounts.clear();
    }

    /// Redis loses all but its first calls: a replica takes over that has not had the others, or an empty one.
    pub fn lose(&mut self, kept: usize) {
        self.had.truncate(kept);
        (self.redis, self.seen) = (Redis::default(), 0);
        for (call, wall) in &self.had {
            _ = self.redis.answer(&call.body, *wall);
            self.seen = hash((self.seen, call.hash, wall));
        }
    }

    /// The number of calls that Redis has had.
    pub fn had(&self) -> usize {
        self.had.len()
    }

    /// The calls after the first ones in which a gateway asks for a block without a request.
    pub fn renewals(&self, first: usize) -> usize {
        let renews = |(call, _): &&(Rc<Call>, Micros)| call.questions.iter().any(|it| it.renews);
        self.had.iter().skip(first).filter(renews).count()
    }

    /// Permits that Redis has charged and no gateway has used: of replies that were lost, and of lost returns.
    pub fn lost(&self) -> u64 {
        let of = |account: &Account| match account {
            Account { is_decided: false, returned, .. } => *returned,
            Account { is_answered: false, granted, .. } => *granted,
            _ => 0,
        };
        self.accounts.values().map(of).sum()
    }

    /// Hashes the state of Redis and all that is on the way.
    pub fn hash(&self, hasher: &mut impl Hasher) {
        self.seen.hash(hasher);
        for Message { owner, call, way, sent, .. } in &self.messages {
            (owner, call.hash, way, sent).hash(hasher);
        }
    }
}

/// The permits that a question may charge and return.
struct Asked {
    cost: u64,
    checks: bool,
    returned: u64,
    /// Admitted before.
    reported: u64,
    is_report: bool,
    /// Whether it is only about a block.
    renews: bool,
}

impl Call {
    pub fn new(body: Vec<u8>, hash: u64) -> Call {
        let (mut number, mut questions, mut settles) = (None, Vec::new(), None);
        if let Some(words) = commands(&body).first() {
            let mut asking = Asking::read(words);
            number = asking.number.take().map(|(slot, number)| format!("{slot}:{number}").into());
            settles = asking.settles.map(|(sender, number, _)| (sender.into(), number));
            let settled = asking.settles.map_or(0, |(.., asks)| asks as usize);
            while let Some((rules, _)) = asking.ask() {
                assert_eq!(rules, 1, "rules of a question");
                let (_, asked, _) = asking.rule(0, 0);
                // Settlements are sent again until they arrive.
                let returned = if questions.len() < settled { 0 } else { asked.left };
                let (checks, is_report) = (asked.what == CHECKS, asked.what == REPORT);
                let reported = if is_report { asked.debt } else { 0 };
                let (cost, renews) = (asked.cost, asked.cost == 0 && asked.want > 0);
                questions.push(Asked { cost, checks, returned, reported, is_report, renews });
            }
        }
        Call { body, hash, number, questions, settles }
    }

    /// Whether it asks Redis anything.
    pub fn asks(&self) -> bool {
        !self.questions.is_empty()
    }

    /// The permits that it was granted, those that are left after a request, and whether this one is refused until reservations
    /// end. `None` without a decision by Redis.
    pub fn granted(&self, reply: &[u8]) -> Option<(u64, Option<(u64, bool)>)> {
        let values = values(reply)?;
        let Some(Value::Array(numbers)) = values.into_iter().next() else { return None };
        let number = |value: &Value| if let Value::Integer(it) = value { Some(*it) } else { None };
        let numbers: Vec<i64> = numbers.iter().filter_map(number).collect();
        let (mut granted, mut last) = (0, None);
        for (asked, reply) in self.questions.iter().zip(numbers.get(3..)?.chunks_exact(11)) {
            let [wait, retry, _, left, _, _, block, ..] = *reply else { continue };
            if wait >= 0 && retry == 0 && !asked.checks && !asked.is_report {
                granted += asked.cost + block.cast_unsigned();
            }
            let is_about_request = asked.cost > 0 || asked.is_report;
            last =
                if is_about_request { Some((left.cast_unsigned(), retry == SOON)) } else { last };
        }
        Some((granted, last))
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
