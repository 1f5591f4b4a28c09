//! Very many requests held at once.

use std::thread;

use super::line;
use crate::harness::{Envoy, Http2, Outcome, alone};

const CONNECTIONS: u64 = 20;

/// Sends requests on 20 connections and returns how many of them got 200, and how many were under
/// way at once.
fn wave(envoy: &Envoy, requests: u64) -> (u64, u64) {
    let each = requests / CONNECTIONS;
    let connection = || {
        let mut client = Http2::connect(envoy.port).unwrap();
        for _ in 0..each {
            client.request("/", &[], None);
        }
        client.flush().unwrap();
        (0..each).filter(|_| client.answer().unwrap().1 == Outcome::Ok).count() as u64
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connection)).collect();
        let mut most = 0;
        while !clients.iter().all(|client| client.is_finished()) {
            most = most.max(envoy.active());
        }
        (clients.into_iter().map(|client| client.join().unwrap()).sum(), most)
    })
}

/// They go on into an answer of Envoy's own, which is what overflowed the stack most easily.
#[test]
fn ten_thousand_at_once() {
    alone();
    let envoy = line("gateway", 2_500).start();
    let (ok, most) = wave(&envoy, 12_000);
    println!("{most} at once");
    assert!(most >= 10_000, "only {most} at once");
    assert_eq!(ok, 12_000);
    envoy.assert_unharmed();
    assert_eq!(envoy.active(), 0);
}

#[test]
fn wave_after_wave_takes_no_more_memory() {
    alone();
    let envoy = line("local", 10_000).give_memory_back().start();
    let memory: Vec<u64> = (0..8)
        .map(|_| {
            assert_eq!(wave(&envoy, 4_000).0, 4_000);
            envoy.memory()
        })
        .collect();
    println!("{memory:?} KiB");
    assert!(memory[7] * 100 <= memory[3] * 103, "{memory:?} KiB");
    envoy.assert_unharmed();
}
