//! Encodes a pipeline as commands.

use std::fmt::Write;

use super::key::{Name, prefix};
use super::pack::Array;
use super::resp::{command, word};
use super::text::{DIGEST, TEXT};
use super::{
    Ask, CallNumber, Charge, Effect, Login, Numbers, Pipeline, Question, Refusals, Script,
    ScriptCall, SettlementBatch,
};
use crate::shard::{Shard, Shards};
use diana_algorithm::Codec;
use diana_policy::key::{Key, Seed};
use diana_policy::time::Micros;
use diana_store::slots::arrears::Arrears;

/// Values in place of the flag for tentative charges: a debt, a confirmed slot, a freed slot, a
/// heartbeat of the holder, a check.
const CHARGE_DEBT: u64 = 2;
const HOLD_SLOTS: u64 = 3;
const FREE_SLOTS: u64 = 4;
const HEARTBEAT: u64 = 5;
const CHECK: u64 = 6;
/// In the same place: a read of usage, a reset.
const READ_USAGE: u64 = 7;
const RESET: u64 = 8;
/// In the same place: a charge without a check, and a read of usage.
const REPORT: u64 = 9;

impl Login {
    /// The number of commands for the login.
    pub(super) fn commands(&self) -> usize {
        usize::from(self.password.is_some()) + usize::from(self.db > 0)
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(password) = &self.password {
            command(out, 2 + usize::from(self.username.is_some()));
            word(out, b"AUTH");
            self.username.iter().for_each(|name| word(out, name.as_bytes()));
            word(out, password.as_bytes());
        }
        if self.db > 0 {
            command(out, 2);
            word(out, b"SELECT");
            word(out, self.db.to_string().as_bytes());
        }
    }
}

impl Pipeline {
    /// The bytes to send. Redis closes the connection after its reply.
    #[must_use]
    pub fn encode(&self, login: &Login) -> Vec<u8> {
        let mut out = Vec::new();
        login.write(&mut out);
        self.calls.iter().for_each(|call| self.write(call, &mut out));
        command(&mut out, 1);
        word(&mut out, b"QUIT");
        out
    }

    fn write(&self, call: &ScriptCall, out: &mut Vec<u8>) {
        let questions = || call.asks.iter().flat_map(|ask| &ask.questions);
        let values = || questions().flat_map(|question| Name::all(question, self.gateway));
        let keys = 3 + values().count() + usize::from(call.settles.is_some());
        let shards = self.sent_shards(call);
        let (rules, ordinal) = (self.sent_rules(call), self.sent_ordinal(call));
        let more = match (ordinal, rules, call.settles) {
            (Some(_), ..) => 6,
            (None, Some(_), _) => 5,
            (None, None, Some(_)) => 4,
            (None, None, None) if shards.is_some() => 2,
            (None, None, None) => usize::from(self.number.is_some()),
        };
        command(out, 3 + keys + 4 + more);
        let [name, what]: [&[u8]; 2] = match call.script {
            Script::Digest => [b"EVALSHA", DIGEST],
            Script::Text => [b"EVAL", TEXT],
        };
        word(out, name);
        word(out, what);
        word(out, keys.to_string().as_bytes());
        let mut key = prefix(self.tags.of(call.shard));
        let prefix = key.len();
        let names = [Name::Seed, Name::Clock, Name::Gateways].into_iter();
        let ledger = call.settles.map(|settles| Name::Ledger(settles.sender));
        for name in names.chain(values()).chain(ledger) {
            key.truncate(prefix);
            // Writing to a string cannot fail.
            _ = write!(key, "{name}");
            word(out, key.as_bytes());
        }
        let now = self.now.map(|now| now.to_string()).unwrap_or_default();
        word(out, now.as_bytes());
        word(out, format!("{:016x}", self.gateway).as_bytes());
        let Seed { k0, k1 } = self.seed;
        let what = match call.shard {
            Shard::FIRST => format!("{k0:016x}{k1:016x}"),
            shard => shard.number().to_string(),
        };
        word(out, what.as_bytes());
        let mut numbers = Array::default();
        call.asks.iter().for_each(|ask| ask.pack(self.wall, &mut numbers));
        word(out, &numbers.finish());
        let shards = shards.map(|shards| shards.number().to_string());
        let settles = call
            .settles
            .map(|SettlementBatch { number, asks, .. }| [number.to_string(), asks.to_string()]);
        let rules = rules.map(|rules| format!("{rules:016x}"));
        let [number, asks] = settles.unwrap_or_default();
        let own = self
            .number
            .map(|CallNumber { sender, slot, number }| format!("{sender:016x}:{slot}:{number}"));
        let ordinal = ordinal.map(|ordinal| ordinal.to_string());
        let [own, shards, rules, ordinal] =
            [own, shards, rules, ordinal].map(Option::unwrap_or_default);
        let words = [own, shards, number, asks, rules, ordinal];
        words.iter().take(more).for_each(|text| word(out, text.as_bytes()));
    }

