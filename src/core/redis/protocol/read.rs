//! What came back of a trip.

use std::slice::Iter;

use super::resp::{Reply, replies};
use super::{Answer, Ask, Decided, Failure, Login, Opinion, Outcome, Trip};
use crate::decision::Retry;
use crate::key::Seed;

/// How the script says never.
const NEVER: i64 = -1;

impl Trip {
    /// The answer that `body` is, to this trip with this login.
    ///
    /// # Errors
    ///
    /// If Redis refuses the trip, or these bytes are no answer to it.
    pub fn answer(&self, login: &Login, body: &[u8]) -> Result<Answer, Failure> {
        let replies = replies(body).ok_or(Failure::Garbage)?;
        for (number, reply) in replies.iter().enumerate() {
            match reply {
                Reply::Error(message) if number < login.commands() => {
                    return Err(Failure::of_login(message));
                }
                Reply::Error(message) => return Err(Failure::of(message)),
                _ => {}
            }
        }
        let (logged_in, rest) =
            replies.split_at_checked(login.commands()).ok_or(Failure::Garbage)?;
        let [Reply::Array(answer), quit] = rest else { return Err(Failure::Garbage) };
        let ok = |reply: &Reply| *reply == Reply::Simple(b"OK");
        if !(logged_in.iter().all(ok) && ok(quit)) {
            return Err(Failure::Garbage);
        }
        let answer = match answer.as_slice() {
            [Reply::Bulk(seed)] => unhex(seed).map(Answer::Seed),
            numbers => self.decided(numbers).map(Answer::Decided),
        };
        answer.ok_or(Failure::Garbage)
    }

    fn decided(&self, numbers: &[Reply]) -> Option<Decided> {
        let mut numbers = Numbers(numbers.iter());
        let (gateways, foreign, now) = (numbers.count()?, numbers.count()?, numbers.count()?);
        let mut asks = Vec::with_capacity(self.asks.len());
        for ask in &self.asks {
            asks.push(outcome(ask, &mut numbers)?);
        }
        numbers.0.as_slice().is_empty().then_some(Decided { gateways, now, foreign, asks })
    }
}

/// The numbers of an answer.
struct Numbers<'r>(Iter<'r, Reply<'r>>);

impl Numbers<'_> {
    fn number(&mut self) -> Option<i64> {
        match self.0.next()? {
            Reply::Integer(number) => Some(*number),
            _ => None,
        }
    }

    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.number()?).ok()
    }

    /// One that may say never instead.
    fn or_never(&mut self) -> Option<Option<u64>> {
        match self.number()? {
            NEVER => Some(None),
            number => Some(Some(u64::try_from(number).ok()?)),
        }
    }
}

fn outcome(ask: &Ask, numbers: &mut Numbers) -> Option<Outcome> {
    let wait = numbers.or_never()?;
    let mut rules = Vec::with_capacity(ask.rules.len());
    for _ in &ask.rules {
        rules.push(Opinion {
            retry: match numbers.or_never()? {
                None => Some(Retry::Never),
                Some(0) => None,
                Some(ticks) => Some(Retry::After(ticks)),
            },
            loan: numbers.count()?,
            remaining: numbers.count()?,
            receipt: numbers.count()?,
            term: numbers.count()?,
            block: numbers.count()?,
            lease: numbers.count()?,
            starts: numbers.count()?,
            spend: numbers.count()?,
            overflow: numbers.count()? > 0,
        });
    }
    // Who is refused is refused by a rule.
    let mut enforced = ask.rules.iter().zip(&rules).filter(|(charge, _)| !charge.shadow);
    let refused = enforced.any(|(_, opinion)| opinion.retry.is_some());
    (wait.is_some() || refused).then_some(Outcome { wait, rules })
}

fn unhex(text: &[u8]) -> Option<Seed> {
    let digits = str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
    let (k0, k1) = digits.split_at_checked(16)?;
    let half = |digits| u64::from_str_radix(digits, 16).ok();
    Some(Seed { k0: half(k0)?, k1: half(k1)? })
}
