//! Clients that leave while they are held.

use super::{assert_all_ok, line, numbers, send};
use crate::harness::{Client, Outcome, Upstream, alone, request};

const RPU: u32 = 25;
const INTERVAL: u64 = 1_000_000 / RPU as u64;

#[test]
fn streams_that_are_reset_let_those_behind_move_up() {
    alone();
    let upstream = Upstream::start();
    let envoy = line("local", RPU).before(&upstream).start();
    let (mut client, ids) = send(&envoy, 60);
    envoy.wait_for_active(50..);
    let (left, stayed): (Vec<_>, Vec<_>) = ids.iter().partition(|id| *id % 3 == 0);
    left.iter().for_each(|id| client.reset(*id));
    client.flush().unwrap();
    for _ in &stayed {
        let (id, outcome) = client.answer().unwrap();
        assert!(stayed.contains(&id) && outcome == Outcome::Ok, "{id}: {outcome:?}");
    }
    let arrivals = upstream.arrivals();
    let came = numbers(arrivals.iter().map(|arrival| &arrival.path));
    // A worker that was kept from working lets go on at once whose turns were past, and each has a connection of its own.
    let apart = |place: usize| arrivals[place].at.saturating_sub(arrivals[place - 1].at);
    let in_turn = |place: usize| came[place - 1] < came[place] || apart(place) < INTERVAL / 8;
    assert!((1..came.len()).all(in_turn), "not in the order in which they came: {came:?}");
    // Some may have gone on before their client left.
    let slots = (came.len() - 1) as u64;
    let span = arrivals[came.len() - 1].at - arrivals[0].at;
    assert!(span < (slots + 3) * INTERVAL, "{span} µs for {slots} slots");
    assert!(came.len() < 55, "{} came although their clients had left", came.len() - stayed.len());
    envoy.assert_unharmed();
}

#[test]
fn connections_that_are_closed_or_reset_do_no_harm() {
    alone();
    for scope in ["local", "gateway"] {
        let upstream = Upstream::start();
        let envoy = line(scope, RPU).before(&upstream).workers(2).start();
        let mut clients: Vec<_> = (0..60)
            .map(|number| {
                let mut client = Client::connect(envoy.port).unwrap();
                client.write(&request("GET", &format!("/{number}"), &[])).unwrap();
                Some(client)
            })
            .collect();
        envoy.wait_for_active(50..);
        for (number, client) in clients.iter_mut().enumerate() {
            match number % 3 {
                0 => drop(client.take()),
                1 => client.take().into_iter().for_each(Client::reset),
                _ => {}
            }
        }
        // Whoever comes now stands behind those who are left.
        let (mut last, ids) = send(&envoy, 5);
        for mut client in clients.into_iter().flatten() {
            assert_eq!(client.read().unwrap().status, 200, "{scope}");
        }
        assert_all_ok(&mut last, &ids);
        let came = numbers(upstream.arrivals().iter().map(|arrival| &arrival.path));
        let five = &came[came.len() - 5..];
        assert!(scope == "local" || five == [0, 1, 2, 3, 4], "{scope}: {came:?}");
        // A late slot belongs to nobody: the next one goes on at once.
        assert_eq!(envoy.get("/99", &[]).status, 200);
        envoy.wait_for_active(..=0);
        envoy.assert_unharmed();
    }
}
