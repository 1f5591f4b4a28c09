//! A VM that dies: whoever is held in it ends with the idle timeout, the next request gets another
//! VM, and nobody gets a fresh limit.

use std::time::{Duration, Instant};

use crate::harness::{Client, Gateway, alone, eventually, request};

const RULES: &str = "
limits:
  - Url: /counted
    rules: [{actor: all, unit: hour, rpu: 5, algo: SW}]
  - Url: /line
    rules: [{actor: all, unit: second, rpu: 2, algo: LB, max_delay: 3s, max_queue: 9}]
";

#[test]
fn a_trap_strands_nobody_for_long_and_gives_nobody_a_fresh_limit() {
    alone();
    let envoy = Gateway::with(RULES).idle_timeout("4s").trap_door().start();
    assert_eq!(envoy.statuses(3, "/counted", &[]), [200; 3]);
    assert_eq!(envoy.get("/line", &[]).status, 200);
    let began = Instant::now();
    let mut held: Vec<_> = (0..3)
        .map(|_| {
            let mut client = Client::connect(envoy.port).unwrap();
            client.write(&request("GET", "/line", &[])).unwrap();
            client
        })
        .collect();
    envoy.wait_for_active(3..);
    envoy.kill_vm("/counted");
    eventually("another VM", || (envoy.get("/", &[]).status == 200).then_some(()));
    assert_eq!(envoy.statuses(4, "/counted", &[]), [200, 200, 503, 503]);
    assert!(envoy.stat("wasm.diana.vm_reload_success") >= Some(1), "{}", envoy.log());
    // Their places pass unused.
    assert_eq!(envoy.get("/line", &[]).status, 200);
    assert!(began.elapsed() > Duration::from_millis(1_900), "{:?}", began.elapsed());
    // On a slow machine some have gone on before the VM died.
    let answers = held.iter_mut().map(|client| client.read().unwrap());
    let stranded = answers.filter(|answer| answer.status >= 500 && !answer.refused()).count();
    assert!(stranded > 0, "nobody was held any more");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(envoy.get("/line", &[]).status, 200);
}
