//! Streams that live long: upgrades, those of a listener that drains, and those that are reset at any instant.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{AGAIN, LIMIT, count, fill, hang, rules};
use crate::harness::{
    Arrival, Client, Envoy, Gateway, Http2, Outcome, Upstream, alone, eventually, request,
};
use crate::metrics::settles;
use crate::settling::left;
use crate::settling::upstream::{self, ACT};

/// Switches protocols, and echoes whatever comes.
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

fn upgrade(envoy: &Envoy) -> (Option<u16>, Client) {
    let mut client = Client::connect(envoy.port).unwrap();
    let headers = [("x-account-id", "ada"), ("connection", "upgrade"), ("upgrade", "websocket")];
    client.write(&request("GET", "/", &headers)).unwrap();
    (client.wait().unwrap(), client)
}

#[test]
fn upgrades_keep_their_places_as_long_as_they_live() {
    let service = Upstream::answering(switch);
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "upstream"}}]}]});
    let upgrades = json!({"upgrade_configs": [{"upgrade_type": "websocket"}]});
    let envoy = Gateway::with(&rules("gateway"))
        .workers(4)
        .cluster("upstream", service.port)
        .routed(routes, upgrades)
        .start();
    let mut open: Vec<Client> = Vec::new();
    for _ in 0..LIMIT {
        let (status, client) = upgrade(&envoy);
        assert_eq!(status, Some(101));
        open.push(client);
    }
    thread::sleep(AGAIN);
    assert_eq!(upgrade(&envoy).0, Some(503));
    for client in &mut open {
        client.write(b"still here").unwrap();
    }
    open.pop().unwrap().reset();
    envoy.wait_for_active(..LIMIT as u64);
    let again = upgrade(&envoy);
    assert_eq!((again.0, upgrade(&envoy).0), (Some(101), Some(503)));
    drop((open, again));
    settles(&envoy, "rule.few.in_flight", 0);
    envoy.assert_unharmed();
}

/// The new listener knows of what is in flight in the old one.
#[test]
fn places_are_kept_over_updates() {
    alone();
    let service = Upstream::answering(hang);
    for scope in ["local", "gateway"] {
        let workers = if scope == "local" { 1 } else { 3 };
        let with = |limit: usize| {
            let rules = rules(scope).replace(&LIMIT.to_string(), &limit.to_string());
            Gateway::with(&rules).workers(workers).drains_for(60).before(&service)
        };
        let envoy = with(LIMIT).start();
        let open = fill(&envoy);
        assert_eq!(open.len(), LIMIT);
        for round in 1..=5 {
            envoy.update(&with(LIMIT + round));
            let mut more = Vec::new();
            // Some come to the old listener for a moment.
            eventually("the new limit", || {
                more.extend(fill(&envoy));
                assert!(more.len() <= round, "{} of {round}", more.len());
                (more.len() == round).then_some(())
            });
            more.into_iter().for_each(Client::reset);
            envoy.wait_for_active(..=LIMIT as u64);
        }
        open.into_iter().for_each(Client::reset);
        envoy.wait_for_active(0..=0);
        assert_eq!(fill(&envoy).len(), LIMIT + 5);
        settles(&envoy, "rule.few.in_flight", 0);
        envoy.assert_unharmed();
    }
}

/// Each is reset at some instant: before its request is read, while it is answered, or afterwards.
#[test]
fn resets_of_http2_leave_no_place_behind() {
    let service = Upstream::answering(count);
    let envoy = Gateway::with(&rules("gateway")).workers(3).before(&service).start();
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let (mut reset, mut ok) = (0, 0);
    for _ in 0..40 {
        let mut client = Http2::connect(envoy.port).unwrap();
        let mut open = Vec::new();
        for _ in 0..30 {
            open.push(client.request("/", &[("x-account-id", "2")], None));
            if rng.bool() {
                client.flush().unwrap();
            }
            if rng.u8(..3) == 0 {
                thread::sleep(Duration::from_millis(rng.u64(..8)));
                client.reset(open.swap_remove(rng.usize(..open.len())));
                reset += 1;
            }
        }
        client.flush().unwrap();
        if rng.bool() {
            // The whole connection goes.
            continue;
        }
        while !open.is_empty() {
            let (id, outcome) = client.answer().unwrap();
            ok += usize::from(outcome == Outcome::Ok);
            open.retain(|stream| *stream != id);
        }
    }
    assert!(reset > 200 && ok > 50, "too tame: {reset}, {ok}");
    envoy.wait_for_active(0..=0);
    settles(&envoy, "rule.few.in_flight", 0);
    envoy.assert_unharmed();
}

/// What was reserved by streams of a VM that died stays so.
#[test]
fn what_a_vm_that_died_had_under_way_stays_as_it_was_reserved() {
    alone();
    const MOST: u64 = 1000;
    let rules = format!(
        "accepted: {{headers: true}}
limits:
  - Url: /
    rules:
      - {{name: r, actor: account, unit: day, rpu: {MOST}, algo: W,
         cost: {{response: {{header: x-tokens-used}}, reserve: 10, max: 30}}}}"
    );
    let service = upstream::start();
    let envoy = Gateway::with(&rules).trap_door().before(&service).start();
    let streams = (0..7).map(|_| {
        let mut client = Client::connect(envoy.port).unwrap();
        let headers = [("x-account-id", "ada"), (ACT, "hang")];
        client.write(&request("GET", "/", &headers)).unwrap();
        assert_eq!(client.wait().unwrap(), Some(200));
        client
    });
    let open: Vec<Client> = streams.collect();
    envoy.kill_vm("/");
    drop(open);
    envoy.wait_for_active(0..=0);
    let probe = [("x-account-id", "ada"), (ACT, "tokens 0")];
    eventually("another VM", || (envoy.get("/", &probe).status == 200).then_some(()));
    eventually("the last probe to be settled", || {
        (left(&envoy, "/", &probe) == MOST - 8 * 10).then_some(())
    });
}
