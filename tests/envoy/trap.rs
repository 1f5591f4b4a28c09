//! A VM that dies: the requests that it held end by the idle timeout, another VM takes over, and no
//! caller gets a new limit.

use serde_json::json;

use crate::harness::{Client, Gateway, Upstream, eventually, request, shipped_text};

/// Slots that are fifteen seconds apart.
const SLOW: &str = "limits: [{Url: /, rules: [{actor: all, unit: minute, rpu: 4, algo: LB, max_delay: 20s, max_queue: 9}]}]";

const RULES: &str = "
limits:
  - Url: /counted
    rules: [{actor: all, unit: hour, rpu: 5, algo: SW}]
  - Url: /line
    rules: [{actor: all, unit: second, rpu: 2, algo: LB, max_delay: 3s, max_queue: 9}]
";

#[test]
fn usage_survives_a_trap_of_the_vm() {
    let envoy = Gateway::with(RULES).idle_timeout("4s").crashing_module().start();
    assert_eq!(envoy.statuses(3, "/counted", &[]), [200; 3]);
    assert_eq!(envoy.get("/line", &[]).status, 200);
    let mut held: Vec<Client> = (0..3)
        .map(|_| {
            let mut client = Client::connect(envoy.port).unwrap();
            client.write(&request("GET", "/line", &[])).unwrap();
            client
        })
        .collect();
    envoy.kill_vm("/counted");
    eventually("another VM", || (envoy.get("/", &[]).status == 200).then_some(()));
    assert_eq!(envoy.statuses(4, "/counted", &[]), [200, 200, 503, 503]);
    let alerts = shipped_text("watch/rules.yaml");
    let (_, counted) = alerts.split_once("envoy_wasm_.+_").unwrap();
    let counted = format!("wasm.diana.{}", counted.split('"').next().unwrap());
    assert!(envoy.stat(&counted) >= Some(1), "the alert reads {counted}\n{}", envoy.log());
    eventually("the reason in the access log", || {
        envoy.access_log().contains(&"503 wasm_fail_stream -".to_owned()).then_some(())
    });
    // A slow machine may resume some of them before the VM dies.
    for client in &mut held {
        let answer = client.read().unwrap();
        assert!(answer.status == 200 || answer.status >= 500 && !answer.refused(), "{answer:?}");
    }
    assert_eq!(envoy.get("/line", &[]).status, 200);
}

/// Without `stream_idle_timeout`, as on Istio, each of these settings bounds how long a request
/// lasts that a dead VM held.
#[test]
fn timeouts_end_requests_that_a_dead_vm_held() {
    let stream = json!({"max_stream_duration": "3s"});
    for (setting, on_route) in [
        (json!({"request_timeout": "3s"}), json!({})),
        (json!({"common_http_protocol_options": stream}), json!({})),
        (json!({}), json!({"max_stream_duration": stream})),
        (json!({}), json!({"idle_timeout": "3s"})),
    ] {
        let case = format!("{setting} {on_route}");
        let (mut settings, mut route) = (setting, on_route);
        settings["stream_idle_timeout"] = "0s".into();
        let upstream = Upstream::start();
        route["cluster"] = upstream.cluster().into();
        let all = json!([{"match": {"prefix": "/"}, "route": route}]);
        let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": all}]});
        let gateway = Gateway::with(SLOW).before(&upstream).routed(routes, settings);
        let envoy = gateway.crashing_module().start();
        envoy.get("/", &[]);
        let mut held = Client::connect(envoy.port).unwrap();
        held.write(&request("GET", "/", &[])).unwrap();
        envoy.wait_for_active(1..);
        envoy.kill_vm("/");
        let answer = held.read().unwrap();
        assert!(answer.status >= 500 && !answer.refused(), "{case}: {answer:?}");
        assert_eq!(upstream.arrivals().len(), 1, "{case}");
    }
}
