//! A call in the form that Redis receives: commands, and numbers in MessagePack.

use diana_algorithm::REGISTRY;
use diana_algorithm::calendar::Windows;
use diana_policy::time::Unit;
use diana_policy::{Quota, Zone};
use diana_redis::protocol::resp::{Value, values};

use super::rule::Rule;
use super::{Asked, REPORT};
use crate::laws::case::Case;

/// One call of the script.
pub struct Asking<'b> {
    /// Whether it contains the text of the script.
    pub brings_text: bool,
    pub gateway: &'b [u8],
    pub seed: &'b [u8],
    /// The number of its shard, unless it is the first.
    pub shard: Option<i64>,
    /// Fingerprint and caller of each rule of each question.
    pub keys: Vec<(u64, u64)>,
    /// What identifies it, if it may be sent again: its sender and slot, and its number.
    pub number: Option<(String, u64)>,
    /// The gateway's number of shards, if the call contains it.
    pub parts: Option<&'b [u8]>,
    /// The number of the gateway's rules, if the call contains it.
    pub rules: Option<&'b [u8]>,
    /// The ordinal of the call among those of the gateway, if it has one.
    pub ordinal: Option<u64>,
    /// The sender, the batch number and the count of settlements, if the call contains any.
    pub settles: Option<(&'b [u8], u64, u64)>,
    numbers: Numbers<'b>,
}

/// The words of the commands in `body`.
pub fn commands(body: &[u8]) -> Vec<Vec<&[u8]>> {
    let words = |command| match command {
        Value::Array(words) => words.into_iter().map(bulk).collect(),
        other => panic!("no command: {other:?}"),
    };
    values(body).expect("commands").into_iter().map(words).collect()
}

fn bulk(word: Value<'_>) -> &[u8] {
    match word {
        Value::Bulk(bytes) => bytes,
        other => panic!("no word: {other:?}"),
    }
}

impl<'b> Asking<'b> {
    /// Reads the words of an `EVAL` or an `EVALSHA`.
    pub fn read(words: &[&'b [u8]]) -> Asking<'b> {
        let count: usize = text(words[2]).parse().unwrap();
        let (keys, rest) = words[3..].split_at(count);
        let key = |key: &&[u8]| {
            let mut parts = text(key).rsplitn(3, ':');
            let (caller, fingerprint) = (parts.next().unwrap(), parts.next().unwrap());
            (hex(fingerprint), hex(&caller[..16]))
        };
        let argument = |at: usize| rest.get(at).copied().filter(|argument| !argument.is_empty());
        let number = |at: usize| argument(at).map(|number| text(number).parse().unwrap());
        let settles = number(6).map(|own| (keys[count - 1], own, number(7).unwrap()));
        let rules = &keys[3..count - usize::from(settles.is_some())];
        let is_rule = |key: &&&[u8]| !text(key).contains(":arrears:");
        Asking {
            brings_text: words[0] == b"EVAL",
            gateway: rest[1],
            seed: rest[2],
            shard: (rest[2].len() < 32).then(|| text(rest[2]).parse().unwrap()),
            keys: rules.iter().filter(is_rule).map(key).collect(),
            number: argument(4).map(|own| {
                let (slot, number) = text(own).rsplit_once(':').unwrap();
                (slot.into(), number.parse().unwrap())
            }),
            parts: argument(5),
            rules: argument(8),
            ordinal: number(9),
            settles,
            numbers: Numbers(&rest[3][5..]),
        }
    }

    /// The number of rules of the next question, and its delay by other rules. `None` after the
    /// last.
    pub fn ask(&mut self) -> Option<(usize, u64)> {
        let Numbers([_, ..]) = self.numbers else { return None };
        Some((self.numbers.count() as usize, self.numbers.count()))
    }

    /// Returns true if the next rule limits requests in flight.
    pub fn is_of_places(&self) -> bool {
        !self.numbers.0.is_empty() && Numbers(self.numbers.0).word() == "P"
    }

    /// The limit of the next rule, the question about it, and the total and the start of arrears.
    pub fn rule(&mut self, rule: usize, caller: u64) -> (Limit<'b>, Asked, [u64; 2]) {
        let numbers = &mut self.numbers;
        let (kind, rpu, unit) = (numbers.word(), numbers.count(), numbers.count());
        let edges = numbers.list();
        let first = if edges.is_empty() { numbers.number() } else { 0 };
        let own = [first, numbers.number(), numbers.number()];
        let mut limit = Limit { kind, rpu, unit, edges, own, plans: Vec::new() };
        let [cost, unit_cost, want] = std::array::from_fn(|_| numbers.count());
        let [shadow, kind] = std::array::from_fn(|_| numbers.count());
        let [keys, receipt, term, block, back] = std::array::from_fn(|_| numbers.count());
        let counted = numbers.count().checked_sub(1);
        limit.plans = numbers.list();
        if limit.plans.is_empty() {
            assert_eq!(numbers.count(), 0, "no plans");
        }
        let (arrears, overdraft) = match numbers.list()[..] {
            [total, since, overdraft] => ([total, since].map(i64::cast_unsigned), overdraft),
            _ => ([numbers.count(), 0], 0),
        };
        let overdraft = overdraft.cast_unsigned();
        let ahead = numbers.count();
        let (left, debt) = if kind == 2 || kind == REPORT { (0, back) } else { (back, 0) };
        let needs =
            Asked { rule, caller, cost, unit_cost, want, ahead, counted, ..Asked::default() };
        let (shadow, tentative, what) = (shadow == 1, kind == 1, kind);
        let asked = Asked {
            shadow,
            tentative,
            keys,
            receipt,
            term,
            block,
            left,
            debt,
            what,
            overdraft,
            ..needs
        };
        (limit, asked, arrears)
    }
}

/// The limit of a rule in a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Limit<'b> {
    kind: &'b str,
    rpu: u64,
    unit: u64,
    /// The transmitted boundaries of windows.
    edges: Vec<i64>,
    own: [i64; 3],
    /// The lowest rate of all plans, the longest duration for which usage may count, and the
    /// highest rate, if there are plans.
    plans: Vec<i64>,
}

impl Limit<'_> {
    /// Returns true if the rule has this limit.
    pub fn is_of(&self, rule: &Rule) -> bool {
        let quota = rule.case.quota;
        let zone = match self.kind {
            "W" if self.edges == edges(&quota) => quota.zone,
            _ => Zone::UTC,
        };
        (self.kind, self.rpu, self.unit) == (rule.entry.short, quota.rpu, quota.period())
            && Quota { zone, ..self.quota() } == quota
    }

