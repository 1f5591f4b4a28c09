//! Encodes a trip as commands.

use std::fmt::Write;

use super::key::{Name, prefix};
use super::pack::Array;
use super::resp::{command, word};
use super::text::{DIGEST, TEXT};
use super::{Ask, Back, Charge, Login, Question, Refusals, Script, ScriptCall, Settles, Trip};
use crate::shard::{Shard, Shards};
use diana_policy::key::Seed;
use diana_policy::time::Micros;

/// Values in place of the flag for tentative charges: a debt, a confirmed slot, a freed slot, a
/// heartbeat of the holder, a check.
const DEBT: u64 = 2;
const HOLDS: u64 = 3;
const FREES: u64 = 4;
const LIVES: u64 = 5;
const CHECKS: u64 = 6;
/// In the same place: a read of usage, a reset.
const LOOKS: u64 = 7;
const LIFTS: u64 = 8;

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

impl Trip {
    /// The bytes to send. Redis closes the connection after its reply.
    #[must_use]
    pub fn pipeline(&self, login: &Login) -> Vec<u8> {
        let mut out = Vec::new();
        login.write(&mut out);
        self.calls.iter().for_each(|call| self.write(call, &mut out));
        command(&mut out, 1);
        word(&mut out, b"QUIT");
        out
    }

    fn write(&self, call: &ScriptCall, out: &mut Vec<u8>) {
        let questions = || call.asks.iter().flat_map(|ask| &ask.questions);
        let keys = 3 + questions().count() + usize::from(call.settles.is_some());
        let parts = self.sent_shards(call);
        let more = if call.settles.is_some() { 3 } else { usize::from(parts.is_some()) };
        command(out, 3 + keys + 4 + more);
        let [name, what]: [&[u8]; 2] = match call.script {
            Script::Digest => [b"EVALSHA", DIGEST],
            Script::Text => [b"EVAL", TEXT],
        };
        word(out, name);
        word(out, what);
        word(out, keys.to_string().as_bytes());
        let mut key = prefix(self.tags.of(call.part));
        let prefix = key.len();
        let names = [Name::Seed, Name::Clock, Name::Gateways].into_iter();
        let ledger = call.settles.map(|settles| Name::Ledger(settles.sender));
        for name in names.chain(questions().map(Name::of)).chain(ledger) {
            key.truncate(prefix);
            // Writing to a string cannot fail.
            _ = write!(key, "{name}");
            word(out, key.as_bytes());
        }
        let now = self.now.map(|now| now.to_string()).unwrap_or_default();
        word(out, now.as_bytes());
        word(out, format!("{:016x}", self.gateway).as_bytes());
        let Seed { k0, k1 } = self.seed;
        let what = match call.part {
            Shard::FIRST => format!("{k0:016x}{k1:016x}"),
            part => part.number().to_string(),
        };
        word(out, what.as_bytes());
        let mut numbers = Array::default();
        call.asks.iter().for_each(|ask| ask.pack(self.wall, &mut numbers));
        word(out, &numbers.finish());
        let parts = parts.map(|parts| parts.number().to_string());
        if parts.is_some() || call.settles.is_some() {
            word(out, parts.unwrap_or_default().as_bytes());
        }
        if let Some(Settles { number, asks, .. }) = call.settles {
            word(out, number.to_string().as_bytes());
            word(out, asks.to_string().as_bytes());
        }
    }

    /// The gateway's number of shards, if the call reports it: others may be configured
    /// differently.
    pub(super) fn sent_shards(&self, call: &ScriptCall) -> Option<Shards> {
        let parts = self.tags.parts();
        (call.part == Shard::FIRST && parts != Shards::ONE).then_some(parts)
    }
}

impl Ask {
    fn pack(&self, wall: Micros, to: &mut Array) {
        to.count(self.questions.len() as u64);
        to.count(self.delay);
        for question in &self.questions {
            match question {
                Question::Rule(charge) => charge.pack(wall, to),
                Question::Ban(refusals) => refusals.pack(wall, to),
            }
        }
    }
}

impl Charge {
    fn pack(&self, wall: Micros, to: &mut Array) {
        let Charge { caller, numbers, cost, unit_cost, want, keys, back, .. } = *self;
        let counted = self.counted.map_or(0, |permits| permits + 1);
        let shadow = u64::from(self.shadow);
        let tentative = if self.checks { CHECKS } else { u64::from(self.tentative) };
        let [kind, receipt, term, block, left] = match back {
            Back::Nothing => [tentative, 0, 0, 0, 0],
            Back::Cost { receipt, term, permits } => [tentative, receipt, term, 0, permits],
            Back::Debt { receipt, permits } => [DEBT, receipt, 0, 0, permits],
            // Incremented, since zero means that no number is sent.
            Back::Holds { term, places } => [HOLDS, term, 0, 0, places + 1],
            Back::Frees { places } => [FREES, 0, 0, 0, places + 1],
            Back::Lives => [LIVES, 0, 0, 0, 0],
            Back::Looks => [LOOKS, 0, 0, 0, 0],
            Back::Lifts => [LIFTS, 0, 0, 0, 0],
            Back::Block { receipt, term, block, left } => [tentative, receipt, term, block, left],
        };
        numbers.pack(caller, wall, to);
        [cost, unit_cost, want, shadow, kind, keys, receipt, term, block, left, counted]
            .into_iter()
            .for_each(|number| to.count(number));
        numbers.pack_plans(to);
    }
}

impl Refusals {
    /// For the script, they are the cost of an additional rule.
    fn pack(&self, wall: Micros, to: &mut Array) {
        let Refusals { caller, numbers, refusals, keys, sets, .. } = *self;
        let kind = if sets.is_some() { LIFTS } else { 0 };
        numbers.pack(caller, wall, to);
        [refusals, 1, 0, 0, kind, keys, sets.unwrap_or(0), 0, 0, 0, 0]
            .into_iter()
            .for_each(|number| to.count(number));
        numbers.pack_plans(to);
    }
}
