//! A Redis that runs only the model of the script: bytes in, bytes out.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use diana_policy::decision::Retry;
use diana_policy::time::SECOND;
use diana_redis::protocol::RuleReply;

use super::in_flight::Places;
use super::rule::Rule;
use super::wire::{Asking, commands};
use super::{Asked, CHECKS, Model, Outcome, READ_USAGE, Receipts};

/// A gateway reports once a second that it lives, and counts as alive for five.
const ALIVE: u64 = SECOND;

/// The latest report of each.
type Alive = BTreeMap<Vec<u8>, u64>;

/// A Redis with one script.
#[derive(Default)]
pub struct Redis {
    /// Whether it has received the text of the script.
    pub(super) knows_script: bool,
    seed: Option<Vec<u8>>,
    /// The latest report of each gateway, and of each number of shards.
    gateways: Alive,
    parts: Alive,
    /// The numbers of the rules in use.
    used_rules: Alive,
    /// The highest ordinal of each gateway.
    ordinals: HashMap<Vec<u8>, u64>,
    /// The number of the last processed batch of settlements of each sender.
    settled: HashMap<Vec<u8>, u64>,
    /// The latest call of each sender and slot, and its answer.
    answers: HashMap<String, (u64, String)>,
    /// The charged total and the start of the latest arrears of each gateway, rule and caller.
    arrears: HashMap<(Vec<u8>, u64, u64), [u64; 2]>,
    rules: Vec<Rule>,
    /// The indices of rules by their fingerprints.
    places: HashMap<u64, usize>,
    model: Model,
    /// In-flight slots.
    pub in_flight: Places,
    /// The number of decided questions.
    pub asks: u64,
}

impl Redis {
    /// The response to a call at the wall clock `time`.
    pub fn answer(&mut self, body: &[u8], time: u64) -> Vec<u8> {
        let commands = commands(body);
        let [eval, quit] = &commands[..] else { panic!("{} commands", commands.len()) };
        assert_eq!(quit[..], [b"QUIT"]);
        (self.command(eval, time) + "+OK\r\n").into_bytes()
    }

    /// Another gateway reports that it lives.
    pub fn hear_another(&mut self, time: u64) {
        alive(&mut self.gateways, b"another", time);
    }

    /// The response to one call of the script.
    pub(super) fn command(&mut self, eval: &[&[u8]], time: u64) -> String {
        let mut asking = Asking::read(eval);
        self.knows_script |= asking.brings_text;
        match self.knows_script {
            true => self.eval(&mut asking, time),
            false => "-NOSCRIPT No matching script. Please use EVAL.\r\n".into(),
        }
    }

    fn eval(&mut self, asking: &mut Asking<'_>, time: u64) -> String {
        if asking.shard.is_none() {
            let seed = self.seed.get_or_insert_with(|| asking.seed.into());
            if *seed != asking.seed {
                return format!("*1\r\n$32\r\n{}\r\n", String::from_utf8_lossy(seed));
            }
        }
        let now = self.model.at(time);
        if let Some((slot, number)) = &asking.number
            && let Some((latest, answer)) = self.answers.get(slot)
            && latest >= number
        {
            return if latest == number { answer.clone() } else { "*0\r\n".into() };
        }
        let first = match asking.shard {
            None => alive(&mut self.gateways, asking.gateway, now.mono),
            Some(shard) => -shard,
        };
        let mut numbers = vec![first, 0, now.mono.cast_signed()];
        numbers.extend(asking.parts.map(|parts| alive(&mut self.parts, parts, now.mono)));
        let mut keys = std::mem::take(&mut asking.keys).into_iter();
        let mut over = asking.settles.map_or(0, |settles| self.is_over(settles));
        while let Some((count, delay)) = asking.ask() {
            if count == 1 && asking.is_of_places() {
                let caller = keys.next().expect("a caller");
                let (limit, mut asked, _) = asking.rule(0, caller.1);
                let (limit, holder) = limit.places();
                asked.what = if over > 0 { 0 } else { asked.what };
                over = over.saturating_sub(1);
                let reply = self.in_flight.ask(caller, limit, holder, &asked, delay, now.mono);
                numbers.extend(reply);
                self.asks += 1;
                continue;
            }
            let mut asked: Vec<Asked> = keys
                .by_ref()
                .take(count)
                .map(|(rule, caller)| self.rule(asking, rule, caller))
                .collect();
            if over > 0 {
                over -= 1;
                let forget = |asked: &mut Asked| {
                    (asked.block, asked.left, asked.debt) = (0, 0, 0);
                    asked.counted = asked.counted.map(|_| 0);
                };
                asked.iter_mut().for_each(forget);
            }
            let (outcome, receipts) = self.model.ask(&self.rules, now, delay, &asked);
            self.asks += 1;
            tell(&outcome, &asked, &receipts, &mut numbers);
        }
        numbers.extend(asking.rules.map(|rules| alive(&mut self.used_rules, rules, now.mono)));
        if let Some(ordinal) = asking.ordinal {
            let highest = self.ordinals.entry(asking.gateway.into()).or_default();
            numbers.push(highest.cast_signed());
            *highest = ordinal.max(*highest);
        }
        let mut answer = format!("*{}\r\n", numbers.len());
        numbers.iter().for_each(|number| write!(answer, ":{number}\r\n").unwrap());
        if let Some((slot, number)) = asking.number.take() {
            self.answers.insert(slot, (number, answer.clone()));
        }
        answer
    }