    /// The number of in-flight slots, and the number of the reporting holder.
    pub fn places(&self) -> (u64, u64) {
        (self.rpu, self.own[0].cast_unsigned())
    }

    fn quota(&self) -> Quota {
        let mut plain = Quota::new(Unit::of(self.unit), self.rpu);
        if let [slowest, longest, fastest] = *self.plans {
            let [slowest, fastest] = [slowest, fastest].map(|rpu| Some(rpu.cast_unsigned()));
            plain = Quota { slowest, fastest, longest: longest.cast_unsigned(), ..plain };
        }
        let [first, second, third] = self.own.map(|number| u64::try_from(number).ok());
        match self.kind {
            "W" => {
                let in_zone = |quarters| Quota { zone: Zone::ahead(quarters * 900), ..plain };
                let mut quotas = (-56..=56).map(in_zone);
                quotas.find(|quota| edges(quota) == self.edges).expect("a time zone")
            }
            "SW" => Quota { slices: first, ..plain },
            _ => Quota { burst: first, max_delay: second, max_queue: second.and(third), ..plain },
        }
    }

    /// Builds the rule.
    pub fn rule(&self, fingerprint: u64) -> Rule {
        let entry = REGISTRY.iter().find(|entry| entry.short == self.kind).unwrap();
        let quota = self.quota();
        let algorithm = (entry.build)(&quota).unwrap();
        Rule { fingerprint, ..Rule::of(entry, Case { quota, algorithm }).unwrap() }
    }
}

fn edges(quota: &Quota) -> Vec<i64> {
    Windows::of(quota).edges(0)
}

struct Numbers<'b>(&'b [u8]);

impl<'b> Numbers<'b> {
    fn bytes(&mut self, count: usize) -> &'b [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    fn number(&mut self) -> i64 {
        match self.bytes(1)[0] {
            short @ 0..=127 => short.into(),
            0xce => u32::from_be_bytes(self.bytes(4).try_into().unwrap()).into(),
            0xd3 => i64::from_be_bytes(self.bytes(8).try_into().unwrap()),
            other => panic!("no number: {other:x}"),
        }
    }

    fn count(&mut self) -> u64 {
        self.number().try_into().unwrap()
    }

    /// A list, if there is one.
    fn list(&mut self) -> Vec<i64> {
        let count @ 0x90..=0x9f = self.0[0] else { return Vec::new() };
        self.bytes(1);
        (0..count & 0xf).map(|_| self.number()).collect()
    }

    fn word(&mut self) -> &'b str {
        let length = self.bytes(1)[0] & 0x1f;
        text(self.bytes(length.into()))
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn hex(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).unwrap()
}
