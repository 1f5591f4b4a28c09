//! Switches in Envoy's runtime, which the native module reads since Envoy 1.40.

use crate::harness::{Client, Envoy, Gateway, eventually, exchange, is_native, request};

const RULES: &str = "
namespace: shop
limits:
  - Url: /
    rules: [{name: account, actor: account, unit: day, rpu: 2, algo: W}]
  - Url: /held
    rules: [{name: held, actor: all, unit: minute, rpu: 6, algo: LB, max_delay: 20s, max_queue: 9}]";

/// Sets a key of the runtime.
fn switch(envoy: &Envoy, key: &str, value: &str) {
    let path = format!("/runtime_modify?diana.shop.{key}={value}");
    let response =
        exchange(envoy.admin_port(), &request("POST", &path, &[("content-length", "0")]));
    assert_eq!(response.unwrap().status, 200);
}

#[track_caller]
fn becomes(envoy: &Envoy, status: u16) {
    let account = [("x-account-id", "ann")];
    eventually(&format!("responses with {status}"), || {
        (envoy.get("/", &account).status == status).then_some(())
    });
}

/// The usage stays, held requests continue, and open connections follow: no listener drains.
#[test]
fn runtime_switches_diana_off_and_on() {
    if !is_native() {
        return;
    }
    let envoy = Gateway::with(RULES).workers(2).start();
    let account = [("x-account-id", "ann")];
    assert_eq!(envoy.statuses(3, "/", &account), [200, 200, 503]);
    let mut open = Client::connect(envoy.port).unwrap();
    let mut get = || open.send(&request("GET", "/", &account)).unwrap().status;
    assert_eq!(get(), 503);
    let port = envoy.port;
    assert_eq!(envoy.get("/held", &[("x-account-id", "bob")]).status, 200);
    let held = std::thread::spawn(move || {
        let held = request("GET", "/held", &[("x-account-id", "bob")]);
        exchange(port, &held).unwrap().status
    });
    envoy.wait_for_active(1..=1);
    switch(&envoy, "disabled", "true");
    becomes(&envoy, 200);
    eventually("the open connection", || (get() == 200).then_some(()));
    assert_eq!(held.join().unwrap(), 200);
    assert_eq!(envoy.metric_of("shop", "disabled"), Some(1));
    switch(&envoy, "disabled", "false");
    becomes(&envoy, 503);
    eventually("the open connection", || (get() == 503).then_some(()));
    for (percent, status) in [("0", 200), ("100", 503)] {
        switch(&envoy, "enforce", percent);
        becomes(&envoy, status);
    }
    assert_eq!(envoy.stat("listener_manager.listener_modified"), Some(0));
    let log = envoy.log();
    assert!(log.contains("`diana.shop` in Envoy's runtime: no request is counted"), "{log}");
    envoy.assert_unharmed();
}

/// A new configuration follows from its first request on.
#[test]
fn update_follows_the_switches_at_once() {
    if !is_native() {
        return;
    }
    let envoy = Gateway::with(RULES).drains_for(1).start();
    switch(&envoy, "disabled", "true");
    becomes(&envoy, 200);
    envoy.update(&Gateway::with(&RULES.replace("rpu: 2", "rpu: 0")).drains_for(1));
    assert_eq!(envoy.statuses(3, "/", &[("x-account-id", "eve")]), [200; 3]);
    switch(&envoy, "disabled", "");
    becomes(&envoy, 503);
    envoy.assert_unharmed();
}
