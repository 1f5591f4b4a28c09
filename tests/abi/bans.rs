//! Bans in the shipped module: what they cost, and how workers share them.

use crate::costs::{ALL_HEADERS, CLOCK};
use host::request::Request;
use host::{Host, Proxy};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000;

fn config(scope: &str, rpu: u64, ban: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: device, unit: second, rpu: {rpu}, algo: W, \
         scope: {scope}, ban: {{{ban}}}}}]}}]"
    )
}

fn from(device: impl AsRef<[u8]>) -> Request {
    Request::get("/").header("x-device-id", device)
}

fn start(host: &mut Host, workers: usize, config: &str) -> Proxy {
    host.start_proxy(workers, config).unwrap_or_else(|error| panic!("{error}"))
}

fn is_banned(proxy: &mut Proxy, worker: usize, device: &str) -> bool {
    let answer = proxy.workers[worker].request(&from(device));
    let state = answer.filter_state.get("wasm.diana").cloned().unwrap_or_default();
    state.starts_with(b"banned ")
}

const BAN: &str = "after: 10, within: 1m, for: 1m, max: 1h";

#[test]
fn looking_for_bans_costs_no_host_call() {
    let mut host = Host::new(1);
    let mut proxy = start(&mut host, 1, &config("local", 1, BAN));
    // Somebody is banned, so that there is something to look at.
    (0..20).for_each(|_| _ = proxy.workers[0].request(&from("eve")));
    assert!(is_banned(&mut proxy, 0, "eve"));
    proxy.workers[0].request(&from("ann"));
    proxy.run(SECOND + SECOND / 100);
    proxy.workers[0].request(&from("bob"));
    let answer = proxy.workers[0].request(&from("ann"));
    assert!(answer.is_admitted());
    assert_eq!(answer.calls, BTreeMap::from([CLOCK, ALL_HEADERS]));
    let banned = proxy.workers[0].request(&from("eve"));
    assert_eq!(banned.retry_after(), Some(59));
    assert_eq!(banned.calls("clock_time_get"), 1);
    assert_eq!(banned.calls("proxy_get_shared_data"), 0);
}

#[test]
fn a_gateway_looks_at_one_record_twenty_times_a_second() {
    let mut host = Host::new(2);
    let mut proxy = start(&mut host, 1, &config("gateway", 100_000, BAN));
    let mut looks = 0;
    for _ in 0..2_000 {
        proxy.run(1_000);
        let answer = proxy.workers[0].request(&from("ann"));
        assert!(answer.is_admitted());
        looks += answer.calls("proxy_get_shared_data");
    }
    // Twenty a second, and fifty for leases.
    assert!((130..170).contains(&looks), "{looks}");
}

#[test]
fn a_flood_leaves_bans_and_memory_as_they_are() {
    for scope in ["local", "gateway"] {
        let mut host = Host::new(6);
        let text = format!("{}\nkeys: 100", config(scope, 0, "after: 3, within: 1m, for: 1h"));
        let mut proxy = start(&mut host, 1, &text);
        let bad: Vec<String> = (0..50).map(|n| format!("bad-{n}")).collect();
        for device in &bad {
            (0..3).for_each(|_| _ = proxy.workers[0].request(&from(device)));
            assert!(is_banned(&mut proxy, 0, device), "{scope}: {device}");
        }
        let mut memory = Vec::new();
        for n in 0..20_000 {
            proxy.workers[0].request(&from(format!("new-{}", n / 2)));
            if n % 2_000 == 0 {
                proxy.run(SECOND);
                memory.push((proxy.workers[0].memory(), host.shared_keys()));
            }
        }
        assert_eq!(memory.last(), memory.get(2), "{scope}: {memory:?}");
        for device in &bad {
            assert!(is_banned(&mut proxy, 0, device), "{scope}: {device}");
        }
    }
}
