//! A VM that dies: the requests that it held end by the idle timeout, another VM takes over, and no
//! caller gets a new limit.

use crate::harness::{Client, Gateway, eventually, request};

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
    assert!(envoy.stat("wasm.diana.vm_reload_success") >= Some(1), "{}", envoy.log());
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
