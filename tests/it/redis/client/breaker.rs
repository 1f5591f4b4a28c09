//! The circuit breaker: a failure of one worker is shared with all, and one worker at a time probes
//! Redis.

use std::rc::Rc;

use diana_policy::port::Call;
use diana_policy::time::SECOND;
use diana_store::replies::QuestionResult;
use fastrand::Rng;
use kit::fake::FakeSharedData;

use super::{MILLISECOND, Response, TIMEOUT, Worker, ok, requests, reset, status};
use crate::support::redis::{Seen, admits};
use kit::seed;

pub const KEY: &str = "diana/2/test/fleet";

pub fn gateway(workers: usize) -> (Rc<FakeSharedData>, Vec<Worker>) {
    let data = Rc::new(FakeSharedData::default());
    let workers = (0..workers).map(|_| Worker::of(&data)).collect();
    (data, workers)
}

/// Returns true for a probe, which has no question, and for a rehearsal, whose questions are about no client.
pub fn is_probe(call: &Call) -> bool {
    Seen::of(call).callers.iter().all(|caller| *caller == 0)
}

/// A simulation in steps of a millisecond for all workers. A call gets its reply a millisecond
/// later, or fails after the timeout.
pub fn run(
    workers: &mut [Worker],
    from: u64,
    until: u64,
    redis: impl Fn(u64) -> Option<Response>,
) -> Probes {
    let mut probes = Probes::default();
    let mut coming: Vec<(u64, usize, u32, Response)> = Vec::new();
    for now in (from..until).step_by(MILLISECOND as usize) {
        while let Some(place) = coming.iter().position(|(at, ..)| *at <= now) {
            let (_, number, token, answer) = coming.remove(place);
            workers[number].answer(token, &answer, now);
        }
        for (number, worker) in workers.iter_mut().enumerate() {
            if worker.next(now).is_some_and(|next| next <= now) {
                worker.work(now);
            }
            for (token, call) in worker.calls.fresh() {
                assert!(is_probe(&call), "{:?} is no probe", Seen::of(&call));
                probes.sent.push((now, number));
                let (answer, after) = match redis(now) {
                    None => (ok(admits(&call)), MILLISECOND),
                    Some(failure) => (failure, TIMEOUT),
                };
                coming.push((now + after, number, token, answer));
            }
        }
        let together = workers.iter().filter(|worker| worker.is_connected()).count();
        if probes.first.is_none() && together > 0 {
            probes.first = Some(now);
        }
        if together == workers.len() {
            probes.all = Some(now);
            break;
        }
    }
    probes
}

/// Calls in degraded mode, and the instants at which the first and the last worker detected that
/// Redis is available.
#[derive(Default)]
pub struct Probes {
    sent: Vec<(u64, usize)>,
    first: Option<u64>,
    pub all: Option<u64>,
}

#[test]
fn one_failure_starts_degraded_mode_in_all_workers() {
    let bad: [Response; 7] = [
        status(503),
        status(504),
        status(302),
        reset(),
        ok(b"<html>".into()),
        ok(b"".into()),
        ok(b"-LOADING Redis is loading\r\n+OK\r\n".into()),
    ];
    for bad in bad {
        let (_, mut workers) = gateway(3);
        let mut asked = Vec::new();
        for worker in &mut workers {
            asked.push(worker.ask(1, 0));
            assert!(worker.work(0).is_empty());
        }
        let results = workers[0].lose(&bad, 5);
        assert_eq!(requests(results), [(asked[0], QuestionResult::Degraded)], "{bad:?}");
        for worker in &mut workers[1..] {
            worker.calls.fresh();
            assert!(worker.work(MILLISECOND).is_empty(), "what is out is waited for");
            let late = worker.ask(2, MILLISECOND);
            let results = worker.work(MILLISECOND);
            assert_eq!(requests(results), [(late, QuestionResult::Degraded)]);
            assert!(!worker.is_connected() && worker.calls.none());
        }
        assert_eq!(workers[0].client.log_lines.len(), 1);
        assert!(workers[1].client.log_lines.is_empty(), "one line for each change");
    }
}

