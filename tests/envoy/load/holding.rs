//! Ten thousand requests held at once.

use std::thread;

use crate::harness::{Http2, Outcome};
use crate::holding::line;

const CONNECTIONS: u64 = 20;
const REQUESTS: u64 = 12_000;

/// Envoy itself responds to these requests when they resume, which uses the most stack.
#[test]
fn ten_thousand_held_requests_are_all_answered() {
    let envoy = line("gateway", 2_500).start();
    let each = REQUESTS / CONNECTIONS;
    let connection = || {
        let mut client = Http2::connect(envoy.port).unwrap();
        (0..each).for_each(|_| _ = client.request("/", &[], None));
        client.flush().unwrap();
        (0..each).filter(|_| client.answer().unwrap().1 == Outcome::Ok).count() as u64
    };
    let (admitted, most) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connection)).collect();
        let mut most = 0;
        while !clients.iter().all(|client| client.is_finished()) {
            most = most.max(envoy.active());
        }
        (clients.into_iter().map(|client| client.join().unwrap()).sum::<u64>(), most)
    });
    println!("{most} at once");
    assert_eq!(admitted, REQUESTS);
    envoy.wait_for_active(..=0);
    envoy.assert_unharmed();
}
