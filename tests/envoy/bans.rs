//! Bans on real Envoys: who is refused too often is refused outright, by all workers.

use std::fs;
use std::path::Path;

use crate::harness::{Client, Envoy, Gateway, Redis, Response, eventually, request, start_all};
use crate::metrics::settles;

/// A rule that refuses everything and never says when to come back, as a ban does.
pub fn trap(scope: &str, ban: &str) -> String {
    format!(
        "limits: [{{Url: /trap, rules: [{{name: trap, actor: account, unit: hour, rpu: 0, \
         scope: {scope}, ban: {{{ban}}}}}]}}]"
    )
}

/// The answer to a request on a connection of its own, which may go to any worker.
pub fn ask(envoy: &Envoy, account: &str) -> Response {
    let answer = envoy.get("/trap", &[("x-account-id", account)]);
    assert_eq!(answer.status, 503);
    answer
}

/// What is left of a ban, in seconds.
pub fn left(answer: &Response) -> Option<u64> {
    answer.header("retry-after")?.parse().ok()
}

/// Waits until everybody who could answer says so.
fn all_ban(envoy: &Envoy, account: &str) {
    let answers = || (0..40).all(|_| left(&ask(envoy, account)).is_some());
    eventually("all workers to ban", || answers().then_some(()));
}

#[test]
fn refusals_over_many_connections_add_up_to_one_ban_that_the_rules_lift() {
    let ban = "after: 20, within: 1m, for: 10m";
    let envoy = Gateway::with(&trap("gateway", ban)).workers(2).start();
    for number in 0..20 {
        assert_eq!(left(&ask(&envoy, "eve")), None, "refusal {number} was one too many");
    }
    all_ban(&envoy, "eve");
    let told = left(&ask(&envoy, "eve")).unwrap();
    assert!((61..=600).contains(&told), "{told}");
    assert_eq!(left(&ask(&envoy, "ann")), None);
    assert_eq!(envoy.get("/elsewhere", &[("x-account-id", "eve")]).status, 200);
    settles(&envoy, "rule.trap.bans", 1);
    let lines = || envoy.access_log().into_iter().find(|line| line.contains("banned"));
    let line = eventually("a banned request in the access log", lines);
    let state = "503 diana_refused banned rule=trap scope=gateway mode=enforced wait=";
    assert!(line.starts_with(state), "{line}");
    eventually("40 banned requests to be counted", || {
        envoy.metric("rule.trap.banned").filter(|banned| *banned >= 40)
    });
    let refused = envoy.metric("rule.trap.refused");
    assert!(refused >= Some(20), "{refused:?} refused");
    // What else the rule says leaves the ban as it is; another ban lifts it.
    let more = trap("gateway", ban).replace("hour", "hour, expose: false");
    envoy.update(&Gateway::with(&more).workers(2));
    eventually("the new rules", || {
        ask(&envoy, "bob").header("ratelimit-policy").is_none().then_some(())
    });
    assert!(left(&ask(&envoy, "eve")).is_some(), "it was lifted by something else");
    envoy.update(&Gateway::with(&trap("gateway", "after: 20, within: 1m, for: 11m")).workers(2));
    let lifted = || left(&ask(&envoy, "eve")).is_none().then_some(());
    eventually("the ban to be lifted", lifted);
    envoy.assert_unharmed();
}

#[test]
fn the_example_blocks_an_address_that_insists() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy/examples/block-address.yaml");
    let rules = fs::read_to_string(path).unwrap();
    let envoy = Gateway::with(&rules).workers(2).start_shared();
    let mut client = Client::connect(envoy.port).unwrap();
    let bytes = request("GET", "/", &[]);
    let mut seen = [0; 2];
    let told = eventually("the address to be blocked", || {
        let answer = client.send(&bytes).unwrap();
        seen[usize::from(answer.status == 503)] += 1;
        left(&answer).filter(|left| *left > 10)
    });
    let [passed, refused] = seen;
    assert!(passed >= 20 && refused > 100 && told <= 300, "{passed}, {refused}, {told}");
    let everywhere = || (0..20).all(|_| left(&envoy.get("/", &[])) > Some(10));
    eventually("it to be blocked by all workers", || everywhere().then_some(()));
    envoy.assert_unharmed();
}

#[test]
fn gateways_of_a_fleet_ban_together() {
    let redis = Redis::start();
    let rules = format!(
        "{}\nnamespace: shop\nredis: {{cluster: diana_redis, timeout: 1s}}",
        trap("global", "after: 10, within: 1m, for: 10m").replace("rpu: 0", "rpu: 1, algo: W")
    );
    let gateway = Gateway::with(&rules).workers(2).redis(redis.port);
    let envoys = start_all(&[gateway.clone(), gateway]);
    let ask = |envoy: &Envoy| envoy.get("/trap", &[("x-account-id", "eve")]);
    let state =
        |envoy: &Envoy, what: &str| envoy.access_log().iter().any(|line| line.contains(what));
    eventually("the first gateway to ban", || {
        assert!(ask(&envoys[0]).status < 504);
        state(&envoys[0], " banned rule=trap scope=global").then_some(())
    });
    // The other one learns of it with the first request that it asks Redis about.
    eventually("the other gateway to ban", || {
        ask(&envoys[1]);
        state(&envoys[1], " banned rule=trap scope=global").then_some(())
    });
    let early = envoys[1].access_log().iter().filter(|line| line.contains(" refused ")).count();
    assert!(early < 10, "it has refused {early} times by itself");
    envoys.iter().for_each(Envoy::assert_unharmed);
}
