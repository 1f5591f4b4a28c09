//! Shards in one Redis.

use diana_policy::Quota;
use diana_policy::bloom::Shape;
use diana_policy::key::Key;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::{Login, Numbers, Pipeline, Script, ScriptAnswer};
use diana_redis::shard::{Shard, Shards, Tags};
use fastrand::Rng;

use kit::rules::{Rule, ask_of, by, pipeline_of_calls};
use kit::seed;
use kit::server::{Decided, Server};

const DAY: u64 = 86_400 * SECOND;
const NOW: u64 = 20_000 * DAY + DAY / 2;

/// The same calls, each for another of `parts` shards.
fn over(parts: u16, pipeline: Pipeline) -> Pipeline {
    let mut pipeline = by(Script::Text, &pipeline);
    pipeline.tags = Tags::new("test", Shards::new(parts));
    (0..).zip(&mut pipeline.calls).for_each(|(number, call)| call.shard = Shard::new(number));
    pipeline
}

fn decided(server: &Server, pipeline: &Pipeline) -> Vec<Decided> {
    let decided = |answer| match answer {
        Ok(ScriptAnswer::Decided(decided)) => Decided::of(decided),
        Ok(ScriptAnswer::Seed(_)) => panic!("another seed"),
        Err(failure) => panic!("{failure}"),
    };
    server.answers(pipeline, &Login::default()).into_iter().map(decided).collect()
}

#[test]
fn only_the_first_shard_counts_gateways() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let asks = || vec![ask_of(0, vec![rule.charge(1, 1, 0)])];
    let pipeline = over(3, pipeline_of_calls(Some(NOW), vec![asks(), asks(), asks()]));
    for left in [9, 8] {
        let replies = decided(&server, &pipeline);
        assert_eq!(
            [0, 1, 2].map(|part: usize| replies[part].asks[0].rules[0].remaining),
            [left; 3]
        );
        assert_eq!([0, 1, 2].map(|part: usize| replies[part].gateways), [1, 0, 0]);
    }
    for (part, agreed) in [(0, 1), (1, 0), (2, 0)] {
        for what in ["seed", "gateways"] {
            assert_eq!(server.keys(&format!("diana:{{2:test:{part}:*}}:{what}")).len(), agreed);
        }
        assert_eq!(server.keys(&format!("diana:{{2:test:{part}:*}}:clock")).len(), 1);
    }
    // Only the first shard compares the secret.
    let other = Pipeline { seed: diana_policy::key::Seed { k0: 7, k1: 7 }, ..pipeline };
    let answers = server.answers(&other, &Login::default());
    assert!(matches!(answers[0], Ok(ScriptAnswer::Seed(_))));
    assert!(answers[1..].iter().all(|it| matches!(it, Ok(ScriptAnswer::Decided(_)))));
}

/// The number of shards is stored at a key that does not depend on it.
#[test]
fn different_shard_numbers_are_reported() {
    let server = Server::start();
    let rule = Rule::new("W", Quota::new(Unit::Day, 10));
    let ask = |gateway, parts, after| {
        let calls = vec![vec![ask_of(0, vec![rule.charge(1, 1, 0)])]];
        let pipeline = over(parts, pipeline_of_calls(Some(NOW + after), calls));
        let Decided { gateways, is_apart, asks, .. } =
            decided(&server, &Pipeline { gateway, ..pipeline }).remove(0);
        (gateways, is_apart, asks[0].rules[0].remaining)
    };
    assert_eq!([ask(1, 8, 0), ask(2, 8, 0)], [(1, false, 9), (2, false, 8)]);
    assert_eq!(ask(3, 2, SECOND), (3, true, 7), "a caller of the first part stays there");
    assert_eq!(ask(1, 8, SECOND), (3, true, 6));
    assert_eq!(ask(2, 8, 6 * SECOND - 1), (3, true, 5));
    assert_eq!(ask(2, 8, 6 * SECOND), (1, false, 4), "the one who said so has gone");
    // Without shards it is stored elsewhere, and gateways cannot detect the difference.
    assert_eq!(ask(4, 1, 6 * SECOND), (1, false, 9));
    server.command(&["SET", &server.keys("*:parts")[0], "x"]);
    assert_eq!(ask(2, 8, 6 * SECOND), (1, false, 3), "what is not ours is replaced");
    server.command(&["FLUSHALL"]);
    assert_eq!(ask(2, 8, 6 * SECOND), (1, false, 9));
}

/// Filters of different sizes need separate keys, since the counts of one would be noise in the
/// other.
#[test]
fn quota_with_another_shard_number_has_another_filter() {
    let server = Server::start();
    let (quota, rule) = (Quota::new(Unit::Day, 2), Rule::new("W", Quota::new(Unit::Day, 2)));
    for (parts, filters) in [(2, 1), (8, 2), (2, 2)] {
        let shape = Shape::new(8_000, 10_000, 2).of_part(parts.into());
        let numbers = Numbers::of_quota(&quota, shape);
        let charge = diana_redis::protocol::Charge { numbers, ..rule.charge(1, 1, 0) };
        let replies = decided(
            &server,
            &over(parts, pipeline_of_calls(Some(NOW), vec![vec![ask_of(0, vec![charge])]])),
        );
        assert_eq!(replies[0].asks[0].wait, Some(0), "{parts}");
        assert_eq!(server.pieces().len(), filters);
    }
}

/// Each shard holds its share of accounts with the same error as the whole.
#[test]
fn quotas_of_many_accounts_fit_into_shards() {
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let (parts, quota) = (Shards::new(8), Quota::new(Unit::Day, 2));
    let shape = Shape::new(8_000, 10_000, 2).of_part(parts.number().into());
    let mut refused = 0;
    for _ in 0..8_000 / 40 {
        let mut calls = vec![Vec::new(); 8];
        for _ in 0..40 {
            let caller = Key { hash: rng.u64(..), second_hash: rng.u64(..) };
            let numbers = Numbers::of_quota(&quota, shape);
            let rule = Rule::new("W", quota);
            let charge = diana_redis::protocol::Charge { caller, numbers, ..rule.charge(1, 1, 0) };
            calls[usize::from(parts.of(caller).number())].push(ask_of(0, vec![charge]));
        }
        for reply in decided(&server, &over(8, pipeline_of_calls(Some(NOW), calls))) {
            refused += reply.asks.iter().filter(|ask| ask.wait.is_none()).count();
        }
    }
    // The last accounts are refused in error with a probability of one in a hundred, the first ones
    // never.
    assert!(refused <= 60, "{refused} of 8,000 were refused at their first request");
    assert!(server.pieces().len() <= 8 * 3, "{:?}", server.pieces().len());
}
