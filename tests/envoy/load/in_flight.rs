//! Requests in flight from many connections at once.

use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::harness::{Arrival, Gateway, Http2, Outcome, Upstream};
use crate::in_flight::{LIMIT, fill, hang, rules};
use crate::metrics::settles;

/// Responds within some milliseconds, except to requests for `/`.
fn answer(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    if arrival.path == "/" {
        return hang(arrival, to);
    }
    thread::sleep(Duration::from_millis(fastrand::u64(1..20)));
    to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")
}

/// Each stream is reset before its request is read, during the response, or afterwards.
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
    envoy.wait_for_active(0..=0);
    settles(&envoy, "rule.few.in_flight", 0);
    let free = fill(&envoy).len();
    assert!(free >= LIMIT, "{free} of {LIMIT}");
    envoy.assert_unharmed();
}
