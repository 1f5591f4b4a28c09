//! What is no Redis that could be relied upon, or says so, behind Envoy's proxy: named in log and metric, no request fails,
//! and nobody gets more than is promised.

use std::thread;
use std::time::Duration;

use super::nodes::node;
use super::shards::Shards;
use super::{Fleet, GATEWAYS, Way, gateway, start};
use crate::harness::{
    Envoy, Gateway, Imposter, NO_EXCUSE, OpenLoad, Redis, alone, eventually, free_port, request,
    start_all,
};
use crate::load::fleet::faults::print_head;
use crate::load::fleet::faults::trial::{Fault, RECOVERY, RULES, try_out};
use crate::load::fleet::{admitted, assert_none_failed, counts_alone, mode};

/// One Redis, and somebody in front of it who may say something else.
struct Impostors {
    _redis: Redis,
    imposter: Imposter,
}

impl Way for Impostors {
    const FILE: &'static str = "shards";

    fn ports(&self) -> Vec<u16> {
        vec![self.imposter.port; 2]
    }
}

/// What the parts say from the second on, by what name that counts, and what the log has of it.
const SAYINGS: [(&str, &str, &str); 6] = [
    ("220 smtp.example.com\r\n", "garbage", "the answer does not come from Redis"),
    ("-CLUSTERDOWN The cluster is down\r\n", "clusterdown", "CLUSTERDOWN"),
    ("-LOADING Redis is loading the dataset in memory\r\n", "loading", "LOADING"),
    ("-TRYAGAIN Multiple keys request during rehashing of slot\r\n", "tryagain", "TRYAGAIN"),
    ("-READONLY You can't write against a read only replica.\r\n", "readonly", "READONLY"),
    // About another part than was asked.
    ("*3\r\n:-9\r\n:0\r\n:1700000000000000\r\n", "garbage", "the answer does not come from Redis"),
];

/// How many requests each of so many callers sends, to all gateways in turn, and how many of them are promised.
const CALLERS: usize = 61;
const SENT: usize = 30;
const LIMIT: usize = 12;

const MANY: &str = "
limits:
  - {Url: /together, rules: [{actor: all, unit: second, rpu: 1000000, scope: global}]}
  - {Url: /day, rules: [{actor: account, unit: day, rpu: 12, algo: W, scope: global}]}
";

/// Has the parts go bad one after the other until all gateways have named what is said, and at last all of them.
#[track_caller]
fn go_bad(fleet: &Fleet<Impostors>) {
    let of = |part: usize| format!("{{2:shop:{part}:");
    for (part, (saying, failure, told)) in (1..).zip(SAYINGS) {
        // One that is away already is not told of again.
        fleet.is_together_again();
        fleet.redis.imposter.say(of(part), saying);
        for envoy in fleet.envoys.iter() {
            let name = format!("part {part} of {} of Redis", SAYINGS.len() + 1);
            eventually(told, || {
                let log = envoy.log();
                let named = |line: &str| line.contains(&name) && line.contains(told);
                log.lines().any(named).then_some(())
            });
            let failed = format!("wasmcustom.diana.shop.fleet.failed.{failure}");
            eventually(failure, || (envoy.sum(&failed) > 0).then_some(()));
        }
        fleet.redis.imposter.behave();
    }
    for (part, (saying, ..)) in (1..).zip(SAYINGS) {
        fleet.redis.imposter.say(of(part), saying);
    }
}

#[test]
fn sayings_of_parts() {
    alone();
    let redis = node(vec![]);
    let way = Impostors { imposter: Imposter::before(redis.port), _redis: redis };
    let all = ("{2:shop:1:", "{2:shop:");
    let gateway = gateway(&way, &[("parts: 2 ", "parts: 7 "), all], MANY);
    let fleet = start(way, &gateway);
    fleet.comes_together("/together");
    // Each second one comes from somebody new, about whom Redis has to be asked.
    let caller = |number: usize| match number % 2 {
        0 => format!("caller-{}", number / 2 % CALLERS),
        _ => format!("newcomer-{number}"),
    };
    let send = |number| request("GET", "/day", &[("x-account-id", &caller(number))]);
    let requests: Vec<Vec<u8>> = (0..2 * CALLERS * SENT).map(send).collect();
    let rate = 300;
    let load = OpenLoad {
        gateways: &fleet.shared_as([1; GATEWAYS]),
        rate,
        lasting: Duration::from_secs(1) * requests.len() as u32 / rate,
        // No multiple of the gateways, see `comes_together`.
        patience: 61,
        requests: &requests,
    };
    let hits = thread::scope(|scope| {
        let hits = scope.spawn(|| load.fire());
        go_bad(&fleet);
        hits.join().unwrap()
    });
    assert_none_failed(&hits);
    let of = |number| {
        let own = hits.iter().filter(|hit| caller(hit.shot.path) == format!("caller-{number}"));
        admitted(own).len()
    };
    let counts: Vec<usize> = (0..CALLERS).map(of).collect();
    // Where its part is away each gateway lets its share of the limit through, less what it did before.
    let promised = LIMIT..=2 * LIMIT;
    assert!(counts.iter().all(|count| promised.contains(count)), "{counts:?}; {NO_EXCUSE}");
    println!("of {LIMIT} each: {counts:?}");
    fleet.redis.imposter.behave();
    fleet.comes_together("/together");
    fleet.assert_unharmed();
}

