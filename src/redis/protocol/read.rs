//! Parses the replies to a pipeline.

use std::slice::Iter;

use super::resp::{Value, values};
use super::{
    Ask, AskReply, BanReply, Decided, Failure, Login, Pipeline, Question, Reply, RuleReply,
    ScriptAnswer, ScriptCall,
};
use crate::shard::Shard;
use diana_policy::decision::Retry;
use diana_policy::key::Seed;

/// The script's values for "never", and for a refusal that only requests in flight cause.
const NEVER: i64 = -1;
const SOON: i64 = -2;

impl Pipeline {
    /// Parses the reply to each call of this pipeline. If the login failed, or `body` is not a
    /// reply to the whole pipeline, all calls fail; other errors concern a single call.
    #[must_use]
    pub fn answers(&self, login: &Login, body: &[u8]) -> Vec<Result<ScriptAnswer, Failure>> {
        let values = values(body).unwrap_or_default();
        let (logged_in, rest) = values.split_at(login.commands().min(values.len()));
        if let Some(message) = logged_in.iter().find_map(Value::error) {
            return self.all(&Failure::of_login(message));
        }
        let ok = |value: &Value| *value == Value::Simple(b"OK");
        let is_whole = match rest.split_last() {
            Some((quit, rest)) => {
                rest.len() == self.calls.len() && logged_in.iter().chain([quit]).all(ok)
            }
            None => false,
        };
        // A truncated body may still contain errors.
        let mut values = rest.iter();
        let answers = self.calls.iter().map(|call| match values.next() {
            Some(Value::Error(message)) => Err(Failure::of(message)),
            Some(Value::Array(answer)) if is_whole => {
                let (rules, ordinal) = (self.sent_rules(call), self.sent_ordinal(call));
                let has = (self.sent_shards(call).is_some(), rules.is_some(), ordinal.is_some());
                call.answer(answer, has)
            }
            _ => Err(Failure::Garbage),
        });
        answers.collect()
    }

    /// The same failure for all calls.
    #[must_use]
    pub fn all(&self, failure: &Failure) -> Vec<Result<ScriptAnswer, Failure>> {
        self.calls.iter().map(|_| Err(failure.clone())).collect()
    }
}

impl ScriptCall {
    /// Parses a reply, with the number of different shard counts and of different rules and the
    /// latest ordinal, if it has them.
    fn answer(&self, values: &[Value], has: (bool, bool, bool)) -> Result<ScriptAnswer, Failure> {
        let answer = match values {
            [Value::Bulk(seed)] => unhex(seed).map(ScriptAnswer::Seed),
            numbers => self.decided(numbers, has).map(ScriptAnswer::Decided),
        };
        answer.ok_or(Failure::Garbage)
    }

    fn decided(
        &self,
        numbers: &[Value],
        (shards, rules, ordinal): (bool, bool, bool),
    ) -> Option<Decided> {
        let mut numbers = ReplyNumbers(numbers.iter());
        let gateways = match self.shard {
            Shard::FIRST => numbers.count()?,
            shard => {
                // Otherwise it is the reply of another shard.
                (numbers.number()? == -i64::from(shard.number())).then_some(())?;
                0
            }
        };
        let (corrupt, now) = (numbers.count()?, numbers.count()?);
        let is_apart = shards && numbers.count()? > 1;
        let mut asks = Vec::with_capacity(self.asks.len());
        for ask in &self.asks {
            asks.push(outcome(ask, &mut numbers)?);
        }
        let is_mixed = if rules { numbers.count().map(|rules| rules > 1) } else { None };
        let latest_ordinal = if ordinal { numbers.count() } else { None };
        let is_all = numbers.0.as_slice().is_empty();
        is_all.then_some(Decided {
            gateways,
            is_apart,
            is_mixed,
            latest_ordinal,
            now,
            corrupt,
            asks,
        })
    }
}

/// The numbers of a reply.
struct ReplyNumbers<'r>(Iter<'r, Value<'r>>);

impl ReplyNumbers<'_> {
    fn number(&mut self) -> Option<i64> {
        match self.0.next()? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    /// A number, or `None` for "never".
    fn or_never(&mut self) -> Option<Option<u64>> {
        match self.number()? {
            NEVER => Some(None),
            number => Some(Some(u64::try_from(number).ok()?)),
        }
    }

    fn reply(&mut self) -> Option<RuleReply> {
        Some(RuleReply {
            retry: match self.number()? {
                NEVER => Some(Retry::Never),
                SOON => Some(Retry::Soon),
                0 => None,
                ticks => Some(Retry::After(u64::try_from(ticks).ok()?)),
            },
            is_outstanding: self.count()? > 0,
            remaining: self.count()?,
            receipt: self.count()?,
            term: self.count()?,
            block: self.count()?,
            lease: self.count()?,
            charged: self.count()?,
            spend: self.count()?,
            overflow: self.count()? > 0,
        })
    }
}

fn outcome(ask: &Ask, numbers: &mut ReplyNumbers) -> Option<AskReply> {
    let wait = numbers.or_never()?;
    let mut replies = Vec::with_capacity(ask.questions.len());
    let mut is_refused = false;
    for question in &ask.questions {
        let reply = numbers.reply()?;
        let RuleReply { retry, remaining, receipt, overflow, .. } = reply;
        is_refused |= retry.is_some() && !question.is_shadow();
        replies.push(match question {
            Question::Rule(_) => Reply::Rule(reply),
            // The script's replies to rules and bans have the same format.
            Question::Ban(_) => {
                Reply::Ban(BanReply { retry, left: remaining, begins: receipt > 0, overflow })
            }
        });
    }
    // A refusal that names no rule is a malformed reply.
    (wait.is_some() || is_refused).then_some(AskReply { wait, replies })
}

fn unhex(text: &[u8]) -> Option<Seed> {
    let digits = str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
    let (k0, k1) = digits.split_at_checked(16)?;
    let half = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Seed { k0: half(k0)?, k1: half(k1)? })
}