#[test]
fn one_worker_probes_with_backoff() {
    let (_, mut workers) = gateway(4);
    workers.iter_mut().for_each(|worker| {
        worker.ask(1, 0);
        worker.work(0);
        worker.calls.fresh();
    });
    let probes = run(&mut workers, TIMEOUT + 10 * MILLISECOND, 30 * SECOND, |_| Some(status(503)));
    assert_eq!(probes.all, None);
    let times: Vec<u64> = probes.sent.iter().map(|(now, _)| *now).collect();
    let pauses: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(pauses.iter().all(|pause| *pause >= SECOND / 10), "{pauses:?}");
    assert!(pauses.is_sorted(), "{pauses:?}");
    assert!(pauses[4..].iter().all(|pause| pause.abs_diff(SECOND) <= SECOND / 10), "{pauses:?}");
}

#[test]
fn two_good_replies_end_degraded_mode() {
    let (_, mut workers) = gateway(3);
    workers[1].ask(1, 0);
    workers[2].ask(1, 0);
    workers[0].fail(0);
    let mut good = 0;
    for now in (0..SECOND).step_by(MILLISECOND as usize) {
        for number in 0..3 {
            workers[number].work(now);
            for (token, call) in workers[number].calls.fresh() {
                assert!(workers.iter().all(|worker| !worker.is_connected()), "{good} was enough");
                good += usize::from(is_probe(&call));
                workers[number].answer(token, &ok(admits(&call)), now);
            }
        }
        if good == 2 {
            break;
        }
    }
    assert_eq!(good, 2);
    workers.iter_mut().for_each(|worker| drop(worker.work(SECOND)));
    assert!(workers.iter().all(|worker| worker.is_connected()));
    let news: Vec<_> = workers.iter().flat_map(|worker| &worker.client.log_lines).collect();
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(
        news[0].contains("Envoy cannot connect") && news[1].contains("is available again"),
        "{news:?}"
    );
    let whole = "global rules: Redis (cluster `redis`) ";
    assert!(news.iter().all(|line| line.starts_with(whole)), "{news:?}");
}

#[test]
fn good_and_bad_reply_keep_degraded_mode() {
    let (_, mut workers) = gateway(1);
    workers[0].fail(0);
    let odd = std::cell::Cell::new(false);
    let redis = |_| {
        odd.set(!odd.get());
        (!odd.get()).then(|| status(503))
    };
    let probes = run(&mut workers, 0, 20 * SECOND, redis);
    assert_eq!(probes.all, None);
    assert!(probes.sent.len() < 60, "{}", probes.sent.len());
}

/// A Redis whose probes succeed and whose script fails is unavailable: no breaker closes before it
/// has decided a question.
#[test]
fn redis_that_decides_nothing_stays_unavailable() {
    for bad in [ok(b"-ERR user_script:7\r\n+OK\r\n".into()), status(504)] {
        let (_, mut workers) = gateway(2);
        workers[1].fail(0);
        let mut degraded = 0;
        for now in (0..20 * SECOND).step_by(MILLISECOND as usize) {
            // From then on it decides.
            let decides = now >= 18 * SECOND;
            for (number, worker) in workers.iter_mut().enumerate() {
                let mut results = Vec::new();
                if now % (10 * MILLISECOND) == 0 {
                    worker.ask(1 + number as u64, now);
                }
                results.extend(worker.work(now));
                for (token, call) in worker.calls.fresh() {
                    let is_empty = Seen::of(&call).callers.is_empty();
                    let good = is_empty || decides;
                    let back = if good { ok(admits(&call)) } else { bad.clone() };
                    results.extend(worker.answer(token, &back, now).unwrap());
                }
                let results = requests(results);
                degraded += results.iter().filter(|it| it.1 == QuestionResult::Degraded).count();
                assert!(decides || !worker.is_connected(), "{bad:?} at {now}");
            }
        }
        assert!(workers.iter().all(Worker::is_connected), "it decides again");
        assert!((3_600..=3_800).contains(&degraded), "{degraded}");
        let lines = workers.iter().flat_map(|worker| &worker.client.log_lines).count();
        let changes: u64 = workers.iter().map(|worker| worker.client.counts.changes).sum();
        assert_eq!((lines, changes), (2, 2), "one change, and one back");
    }
}

