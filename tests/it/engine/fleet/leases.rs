//! What a worker wants of Redis beyond the request in hand.

use diana_core::algorithm::sliding_window;
use diana_core::policy::Quota;
use diana_core::port::Call;
use diana_core::time::Unit;
use kit::model::redis::Redis;
use kit::model::rule::Rule;
use kit::model::wire::{Asking, commands};
use kit::model::{Asked, Model};

use super::{MILLISECOND, Worker, ann, opinion};
use crate::fleet::redis::decides;

/// The permits for later that each ask of a call wants.
fn wants(call: &Call) -> Vec<u64> {
    let words = commands(&call.body);
    let mut asking = Asking::read(&words[0]);
    let mut wants = Vec::new();
    while let Some((rules, _)) = asking.ask() {
        (0..rules).for_each(|_| wants.push(asking.rule(0, 0).1.want));
    }
    wants
}

/// Redis is asked when a block is nearly used up, and for about as much as a tenth of a second takes.
#[test]
fn a_steady_caller_costs_few_questions_and_keeps_little_from_others() {
    for algo in ["W", "SW", "TB"] {
        let rule =
            format!("actor: account, unit: second, rpu: 100000, algo: {algo}, scope: global");
        let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
        let mut most = 0;
        for _ in 0..500 {
            (0..5).for_each(|_| worker.request(&ann()));
            worker.step(&mut |call, time| {
                most = wants(call).into_iter().max().unwrap_or(0).max(most);
                Some(redis.answer(&call.body, time))
            });
        }
        println!("{algo}: {} asks, of which one wants {most}", redis.asks);
        worker.steps(3, &mut |call, time| Some(redis.answer(&call.body, time)));
        assert_eq!(worker.admitted(), 2500);
        assert!(redis.asks < 250, "{algo}: {} asks", redis.asks);
        assert!((250..=1000).contains(&most), "{algo}: {most} at five a millisecond");
    }
}

/// Others hold what is left, and may have others waiting for it: what is taken now must be used now.
#[test]
fn while_permits_are_lent_a_worker_wants_no_more_than_wait_for_them() {
    let mut worker = Worker::new("actor: account, unit: second, rpu: 1000, cost: 2, scope: global");
    let leased = (100 * MILLISECOND).cast_signed();
    let mut wanted = Vec::new();
    (0..30).for_each(|_| worker.request(&ann()));
    worker.steps(60, &mut |call, _| {
        let wants = wants(call);
        // One permit is left, too few for a request.
        let refused = [-1, leased, leased, 1, 0, 0, 0, 0, 0, 0, 0];
        let numbers = refused.repeat(wants.len());
        wanted.extend(wants.into_iter().filter(|want| *want > 0));
        Some(decides(&numbers))
    });
    println!("{wanted:?}");
    assert!(wanted.iter().max().is_some_and(|most| *most <= 2 * 30), "{wanted:?}");
    // Nobody waits any more once all of them have been refused.
    let refused = [-1, leased, leased, 1, 0, 0, 0, 0, 0, 0, 0];
    while !worker.waiting.is_empty() {
        worker.step(&mut |call, _| Some(decides(&refused.repeat(wants(call).len()))));
    }
    worker.request(&ann());
    worker.step(&mut |call, _| {
        assert!(wants(call).iter().all(|want| *want == 0), "{:?}", wants(call));
        Some(decides(&refused.repeat(wants(call).len())))
    });
}

/// Whoever asks too early for permits of the next slice gets none of them, and asks again and again.
#[test]
fn the_next_slice_is_asked_for_when_redis_lends_of_it() {
    for (name, unit) in Unit::ALL {
        for slices in 1..=60 {
            let quota = Quota { slices: Some(slices), ..Quota::new(unit, 1_000_000) };
            let codec = sliding_window::ENTRY.codec(&quota).unwrap();
            let ahead = (codec.ahead)(&quota);
            let mut model = Model::default();
            let now = model.at(90 * 7 * Unit::LONGEST - ahead);
            let many = Asked { want: 1000, soon: 1000, unit_cost: 1, keys: 1, ..Asked::default() };
            let (outcome, _) = model.ask(&[Rule::new("SW", quota)], now, 0, &[many]);
            let leased = outcome.rules[0];
            assert!(leased.block > 0, "{slices} slices of a {name}");
            assert_eq!(leased.starts, ahead, "{slices} slices of a {name}");
        }
    }
}

/// Nobody asks for each request that waits: more is asked for once for all of them.
#[test]
fn a_caller_who_wants_too_much_costs_few_questions() {
    for algo in ["W", "SW", "TB"] {
        let rule = format!("actor: account, unit: second, rpu: 500, algo: {algo}, scope: global");
        let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
        for _ in 0..2000 {
            (0..5).for_each(|_| worker.request(&ann()));
            worker.step(&mut |call, time| Some(redis.answer(&call.body, time)));
        }
        println!("{algo}: {} asks", redis.asks);
        assert!(redis.asks < 500, "{algo}: {} asks", redis.asks);
    }
}

