//! The filter's metrics, and their labels in Prometheus by the regular expressions of envoy.yaml.

use crate::harness::{Envoy, Fault, Gateway, Redis, Wire, eventually, free_port, is_native};

/// Waits until a metric has this value. The filter reports its counts on a timer.
#[track_caller]
pub fn settles(envoy: &Envoy, metric: &str, value: u64) {
    eventually(&format!("{metric} to be {value}"), || {
        (envoy.metric(metric).unwrap_or(0) == value).then_some(())
    });
}

const RULES: &str = "
limits:
  - Url: /
    rules: [{name: caller, actor: account, unit: hour, rpu: 2, scope: local}]
  - Url: /watched
    rules: [{name: watch-only, actor: all, unit: hour, rpu: 4, scope: local, shadow: true}]
";

#[test]
fn decisions_are_counted_by_rule() {
    let envoy = Gateway::with(RULES).start_shared();
    for caller in ["ada", "bob", "cyd"] {
        assert_eq!(envoy.statuses(3, "/", &[("x-account-id", caller)]), [200, 200, 503]);
    }
    assert_eq!(envoy.statuses(6, "/watched", &[]), [200; 6]);
    settles(&envoy, "rule.caller.allowed", 6);
    settles(&envoy, "rule.caller.refused", 3);
    settles(&envoy, "rule.caller.keys", 3);
    settles(&envoy, "rule.caller.overflow", 0);
    settles(&envoy, "rule.watch-only.shadow_refused", 2);
    settles(&envoy, "rule.watch-only.refused", 0);
    let accepted = envoy.metric("config.accepted");
    assert!(accepted >= Some(1), "config.accepted is {accepted:?}");
}

/// Envoy drops the metrics that only an ended listener has changed.
#[test]
fn metrics_outlive_the_listener_that_counted() {
    let gateway = |keys: u32| Gateway::with(&format!("keys: {keys}\n{RULES}")).drains_for(1);
    let envoy = gateway(1000).start();
    assert_eq!(envoy.statuses(3, "/", &[("x-account-id", "ada")]), [200, 200, 503]);
    settles(&envoy, "rule.caller.allowed", 2);
    settles(&envoy, "rule.caller.keys", 1);
    envoy.update(&gateway(2000));
    let stat = |name: &str| envoy.stat(&format!("listener_manager.{name}"));
    eventually("the new listener", || (stat("listener_create_success") == Some(2)).then_some(()));
    eventually("the end of the old one", || {
        (stat("total_listeners_draining") == Some(0)).then_some(())
    });
    settles(&envoy, "rule.caller.keys", 1);
    assert_eq!(envoy.statuses(1, "/", &[("x-account-id", "bob")]), [200]);
    settles(&envoy, "rule.caller.allowed", 3);
    settles(&envoy, "rule.caller.refused", 1);
    settles(&envoy, "rule.caller.keys", 2);
}

/// Checks that a gateway counts its failed calls by this reason alone.
#[track_caller]
fn fails_by(gateway: &Gateway, reason: &str) {
    let envoy = gateway.start();
    assert_eq!(envoy.statuses(3, "/counted", &[("x-account-id", "ada")]), [200; 3]);
    let count = |name: &str| envoy.metric(&format!("fleet.{name}")).unwrap_or(0);
    // The call of the first request, and one that looks whether Redis is back.
    eventually("all counts", || {
        // The oldest Envoy takes metrics from the native module only with a request.
        assert_eq!(envoy.get("/free", &[]).status, 200);
        let has_degraded = envoy.metric("rule.one.degraded") == Some(3);
        (has_degraded && count(&format!("failed.{reason}")) >= 2).then_some(())
    });
    assert!(count("trips") >= 2);
    for other in ["timeout", "unreachable", "reset", "garbage", "lost", "other"] {
        assert!(other == reason || count(&format!("failed.{other}")) == 0, "{other}");
    }
}

/// The counters have the same names in both modules.
#[test]
fn failed_calls_to_redis_are_counted_by_their_reason() {
    let rules = "
redis: {cluster: diana_redis, timeout: 1s}
limits: [{Url: /counted, rules: [{name: one, actor: account, unit: day, rpu: 9, algo: W, scope: global}]}]
";
    let redis = Redis::start();
    let mut wire = Wire::to(redis.port);
    wire.set(Fault::Short(0));
    let by_pipe = rules.replace("cluster: diana_redis", "pipe: target/redis.sock");
    for (port, reason) in [(free_port(), "unreachable"), (wire.port, "reset")] {
        fails_by(&Gateway::with(rules).redis(port), reason);
        if is_native() {
            fails_by(&Gateway::with(&by_pipe).redis_by_pipe(port), reason);
        }
    }
}

#[test]
fn prometheus_gets_labels() {
    let envoy = Gateway::with(&format!("{RULES}\nnamespace: shop-eu")).start_shared();
    envoy.statuses(3, "/", &[("x-account-id", "ada")]);
    let wanted = [
        r#"diana_rule_allowed{namespace="shop-eu",rule="caller"} 2"#,
        r#"diana_rule_refused{namespace="shop-eu",rule="caller"} 1"#,
        r#"diana_rule_keys{namespace="shop-eu",rule="caller"} 1"#,
        r#"diana_config_accepted{namespace="shop-eu"}"#,
    ];
    let mut text = String::new();
    for line in wanted {
        eventually(line, || {
            text = envoy.admin("/stats/prometheus").unwrap().body;
            let mut names = text.lines().map(|found| found.strip_prefix("envoy_").unwrap_or(found));
            names.any(|found| found.starts_with(line)).then_some(())
        });
    }
    let stray: Vec<_> =
        text.lines().filter(|line| line.contains("diana_") && line.contains("caller{")).collect();
    assert!(stray.is_empty(), "rule names are left in metric names: {stray:?}");
}