    /// The number of leading questions that were already settled.
    fn is_over(&mut self, (sender, number, asks): (&[u8], u64, u64)) -> u64 {
        let last = self.settled.entry(sender.into()).or_default();
        if *last >= number {
            return asks;
        }
        *last = number;
        0
    }

    /// The question about the next rule.
    fn rule(&mut self, asking: &mut Asking<'_>, fingerprint: u64, caller: u64) -> Asked {
        let place = *self.places.entry(fingerprint).or_insert(self.rules.len());
        let (limit, mut asked, [total, since]) = asking.rule(place, caller);
        if total > 0 {
            let known =
                self.arrears.entry((asking.gateway.into(), fingerprint, caller)).or_default();
            asked.arrears = match since.cmp(&known[1]) {
                Ordering::Less => 0,
                Ordering::Equal => total.saturating_sub(known[0]),
                Ordering::Greater => total,
            };
            if asked.arrears > 0 {
                *known = [total, since];
            }
        }
        match self.rules.get_mut(place) {
            Some(rule) if limit.is_of(rule) => {}
            Some(rule) => *rule = limit.rule(fingerprint),
            None => self.rules.push(limit.rule(fingerprint)),
        }
        asked
    }
}

/// The number of living gateways, including the caller.
fn alive(all: &mut Alive, one: &[u8], now: u64) -> i64 {
    if all.get(one).is_none_or(|lived| now - lived >= ALIVE) {
        all.insert(one.into(), now);
        all.retain(|_, lived| *lived + 5 * ALIVE > now);
    }
    all.values().filter(|lived| **lived + 5 * ALIVE > now).count() as i64
}

/// Appends the numbers of an outcome.
fn tell(outcome: &Outcome, asked: &[Asked], receipts: &[Receipts], to: &mut Vec<i64>) {
    let number = |number: u64| number.cast_signed();
    to.push(outcome.wait.map_or(-1, number));
    for ((opinion, asked), own) in outcome.rules.iter().zip(asked).zip(receipts) {
        let RuleReply {
            retry,
            is_outstanding,
            remaining,
            term,
            block,
            charged: used,
            spend,
            overflow,
            ..
        } = *opinion;
        let charged = outcome.wait.is_some()
            && retry.is_none()
            && asked.cost + block > 0
            && asked.what != CHECKS;
        to.push(match retry {
            None => 0,
            Some(Retry::After(ticks)) => number(ticks),
            Some(Retry::Never) => -1,
            Some(Retry::Soon) => -2,
        });
        let rest = match charged {
            _ if asked.what >= READ_USAGE => [own.cost, 0, block, own.lease, used, 0],
            true => [own.cost, term, block, own.lease, 0, spend],
            false => [0; 6],
        };
        to.extend([is_outstanding.into(), number(remaining)]);
        to.extend(rest.map(number));
        to.push(overflow.into());
    }
}
