//! Redis and the configuration centre fail, one after the other and both at once: each request is answered.

use std::time::Duration;

use super::{Fleet, assert_none_failed, counts_alone, gateway};
use crate::harness::{Centre, Envoy, Fault, OpenLoad, Says, eventually, request};

/// A rule for all together, and one that says which rules are in force.
fn limits(rpu: u32) -> String {
    format!(
        "response: {{status: 429}}\nlimits:\n\
         \x20 - {{Url: /, rules: [{{name: all, actor: all, unit: second, rpu: {rpu}, algo: W, scope: global}}]}}\n\
         \x20 - {{Url: /closed, rules: [{{name: rules-{rpu}, actor: all, unit: day, rpu: 0, scope: local}}]}}\n"
    )
}

/// Waits until all workers of all gateways go by the rules with this limit.
#[track_caller]
fn settle_on(fleet: &Fleet, rpu: u32) {
    let in_force = |envoy: &Envoy| {
        let policy = envoy.get("/closed", &[]);
        policy
            .header("ratelimit-policy")
            .is_some_and(|policy| policy.contains(&format!("rules-{rpu}\"")))
    };
    eventually(&format!("the rules with {rpu}"), || {
        fleet.envoys.iter().all(|envoy| (0..10).all(|_| in_force(envoy))).then_some(())
    });
}

#[test]
fn requests_need_neither_redis_nor_centre() {
    let remote = "remote: {cluster: centre, path: /rules.yaml, every: 1s, timeout: 300ms}";
    let centre = Centre::start(Says::Status(500));
    let port = centre.port;
    drop(centre);
    let own = limits(30).replace("response: {status: 429}", remote);
    let mut fleet = Fleet::start_with(|redis| {
        gateway(Duration::from_millis(90), &own, redis).cluster("centre", port)
    });
    let load = OpenLoad {
        gateways: &fleet.ports(),
        rate: 150,
        lasting: Duration::from_secs(120),
        connections: 60,
        requests: &[request("GET", "/", &[])],
    };
    let (hits, ()) = load.fire_during(|| {
        fleet.is_together_again();
        settle_on(&fleet, 30);
        fleet.wires.iter_mut().for_each(|wire| wire.set(Fault::Refused));
        eventually("all to count alone", || fleet.envoys.iter().all(counts_alone).then_some(()));
        // The rules of a centre that comes up are those that each counts its part of.
        let centre = Centre::on(port, Says::Text(limits(60)));
        settle_on(&fleet, 60);
        centre.say(Says::Text("limits: [nonsense]".into()));
        fleet.wires.iter_mut().for_each(|wire| wire.set(Fault::None));
        drop(centre);
        fleet.is_together_again();
        settle_on(&fleet, 60);
    });
    assert_none_failed(&hits);
    assert!(hits.iter().any(|hit| hit.status == 200));
    fleet.assert_unharmed();
}
