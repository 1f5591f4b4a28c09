//! Many updates of a listener with rules that count in Redis.

use super::mode;
use crate::harness::{Gateway, Redis, eventually};

const UPDATES: u16 = 15;
const RULES: usize = 60;

/// Maximum growth of Envoy's memory over all updates, in KiB.
const GROWTH: u64 = 40 * 1024;

/// A gateway with many rules. The status makes each configuration different.
fn gateway(number: u16, redis: u16) -> Gateway {
    let rule = |n| {
        format!("{{name: r{n}, actor: account, unit: minute, rpu: 100000, algo: W, scope: global}}")
    };
    let rules: Vec<String> = (0..RULES).map(rule).collect();
    let text = format!(
        "namespace: shop\nresponse: {{status: {}}}\nredis: {{cluster: diana_redis, timeout: 100ms}}\n\
         limits: [{{Url: /, rules: [{}]}}]",
        400 + number,
        rules.join(", ")
    );
    let gateway = Gateway::with(&text).without_access_log().precise_timers().redis(redis);
    gateway.drains_for(1).give_memory_back()
}

#[test]
fn updates_leave_neither_memory_nor_gauges_behind() {
    let redis = Redis::start();
    let envoy = gateway(0, redis.port).start();
    let mut memory = Vec::new();
    for number in 1..=UPDATES {
        assert_eq!(envoy.statuses(3, "/", &[("x-account-id", "a")]), [200; 3]);
        envoy.update(&gateway(number, redis.port));
        eventually("the gauge of the old rules", || (mode(&envoy, "fleet") == 0).then_some(()));
        eventually("the end of the old listener", || {
            (envoy.stat("listener_manager.total_listeners_draining") == Some(0)).then_some(())
        });
        memory.push(envoy.memory());
    }
    assert_eq!(envoy.get("/", &[("x-account-id", "a")]).status, 200);
    eventually("one worker to count in Redis", || {
        (mode(&envoy, "fleet") == 1 && mode(&envoy, "gateway") == 0).then_some(())
    });
    println!("KiB after each update: {memory:?}");
    assert!(memory[memory.len() - 1] < memory[3] + GROWTH, "{memory:?}");
    envoy.assert_unharmed();
}
