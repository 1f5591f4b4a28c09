//! Held requests with a body.

use std::fmt::Write;
use std::thread;

use super::line;
use crate::harness::{Client, Clock, Envoy, Http2, Outcome, Upstream, request};

const SIZE: usize = 10 << 20;

fn body() -> Vec<u8> {
    (0..SIZE as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn with_length(path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = request("POST", path, &[("content-length", &body.len().to_string())]);
    bytes.extend(body);
    bytes
}

fn in_chunks(path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = request("POST", path, &[("transfer-encoding", "chunked")]);
    for chunk in body.chunks(50_000) {
        let mut size = String::new();
        write!(size, "{:x}\r\n", chunk.len()).unwrap();
        bytes.extend(size.bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Takes the free slot, so that the next request is held.
#[track_caller]
fn take_a_slot(envoy: &Envoy) {
    assert_eq!(envoy.get("/first", &[]).status, 200);
}

#[test]
fn large_bodies_arrive_whole() {
    let upstream = Upstream::start();
    let envoy = line("gateway", 2).before(&upstream).workers(2).start_shared();
    let start = Clock::new().now();
    take_a_slot(&envoy);
    let body = body();
    thread::scope(|scope| {
        for bytes in [with_length("/length", &body), in_chunks("/chunks", &body)] {
            let mut client = Client::connect(envoy.port).unwrap();
            scope.spawn(move || assert_eq!(client.send(&bytes).unwrap().status, 200));
        }
    });
    let arrivals = upstream.arrivals();
    assert_eq!(arrivals.len(), 3);
    // Turns are half a second apart. Measured from the start, since a busy machine may record an
    // arrival late.
    for (turn, arrival) in (0..).zip(&arrivals).skip(1) {
        assert!(arrival.at > start + turn * 500_000 - 100_000, "{} was not held", arrival.path);
        assert!(arrival.body == body, "{} of {} bytes", arrival.path, arrival.body.len());
    }
    envoy.assert_unharmed();
}

#[test]
fn grpc_request_is_held() {
    let upstream = Upstream::start();
    let envoy = line("gateway", 2).before(&upstream).start_shared();
    take_a_slot(&envoy);
    let mut client = Http2::connect(envoy.port).unwrap();
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    let id = client.request("/shop.Cart/Add", &headers, Some(b"\0\0\0\0\x02\x08\x01"));
    client.flush().unwrap();
    assert_eq!(client.answer().unwrap(), (id, Outcome::Ok));
    let arrival = upstream.arrivals().pop().unwrap();
    assert_eq!((arrival.path.as_str(), arrival.body.len()), ("/shop.Cart/Add", 7));
    let content_type = ("content-type".to_owned(), "application/grpc".to_owned());
    assert!(arrival.headers.contains(&content_type), "{:?}", arrival.headers);
    envoy.assert_unharmed();
}