/// Redis Clusters in which no node has a slot, or which are none.
struct Nobody(u16);

impl Way for Nobody {
    const FILE: &'static str = "cluster";

    fn ports(&self) -> Vec<u16> {
        vec![self.0; 3]
    }
}

const DAILY: &str = "
limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 10, algo: W, scope: global}]}]
";

/// Each gateway says by this name, and in the log, why it counts alone; it lets its own part through, all of the limit
/// since it has never heard of others, and fails nobody.
#[track_caller]
fn goes_alone(envoy: &Envoy, failure: &str, told: &str) {
    for caller in 0..10 {
        let account = format!("account-{caller}");
        let statuses = envoy.statuses(15, "/", &[("x-account-id", &account)]);
        assert_eq!(statuses, [[200; 10].as_slice(), &[429; 5]].concat(), "{told}");
    }
    eventually(told, || counts_alone(envoy).then_some(()));
    let said = eventually("the log to say so", || {
        let log = envoy.log();
        log.lines().find(|line| line.contains("cannot be relied upon")).map(str::to_owned)
    });
    assert!(said.contains(told), "{told}: {said}");
    let failed = |name: &str| envoy.sum(&format!("wasmcustom.diana.shop.fleet.failed.{name}"));
    assert!(failed(failure) > 0, "{told}: {} other failures", failed(""));
    assert_eq!(mode(envoy, "fleet"), 0);
    envoy.assert_unharmed();
}

/// None of these has ever been there.
#[test]
fn ways_that_lead_nowhere() {
    let empty = Redis::with(
        vec![
            "cluster-enabled yes".into(),
            format!("cluster-port {}", free_port()),
            format!("cluster-config-file {}.conf", free_port()),
        ],
        vec![],
    );
    let unknown = Imposter::before(free_port());
    let of = |port: u16, replaced: &[(&str, &str)]| gateway(&Nobody(port), replaced, DAILY);
    let missing = (
        "address: { pipe: { path: target/redis.sock } }",
        "address: { pipe: { path: target/none.sock } }",
    );
    let gateways: [Gateway; 4] = [
        of(empty.port, &[]),
        of(unknown.port, &[]),
        of(free_port(), &[]),
        of(empty.port, &[missing]),
    ];
    let envoys = start_all(&gateways);
    let told = [
        ("nohost", "no upstream host"),
        ("nohost", "no upstream host"),
        ("nohost", "no upstream host"),
        ("unreachable", "it cannot be reached"),
    ];
    for (envoy, (failure, told)) in envoys.iter().zip(told) {
        goes_alone(envoy, failure, told);
    }
}

/// Each has a breaker of its own, and probes that travel alone.
#[test]
fn as_many_parts_as_may_be_on_one_node() {
    alone();
    let shards = Shards::start();
    let all = ("{2:shop:0:", "{2:shop:");
    let gateway = gateway(&shards, &[("parts: 2 ", "parts: 1024 "), all], RULES);
    let mut fleet = start(shards, &gateway);
    fleet.comes_together("/hot");
    fleet.redis.nodes.find_caller();
    print_head();
    let killed = Fault::<Shards> {
        name: "1,024 parts: the node killed, and started empty",
        cut_off: GATEWAYS,
        kept_from: GATEWAYS,
        emptied: 1,
        recovery: RECOVERY,
        begin: &|fleet| fleet.redis.strike(Redis::kill),
        end: &|fleet| fleet.redis.nodes.revive(),
        failure: None,
    };
    try_out(&mut fleet, &killed);
    let lines = |envoy: &Envoy| envoy.log().matches("cannot be relied upon").count();
    println!("lines of the log: {:?}", fleet.envoys.iter().map(lines).collect::<Vec<_>>());
    fleet.assert_unharmed();
}
