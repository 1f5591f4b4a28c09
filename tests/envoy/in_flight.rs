//! Requests in flight: the limit refuses, and slots are free again when requests end.
//!
//! A worker that is stopped for a second loses its slots. A slow machine may thus admit more
//! requests than the limit here, but never fewer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Arrival, Client, Envoy, Gateway, Upstream, request};
use crate::metrics::settles;

pub const LIMIT: usize = 20;

pub fn rules(scope: &str) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{name: few, actor: account, in_flight: {LIMIT}, scope: {scope}}}]}}]"
    )
}

/// Begins a response that does not end.
pub fn hang(_: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")?;
    thread::sleep(Duration::from_secs(60));
    Ok(())
}

/// Sends requests until one is refused. Returns the others, which stay open.
pub fn fill(envoy: &Envoy) -> Vec<Client> {
    let mut open = Vec::new();
    let bytes = request("GET", "/", &[("x-account-id", "a")]);
    loop {
        let mut client = Client::connect(envoy.port).unwrap();
        client.write(&bytes).unwrap();
        if client.wait().unwrap() != Some(200) {
            let response = client.read().unwrap();
            assert!(response.refused(), "{response:?}");
            assert_eq!(response.header("retry-after"), Some("1"));
            let policy = response.header("ratelimit-policy").unwrap_or_default();
            assert!(policy.ends_with(";qu=\"concurrent-requests\""), "{policy}");
            return open;
        }
        open.push(client);
    }
}

#[test]
fn slots_are_free_after_all_clients_disconnect() {
    let service = Upstream::answering(hang);
    for (scope, workers) in [("local", 1), ("gateway", 4)] {
        let envoy = Gateway::with(&rules(scope)).workers(workers).before(&service).start_shared();
        for _ in 0..3 {
            let open = fill(&envoy);
            assert!(open.len() >= LIMIT, "{} of {LIMIT}", open.len());
            open.into_iter().for_each(Client::reset);
            envoy.wait_for_active(0..=0);
            // A worker that loses a race for the shared slots frees its own a tick later.
            settles(&envoy, "rule.few.in_flight", 0);
        }
        envoy.assert_unharmed();
    }
}

/// Switches protocols, and echoes all bytes.
fn switch(_: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    to.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
    )?;
    let mut bytes = [0; 64];
    loop {
        match to.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => to.write_all(&bytes[..count])?,
        }
    }
}

/// Opens upgraded connections until one is refused.
fn fill_with_upgrades(envoy: &Envoy) -> Vec<Client> {
    let headers = [("x-account-id", "a"), ("connection", "upgrade"), ("upgrade", "websocket")];
    let bytes = request("GET", "/", &headers);
    let mut open = Vec::new();
    loop {
        let mut client = Client::connect(envoy.port).unwrap();
        client.write(&bytes).unwrap();
        match client.wait().unwrap() {
            Some(101) => open.push(client),
            status => {
                assert_eq!(status, Some(503));
                return open;
            }
        }
    }
}

#[test]
fn upgraded_connections_keep_their_slots() {
    let service = Upstream::answering(switch);
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": service.cluster()}}]}]});
    let upgrades = json!({"upgrade_configs": [{"upgrade_type": "websocket"}]});
    let envoy = Gateway::with(&rules("gateway"))
        .workers(4)
        .before(&service)
        .routed(routes, upgrades)
        .start_shared();
    for _ in 0..2 {
        let open = fill_with_upgrades(&envoy);
        assert!(open.len() >= LIMIT, "{} of {LIMIT}", open.len());
        drop(open);
        envoy.wait_for_active(0..=0);
        settles(&envoy, "rule.few.in_flight", 0);
    }
    envoy.assert_unharmed();
}