    /// The number of the gateway's rules, if the call reports it.
    pub(super) fn sent_rules(&self, call: &ScriptCall) -> Option<u64> {
        self.rules.filter(|_| call.shard == Shard::FIRST)
    }

    /// The ordinal, if the call has one.
    pub(super) fn sent_ordinal(&self, call: &ScriptCall) -> Option<u64> {
        self.ordinal.filter(|_| call.shard == Shard::FIRST)
    }

    /// The gateway's number of shards, if the call reports it: others may be configured
    /// differently.
    pub(super) fn sent_shards(&self, call: &ScriptCall) -> Option<Shards> {
        let shards = self.tags.shards();
        (call.shard == Shard::FIRST && shards != Shards::ONE).then_some(shards)
    }
}

impl Ask {
    fn pack(&self, wall: Micros, to: &mut Array) {
        to.count(self.questions.len() as u64);
        to.count(self.delay);
        for question in &self.questions {
            match question {
                Question::Rule(charge) => to.charge(charge, wall),
                Question::Ban(refusals) => to.refusals(refusals, wall),
            }
        }
    }
}

impl Array {
    fn charge(&mut self, charge: &Charge, wall: Micros) {
        let Charge { caller, numbers, cost, unit_cost, want, keys, effect, .. } = *charge;
        let counted = charge.counted.map_or(0, |permits| permits + 1);
        let shadow = u64::from(charge.shadow);
        let tentative = if charge.checks { CHECK } else { u64::from(charge.tentative) };
        let [kind, receipt, term, block, left] = match effect {
            Effect::None => [tentative, 0, 0, 0, 0],
            Effect::ReturnCost { receipt, term, permits } => [tentative, receipt, term, 0, permits],
            Effect::ChargeDebt { receipt, permits } => [CHARGE_DEBT, receipt, 0, 0, permits],
            // Incremented, since zero means that no number is sent.
            Effect::HoldSlots { term, slots } => [HOLD_SLOTS, term, 0, 0, slots + 1],
            Effect::FreeSlots { slots } => [FREE_SLOTS, 0, 0, 0, slots + 1],
            Effect::Heartbeat => [HEARTBEAT, 0, 0, 0, 0],
            Effect::Report { permits, .. } => [REPORT, 0, 0, 0, permits],
            Effect::ReadUsage => [READ_USAGE, 0, 0, 0, 0],
            Effect::Reset => [RESET, 0, 0, 0, 0],
            Effect::ReturnBlock { receipt, term, block, left } => {
                [tentative, receipt, term, block, left]
            }
        };
        self.parameters(&numbers, caller, wall);
        [cost, unit_cost, want, shadow, kind, keys, receipt, term, block, left, counted]
            .into_iter()
            .for_each(|number| self.count(number));
        self.plans(&numbers);
        match charge.arrears {
            Some(Arrears { total, since }) => {
                self.list(&[total, since, charge.overdraft].map(Codec::signed));
            }
            None => self.count(0),
        }
        self.count(charge.ahead);
    }

    /// For the script, they are the cost of an additional rule.
    fn refusals(&mut self, refusals: &Refusals, wall: Micros) {
        let Refusals { caller, numbers, refusals, keys, sets, shadow, .. } = *refusals;
        let kind = if sets.is_some() { RESET } else { 0 };
        self.parameters(&numbers, caller, wall);
        [refusals, 1, 0, u64::from(shadow), kind, keys, sets.unwrap_or(0), 0, 0, 0, 0]
            .into_iter()
            .for_each(|number| self.count(number));
        self.plans(&numbers);
        self.count(0);
        self.count(0);
    }

    /// The parameters of a rule at `wall` on the gateway's wall clock.
    fn parameters(&mut self, numbers: &Numbers, caller: Key, wall: Micros) {
        self.word(numbers.kind.as_bytes());
        self.count(numbers.rpu);
        self.count(numbers.unit);
        let [first, second, third] = numbers.own;
        match numbers.windows {
            Some(windows) => self.list(&windows.edges(wall)),
            None => self.number(first),
        }
        self.number(second);
        match numbers.daily {
            Some(shape) => self.word(&shape.piece(caller).1),
            None => self.number(third),
        }
    }

    /// The values that all plans share.
    fn plans(&mut self, numbers: &Numbers) {
        match numbers.plans {
            Some(plans) => self.list(&plans.map(Codec::signed)),
            None => self.count(0),
        }
    }
}
