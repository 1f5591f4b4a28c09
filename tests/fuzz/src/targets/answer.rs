//! Arbitrary replies to calls to Redis: every request is decided once and in time, and no other
//! rule admits too many.

use std::rc::Rc;

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::resp::{Value, values};
use diana_redis::protocol::{Ask, Failure, Login, Reply, ScriptAnswer, ScriptCall};
use fastrand::Rng;
use kit::fake::FakeSharedData;

use crate::worker::{MILLISECOND, Response, START, Worker};
use kit::model::redis::Redis;
use kit::rules::{Rule, ask_of, pipeline_of_calls};

pub fn run(input: &[u8]) {
    read(input);
    fastrand::feed(input);
    let mut rng = Rng::with_seed(0);
    // The model does not support bans, so with them all replies are random.
    let mut model = rng.bool().then(Redis::default);
    let bans = if model.is_none() { ", ban: {after: 5, within: 1m, for: 1m}" } else { "" };
    let mut worker = Worker::new(&Rc::new(FakeSharedData::default()), bans);
    let mut now = START;
    while !rng.is_done() {
        for _ in 0..rng.u8(0..8) {
            worker.request(rng.u8(0..3), now);
        }
        now += MILLISECOND;
        worker.step(now, &mut |call| {
            let time = 1_700_000_000 * SECOND + now;
            let real = model.as_mut().map(|model| model.answer(&call.body, time));
            response(real, &mut rng)
        });
    }
    // There are no more replies.
    for _ in 0..300 {
        now += MILLISECOND;
        worker.step(now, &mut |_| None);
    }
    assert!(!worker.is_waiting(), "a request was forgotten");
}

/// A reply to a batch either has the batch's shape, or is invalid.
fn read(input: &[u8]) {
    let Some((shape, body)) = input.split_first() else { return };
    let rule = Rule::new("W", Quota::new(Unit::Second, 5));
    let ask = |rules| ask_of(0, vec![rule.charge(1, 1, 0); rules]);
    let asks: Vec<Ask> =
        (0..shape % 4).map(|number| ask(usize::from(shape / 4 % 4 + number))).collect();
    let calls = vec![asks; usize::from(shape / 16 % 3)];
    let pipeline = pipeline_of_calls(None, calls);
    let most = 256 * input.len() + (8 << 10);
    let answers = crate::bounded::to(most, || pipeline.answers(&Login::default(), body));
    assert_eq!(answers.len(), pipeline.calls.len());
    for (call, answer) in pipeline.calls.iter().zip(answers) {
        check(call, answer);
    }
}

/// A reply to a call either has the call's shape, or is invalid.
fn check(call: &ScriptCall, answer: Result<ScriptAnswer, Failure>) {
    match answer {
        Ok(ScriptAnswer::Decided(decided)) => {
            assert_eq!(decided.asks.len(), call.asks.len());
            for (outcome, ask) in decided.asks.iter().zip(&call.asks) {
                assert_eq!(outcome.replies.len(), ask.questions.len());
                let retry = |reply: &Reply| match reply {
                    Reply::Rule(reply) => reply.retry,
                    Reply::Ban(reply) => reply.retry,
                };
                let refuses = outcome.replies.iter().any(|reply| retry(reply).is_some());
                assert!(outcome.wait.is_some() || refuses, "refused, and nobody says so");
            }
        }
        Ok(ScriptAnswer::Seed(_)) => {}
        Err(failure) => {
            let text = failure.to_string();
            assert!(text.len() < 1000 && !text.contains(['\n', '\r']), "{text}");
        }
    }
}

/// A random response, usually similar to a valid one.
fn response(real: Option<Vec<u8>>, rng: &mut Rng) -> Option<Response> {
    let status = match rng.u8(0..16) {
        0 => return None,
        1 => None,
        2 => Some(rng.u16(..)),
        _ => Some(200),
    };
    let body = match (rng.u8(0..8), real) {
        (0, _) => rng.rest(40),
        (1, _) => format!("*1\r\n$32\r\n{:032x}\r\n+OK\r\n", rng.u8(0..3)).into_bytes(),
        (2, _) => b"-NOSCRIPT No matching script.\r\n+OK\r\n".to_vec(),
        (_, Some(real)) => changed(&real, rng),
        (_, None) => {
            let numbers: Vec<i64> = (0..rng.usize(0..80)).map(|_| number(rng)).collect();
            spell(&numbers)
        }
    };
    Some(Response { status, body })
}

/// A valid response with some changed numbers.
fn changed(real: &[u8], rng: &mut Rng) -> Vec<u8> {
    let read = values(real);
    let Some([Value::Array(answer), _]) = read.as_deref() else { return real.into() };
    let numbers = answer.iter().filter_map(|reply| match reply {
        Value::Integer(number) => Some(*number),
        _ => None,
    });
    let mut numbers: Vec<i64> = numbers.collect();
    if numbers.len() < answer.len() {
        return real.into();
    }
    for _ in 0..rng.u8(0..4) {
        let place = rng.usize(0..numbers.len());
        numbers[place] = number(rng);
    }
    spell(&numbers)
}

fn number(rng: &mut Rng) -> i64 {
    match rng.u8(0..8) {
        0..4 => 0,
        4 => 1,
        5 => i64::from(rng.u8(..)),
        6 => rng.i64(..),
        _ => -1,
    }
}

fn spell(numbers: &[i64]) -> Vec<u8> {
    let mut body = format!("*{}\r\n", numbers.len());
    numbers.iter().for_each(|number| body += &format!(":{number}\r\n"));
    (body + "+OK\r\n").into_bytes()
}
