//! Requests in flight from many connections at once.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::harness::{Arrival, Client, Envoy, Gateway, Http2, Outcome, Upstream, request};
use crate::in_flight::{LIMIT, fill, hang, rules};
use crate::metrics::settles;

const CLIENTS: usize = 200;
const EACH: usize = 20;

/// The requests that the service handles now, and at most.
static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Answers within some milliseconds, except requests to `/`. Counts those to `/counted`.
fn answer(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    if arrival.path == "/" {
        return hang(arrival, to);
    }
    let one = usize::from(arrival.path == "/counted");
    MOST.fetch_max(NOW.fetch_add(one, Ordering::SeqCst) + one, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
    NOW.fetch_sub(one, Ordering::SeqCst);
    to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")
}

/// Fails unless all slots are free once all requests have ended.
#[track_caller]
fn assert_all_free(envoy: &Envoy) {
    envoy.wait_for_active(0..=0);
    settles(envoy, "rule.few.in_flight", 0);
    let free = fill(envoy).len();
    assert!(free >= LIMIT, "{free} of {LIMIT}");
    envoy.assert_unharmed();
}

#[test]
fn requests_in_flight_from_many_clients_are_answered() {
    let service = Upstream::answering(answer);
    let envoy = Gateway::with(&rules("gateway")).workers(4).before(&service).start();
    let bytes = request("GET", "/counted", &[("x-account-id", "a")]);
    let send = || {
        let mut client = Client::connect(envoy.port).unwrap();
        let answer = |_: &usize| {
            let response = client.send(&bytes).unwrap();
            assert!(response.status == 200 || response.refused(), "{response:?}");
            response.status == 200
        };
        (0..EACH).filter(answer).count()
    };
    let admitted: usize = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(send)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    let most = MOST.load(Ordering::SeqCst);
    // Not asserted: a worker that stands still for a second loses its slots.
    println!("{admitted} of {} admitted, {most} of {LIMIT} in flight", CLIENTS * EACH);
    assert_all_free(&envoy);
}

/// Each stream is reset before its request is read, while it is answered, or afterwards.
#[test]
fn http2_resets_free_their_slots() {
    let service = Upstream::answering(answer);
    let envoy = Gateway::with(&rules("gateway")).workers(3).before(&service).start();
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    let (mut reset, mut ok) = (0, 0);
    for _ in 0..40 {
        let mut client = Http2::connect(envoy.port).unwrap();
        let mut open = Vec::new();
        for _ in 0..30 {
            open.push(client.request("/reset", &[("x-account-id", "a")], None));
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
            // The whole connection is closed.
            continue;
        }
        while !open.is_empty() {
            let (id, outcome) = client.answer().unwrap();
            ok += usize::from(outcome == Outcome::Ok);
            open.retain(|stream| *stream != id);
        }
    }
    println!("{reset} streams reset, {ok} answered by the service");
    assert_all_free(&envoy);
}
