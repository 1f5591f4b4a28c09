//! What a worker wants of Redis beyond the request in hand.

use diana_core::algorithm::sliding_window;
use diana_core::policy::Quota;
use diana_core::port::Call;
use diana_core::time::Unit;
use kit::model::redis::Redis;
use kit::model::rule::Rule;
use kit::model::wire::{Asking, commands};
use kit::model::{Asked, Model};

use super::{MILLISECOND, Worker, ann};
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
            let now = model.at(20_000 * Unit::Day.micros() - ahead);
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