/// A Redis that decides small calls and refuses those of many requests does not change the mode
/// again and again: each closing is later than the one before, up to 32 s. It counts for the fleet
/// again when it decides, and is trusted again after some calm.
#[test]
fn redis_that_refuses_large_calls_does_not_flap() {
    let (_, mut workers) = gateway(2);
    let refusal = ok(b"-OOM command not allowed when used memory > 'maxmemory'.\r\n+OK\r\n".into());
    // Which calls are refused, by the time.
    let (ends, calm, late) = (120 * SECOND, 160 * SECOND, 162 * SECOND);
    let mut closings = Vec::new();
    let mut beats = Vec::new();
    let mut were_connected = true;
    for now in (0..170 * SECOND).step_by(MILLISECOND as usize) {
        let refuses = now < ends || (calm..calm + 5 * MILLISECOND).contains(&now);
        for worker in &mut workers {
            if now % (5 * MILLISECOND) == 0 {
                for caller in 1..=8 {
                    worker.ask(caller, now);
                }
            }
            worker.work(now);
            for (token, call) in worker.calls.fresh() {
                beats.push(now);
                let is_large = Seen::of(&call).callers.len() > 2;
                let back = if refuses && is_large { refusal.clone() } else { ok(admits(&call)) };
                worker.answer(token, &back, now).unwrap();
            }
        }
        let are_connected = workers.iter().any(Worker::is_connected);
        if are_connected && !were_connected {
            closings.push(now);
        }
        were_connected = are_connected;
    }
    let pauses: Vec<u64> = closings.windows(2).map(|two| (two[1] - two[0]) / SECOND).collect();
    assert!(pauses.starts_with(&[2, 4, 8, 16, 32]), "{pauses:?}");
    assert!(closings.iter().any(|at| (ends..ends + 34 * SECOND).contains(at)), "{closings:?}");
    // One relapse after a calm time.
    assert!(closings.iter().any(|at| (calm..late).contains(at)), "{closings:?}");
    // Probes go on as heartbeats.
    let silence = beats.windows(2).map(|two| two[1] - two[0]).max();
    assert!(silence.is_some_and(|silence| silence <= SECOND), "{silence:?}");
}

#[test]
fn damaged_record_does_not_prevent_recovery() {
    let start = seed::next();
    for number in 0..300 {
        let seed = start.wrapping_add(number);
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let (data, mut workers) = gateway(2);
        if rng.bool() {
            workers[0].fail(0);
        }
        match rng.u8(0..5) {
            0 => data.clear(),
            1 => data.set(KEY, &vec![0xff; rng.usize(0..200)]),
            2 => data.set(KEY, &[0xff; 64]),
            _ => {
                // Damages some words of the record.
                let (mut bytes, _) = diana_policy::port::SharedData::get(&*data, KEY).unwrap();
                for _ in 0..rng.usize(1..8) {
                    let word = rng.usize(0..bytes.len() / 8);
                    let value = rng.u64(..) >> rng.u8(0..64);
                    bytes[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
                }
                data.set(KEY, &bytes);
            }
        }
        for worker in &mut workers {
            worker.ask(1, SECOND);
        }
        let mut now = SECOND;
        // If a record holds many recent refusals, the breaker distrusts Redis for 32 s.
        while now < 40 * SECOND {
            for worker in &mut workers {
                worker.work(now);
                for (token, call) in worker.calls.fresh() {
                    worker.answer(token, &ok(admits(&call)), now).unwrap();
                }
            }
            now += MILLISECOND;
            if now > 4 * SECOND && workers.iter().all(|worker| worker.is_connected()) {
                break;
            }
        }
        assert!(workers.iter().all(|worker| worker.is_connected()));
    }
}
