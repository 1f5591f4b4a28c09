//! Requests that are held.

mod uploads;

use crate::harness::{Envoy, Gateway, Http2, Outcome};

/// A line of `rpu` slots a second for everybody together, as long as it takes.
pub fn line(scope: &str, rpu: u32) -> Gateway {
    changed_line(scope, rpu, "")
}

/// The same line, with more settings.
pub fn changed_line(scope: &str, rpu: u32, more: &str) -> Gateway {
    Gateway::with(&format!(
        "limits: [{{Url: /, rules: [{{name: line, actor: all, unit: second, rpu: {rpu}, algo: LB, \
         scope: {scope}, max_delay: 20s, max_queue: 1000000}}]}}]\n{more}"
    ))
}

/// Sends GETs of `/0`, `/1` and so on over one connection, in this order.
pub fn send(envoy: &Envoy, count: usize) -> (Http2, Vec<u32>) {
    let mut client = Http2::connect(envoy.port).unwrap();
    let ids = (0..count).map(|number| client.request(&format!("/{number}"), &[], None)).collect();
    client.flush().unwrap();
    (client, ids)
}

/// Fails unless all of these streams get 200.
#[track_caller]
pub fn assert_all_ok(client: &mut Http2, ids: &[u32]) {
    for _ in ids {
        let (id, outcome) = client.answer().unwrap();
        assert!(ids.contains(&id) && outcome == Outcome::Ok, "{id}: {outcome:?}");
    }
}

/// The numbers in the paths that came, in their order.
pub fn numbers(paths: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<usize> {
    paths.into_iter().map(|path| path.as_ref()[1..].parse().unwrap()).collect()
}
