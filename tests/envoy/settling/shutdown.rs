//! Streams that end with their listener or their gateway.

use super::left;
use super::upstream::{self, ACT};
use crate::harness::{Client, Envoy, Gateway, Redis, Upstream, eventually, request};
use crate::metrics::settles;

const LIMIT: u64 = 10_000;
const RESERVE: u64 = 100;
const MOST: u64 = 300;
/// The usage in the responses that have begun.
const USED: u64 = 40;

/// Callers with a response that has begun, and callers without a response.
const BEGUN: [&str; 3] = ["0", "1", "2"];
const WAITING: [&str; 3] = ["3", "4", "5"];

/// Rules that differ by number, except the rule of the tokens.
fn rules(scope: &str, number: usize) -> String {
    format!(
        "accepted: {{headers: true}}
limits:
  - Url: /
    rules:
      - {{name: tokens, actor: account, unit: day, rpu: {LIMIT}, algo: W, scope: {scope},
         cost: {{response: {{header: x-tokens-used}}, reserve: {RESERVE}, max: {MOST}}}}}
      - {{name: places, actor: all, in_flight: 7, scope: {scope}, expose: false}}
  - {{Url: /{number}, rules: [{{actor: all, unit: day, rpu: 7}}]}}"
    )
}

/// Opens all streams.
fn open(envoy: &Envoy, service: &Upstream) -> Vec<Client> {
    let open = |account: &str, act: &str| {
        let mut client = Client::connect(envoy.port).unwrap();
        client.write(&request("GET", "/", &[("x-account-id", account), (ACT, act)])).unwrap();
        client
    };
    let begun = BEGUN.map(|account| {
        let mut client = open(account, &format!("tokens {USED} hang"));
        assert_eq!(client.wait().unwrap(), Some(200));
        client
    });
    let before = service.arrivals().len();
    let waiting = WAITING.map(|account| open(account, "tokens 40 sleep 20000"));
    eventually("all to come through", || {
        (service.arrivals().len() == before + WAITING.len()).then_some(())
    });
    begun.into_iter().chain(waiting).collect()
}

fn used(envoy: &Envoy, account: &str) -> u64 {
    LIMIT - RESERVE - left(envoy, "/", &[("x-account-id", account), (ACT, "tokens 0")])
}

#[track_caller]
fn assert_used(envoy: &Envoy, account: &str, expected: u64) {
    let mut last = 0;
    eventually(&format!("{expected} used by {account}"), || {
        last = used(envoy, account);
        (last == expected).then_some(())
    });
}

/// The old listener ends with its streams, and their costs count in the new one.
#[test]
fn drain_settles_the_streams_it_ends() {
    for (scope, workers) in [("local", 1), ("gateway", 3)] {
        let service = upstream::start();
        let with = |number| {
            Gateway::with(&rules(scope, number)).workers(workers).drains_for(1).before(&service)
        };
        let envoy = with(0).start();
        let streams = open(&envoy, &service);
        envoy.update(&with(1));
        eventually("the old listener to be gone", || {
            (envoy.stat("listener_manager.total_listeners_draining") == Some(0)).then_some(())
        });
        for account in BEGUN {
            assert_used(&envoy, account, USED);
        }
        // Envoy ended these, and not their clients.
        for account in WAITING {
            assert_used(&envoy, account, 0);
        }
        settles(&envoy, "rule.places.in_flight", 0);
        envoy.assert_unharmed();
        drop(streams);
    }
}

/// Open requests of a gateway that ends gracefully stay charged in Redis, as reserved or as used.
#[test]
fn ended_gateway_leaves_its_charges_in_redis() {
    let service = upstream::start();
    let redis = Redis::start();
    let limits = rules("global", 0).replacen(
        "limits:",
        "redis: {cluster: diana_redis, timeout: 900ms}\nlimits:",
        1,
    );
    let start = || {
        let envoy = Gateway::with(&limits).before(&service).redis(redis.port).start();
        eventually("it to count with the fleet", || {
            envoy.get("/", &[("x-account-id", "nobody"), (ACT, "tokens 0")]);
            (envoy.metric("mode.fleet") == Some(1)).then_some(())
        });
        envoy
    };
    let (one, other) = (start(), start());
    let streams = open(&one, &service);
    let (status, log) = one.quit();
    assert!(status.success(), "{status}: {log}");
    for account in BEGUN {
        let charged = used(&other, account);
        assert!(charged == RESERVE || charged == USED, "{charged}");
    }
    for account in WAITING {
        let charged = used(&other, account);
        assert!(charged == RESERVE || charged == 0, "{charged}");
    }
    settles(&other, "rule.places.in_flight", 0);
    other.assert_unharmed();
    drop(streams);
}