/// A block is asked for before the one in hand is used up. That of the next slice lies ready when it begins, as far as
/// the worker can know: a call is on its way for two milliseconds, and its answer as well, so that the slice begins two
/// sooner there and seems to begin two later here.
#[test]
fn a_steady_caller_waits_no_longer_than_an_answer_is_on_its_way() {
    for (more, slice) in [("SW", 100), ("SW, slices: 2", 500), ("TB", 2000)] {
        let rule =
            format!("actor: account, unit: second, rpu: 100000, algo: {more}, scope: global");
        let (mut worker, mut redis) = (Worker::new(&rule), Redis::default());
        worker.late = 4;
        for tick in 0..1500 {
            let before = worker.waiting.len();
            (0..5).for_each(|_| worker.request(&ann()));
            let waits = worker.waiting.len() > before;
            assert!(!waits || (tick + 2) % slice < 4 || tick < 20, "{more}: at {tick} ms");
            worker.step(&mut |call, time| Some(redis.answer(&call.body, time)));
        }
    }
}

/// A bucket's block that is not nearly used up when its time is over: the next one lies ready then.
#[test]
fn who_slows_down_does_not_wait_when_a_block_ends() {
    let rule = "actor: account, unit: second, rpu: 100000, algo: TB, scope: global";
    let (mut worker, mut redis) = (Worker::new(rule), Redis::default());
    worker.late = 4;
    for tick in 0..800 {
        let before = worker.waiting.len();
        let requests = if tick < 500 { 5 } else { 1 };
        (0..requests).for_each(|_| worker.request(&ann()));
        assert!(tick < 20 || worker.waiting.len() == before, "it waits at {tick} ms");
        worker.step(&mut |call, time| Some(redis.answer(&call.body, time)));
    }
}

/// Wherever in a slice it stops: of what it had of this slice and of the next one nothing is lost.
#[test]
fn what_a_caller_leaves_unused_comes_back() {
    let rule = "actor: account, unit: minute, rpu: 1000000, slices: 60, algo: SW, scope: global";
    for stops in (920..1060).step_by(5) {
        let (mut worker, mut redis) = (Worker::new(rule), Redis::default());
        for tick in 0..stops + 300 {
            (0..if tick < stops { 5 } else { 0 }).for_each(|_| worker.request(&ann()));
            if tick % 20 == 0 {
                worker.engine.tidy(worker.clock.0.get());
            }
            worker.step(&mut |call, time| Some(redis.answer(&call.body, time)));
        }
        let admitted = worker.admitted();
        let mut other = Worker::new(rule);
        other.clock.0.set(worker.clock.0.get());
        other.request(&ann());
        other.steps(2, &mut |call, time| Some(redis.answer(&call.body, time)));
        let left = format!("r={}", 1_000_000 - admitted - 1);
        let told = super::super::field(&other.fields, "ratelimit").unwrap();
        assert!(told.contains(&left), "stopped after {stops} ms: {told}, not {left}");
    }
}

/// What is wanted for later in a millisecond in which each ask gets the same answer.
fn wanted(worker: &mut Worker, answer: &[i64]) -> Vec<u64> {
    let mut wanted = Vec::new();
    worker.step(&mut |call, _| {
        let wants = wants(call);
        wanted.extend(wants.iter().copied().filter(|want| *want > 0));
        Some(decides(&answer.repeat(wants.len())))
    });
    wanted
}

/// An answer that admits, beyond which so many permits are left.
fn admits(left: i64) -> Vec<i64> {
    [&[0][..], &opinion(0, left, 1)].concat()
}

fn often() -> Worker {
    Worker::new("actor: account, unit: second, rpu: 1000, scope: global")
}

/// That the last permit was taken by a caller who comes rarely does not make it one who has to wait.
#[test]
fn whoever_comes_often_wants_a_block_though_the_last_permit_was_its_own() {
    let mut worker = often();
    let mut wants = 0;
    for _ in 0..30 {
        worker.request(&ann());
        wants += wanted(&mut worker, &admits(0)).len();
    }
    assert!(wants > 0);
}

/// A refusal for what was used says nothing of others who hold something.
#[test]
fn whoever_used_up_its_permits_wants_a_block_when_they_are_there_again() {
    let mut worker = often();
    (0..25).for_each(|_| worker.request(&ann()));
    wanted(&mut worker, &[-1, 5 * MILLISECOND.cast_signed(), 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    worker.steps(10, &mut |_, _| panic!("the refusal is remembered"));
    worker.request(&ann());
    assert!(!wanted(&mut worker, &admits(900)).is_empty());
}

/// Where nothing is left others may wait for what is taken now; where something is left the next block is asked for.
#[test]
fn a_worker_wants_blocks_as_long_as_something_is_left() {
    for (left, wants_blocks) in [(0, false), (1, true)] {
        let mut worker = often();
        let mut all = Vec::new();
        for _ in 0..80 {
            worker.request(&ann());
            all.extend(wanted(&mut worker, &admits(left)));
        }
        // A tenth of a second takes a hundred, and twenty wait at most until Redis is asked again.
        let most = all.iter().skip(1).max().copied().unwrap_or(0);
        assert!(all[0] > 50 && (most > 50) == wants_blocks, "{left} left: {all:?}");
    }
}
