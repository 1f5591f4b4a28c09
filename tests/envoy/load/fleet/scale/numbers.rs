//! Gateways that take another number of parts under load, one after the other: whoever uses exactly its limit gets all of
//! it, nobody gets more than one further limit, and every gateway says what is wrong.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use super::shards::Shards;
use super::{Fleet, GATEWAYS, TIMEOUT, gateway, reach_redis, start};
use crate::harness::{
    Clock, Complaint, Envoy, Gateway, NO_EXCUSE, OpenLoad, alone, eventually, request,
    try_until_undisturbed,
};
use crate::load::fleet::assert_none_failed;
use crate::load::fleet::modes::delaying;

const LIMIT: usize = 20;

const RULES: &str = "
limits:
  - {Url: /together, rules: [{actor: all, unit: second, rpu: 1000000, scope: global}]}
  - {Url: /window, rules: [{actor: account, unit: day, rpu: 20, algo: W, scope: global}]}
  - {Url: /bucket, rules: [{actor: account, unit: day, rpu: 20, algo: TB, scope: global}]}
";

/// Requests in turn: of so many callers one each, and of so many others six.
const EXACT: usize = 30;
const GREEDY: usize = 5;
const RATE: u32 = 200;

/// A gateway that goes by so many parts, all but the first of which are with the second shard.
fn of(parts: usize, shards: &Shards) -> Gateway {
    let parts = format!("parts: {parts} ");
    gateway(shards, &[("parts: 2 ", &parts), ("{2:shop:1:", "{2:shop:")], RULES)
}

/// How often it was said that not all go by the same number.
fn apart(envoy: &Envoy) -> u64 {
    envoy.stat("wasmcustom.diana.shop.fleet.apart").unwrap_or(0)
}

fn failed(fleet: &Fleet<Shards>) -> Vec<u64> {
    fleet.envoys.iter().map(|envoy| envoy.sum("wasmcustom.diana.shop.fleet.failed")).collect()
}

/// Two gateways take eight parts, one keeps two. Callers, and what each of them got of what it wanted.
#[track_caller]
fn change(fleet: &Fleet<Shards>, trial: usize) -> HashMap<String, (usize, usize)> {
    let greedy = (0..6 * GREEDY).map(|number| format!("greedy-{trial}-{}", number % GREEDY));
    let callers: Vec<String> =
        (0..EXACT).map(|number| format!("exact-{trial}-{number}")).chain(greedy).collect();
    let path = |caller: usize| ["/window", "/bucket"][caller % 2];
    let asks = |(number, caller): (usize, &String)| {
        // Or a connection would stay with the listener that it came to.
        request("GET", path(number), &[("x-account-id", caller), ("connection", "close")])
    };
    let requests: Vec<Vec<u8>> = callers.iter().enumerate().map(asks).collect();
    let load = OpenLoad {
        gateways: &fleet.shared_as([1; GATEWAYS]),
        rate: RATE,
        lasting: Duration::from_secs(1) * u32::try_from(LIMIT * requests.len()).unwrap() / RATE,
        patience: 60,
        requests: &requests,
    };
    let hits = thread::scope(|scope| {
        let hits = scope.spawn(|| load.fire());
        let before: Vec<u64> = fleet.envoys.iter().map(apart).collect();
        for envoy in &fleet.envoys[..2] {
            envoy.update(&of(8, &fleet.redis));
            eventually("all to know of it", || {
                let mut known = fleet.envoys.iter().zip(&before);
                known.all(|(envoy, before)| apart(envoy) > *before).then_some(())
            });
        }
        hits.join().unwrap()
    });
    assert_none_failed(&hits);
    let mut got: HashMap<String, (usize, usize)> = HashMap::new();
    for hit in hits {
        let (all, admitted) =
            got.entry(format!("{} {}", callers[hit.shot.path], path(hit.shot.path))).or_default();
        *all += 1;
        *admitted += usize::from(hit.shot.status == 200);
    }
    got
}

#[test]
fn of_parts_may_change_under_load() {
    alone();
    let shards = Shards::start();
    let first = of(2, &shards);
    let fleet = start(shards, &first);
    let mut trial = 0;
    let got = try_until_undisturbed("another number of parts", || {
        trial += 1;
        fleet.envoys.iter().for_each(|envoy| envoy.update(&of(2, &fleet.redis)));
        reach_redis(&fleet, "/together");
        let (clock, before) = (Clock::new(), failed(&fleet));
        let began = clock.now();
        let got = change(&fleet, trial);
        let alone = failed(&fleet).iter().zip(&before).filter(|(now, was)| now > was).count();
        for (caller, (all, admitted)) in &got {
            // One that is new and has never heard of the others takes itself for the only one.
            let most = (2 + alone) * LIMIT;
            assert!(*admitted <= most, "{caller}: {admitted} of {all}; {NO_EXCUSE}");
            let least = if alone == 0 { LIMIT.min(*all) } else { 0 };
            assert!(*admitted >= least, "{caller}: {admitted} of {all}; {NO_EXCUSE}");
        }
        let what = || format!("{alone} gateways went alone: {}", fleet.envoys[0].log());
        let complaint = || Complaint::new(what(), began..clock.now(), delaying(TIMEOUT));
        (got, (alone > 0).then(complaint).into_iter().collect())
    });
    let further = got.values().filter(|(_, admitted)| *admitted > LIMIT).count();
    assert!(further > 0, "nobody was counted anew: {got:?}");
    println!("{further} of {} callers got more than their limit: {got:?}", got.len());
    for envoy in fleet.envoys.iter() {
        let line = "not all gateways go by `redis.parts`";
        assert!(envoy.log().contains(line), "{}", envoy.log());
    }
    fleet.assert_unharmed();
}
