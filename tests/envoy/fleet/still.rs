//! A worker that stands still while it holds permits of a caller: others do not take them for used.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{Fleet, gateway};
use crate::harness::{
    Client, Clock, Complaint, Gateway, NO_EXCUSE, alone, eventually, hcm_filter, request,
    try_until_undisturbed,
};

const TIMEOUT: u64 = 500_000;
const LIMIT: usize = 2000;

/// For how long it stands still, in milliseconds: what is leased counts as out for half a second at least.
const STILL: &str = "250";

/// If the machine stood still for so long, it did not keep to that.
const SPOILED: Duration = Duration::from_millis(50);

/// A filter in front, in which a worker is kept for as long as a request says.
fn keeping(gateway: Gateway) -> Gateway {
    let script = "function envoy_on_request(handle)
        local still = handle:headers():get('x-still')
        if not still then return end
        local ends = handle:timestamp() + tonumber(still)
        while handle:timestamp() < ends do end
    end";
    let lua = json!({"default_source_code": {"inline_string": script}});
    gateway.behind(hcm_filter("envoy.filters.http.lua", "lua", "Lua", lua))
}

/// An answer to a request of the caller.
struct Answer {
    sent: u64,
    received: u64,
    is_admitted: bool,
    /// Whether it is to come back later than what is outstanding may.
    is_final: bool,
}

fn send(client: &mut Client, bytes: &[u8], clock: &Clock) -> Answer {
    let sent = clock.now();
    let response = client.send(bytes).unwrap();
    assert!([200, 429].contains(&response.status), "{}", response.status);
    let retry: Option<u64> = response.header("retry-after").map(|it| it.parse().unwrap());
    let (is_admitted, is_final) = (response.status == 200, retry.is_some_and(|it| it > 1));
    Answer { sent, received: clock.now(), is_admitted, is_final }
}

/// Uses up a caller's limit while one worker stands still that holds some of it. How many were refused for what that held,
/// and whether any was told that all is used who fitted.
fn trial(fleet: &Fleet, scope: &str, algo: &str, clock: &Clock) -> (usize, Option<Complaint>) {
    let ports: Vec<u16> = fleet.envoys.iter().map(|envoy| envoy.port).collect();
    let ports = if scope == "gateway" { &ports[..1] } else { &ports[..] };
    let bytes = &request("GET", &format!("/{scope}/{algo}"), &[("x-account-id", "ann")]);
    let (mut hot, began) = (Client::connect(ports[0]).unwrap(), clock.now());
    let mut answers: Vec<Answer> = (0..LIMIT / 2).map(|_| send(&mut hot, bytes, clock)).collect();
    let until_refused = |port: u16| {
        let mut client = Client::connect(port).unwrap();
        let mut answers = Vec::new();
        while answers.last().is_none_or(|last: &Answer| last.is_admitted) {
            answers.push(send(&mut client, bytes, clock));
        }
        answers
    };
    hot.write(&request("GET", "/", &[("x-still", STILL)])).unwrap();
    let others = ports.iter().flat_map(|port| [*port; 6]);
    answers.extend(thread::scope(|scope| {
        let threads: Vec<_> = others.map(|port| scope.spawn(move || until_refused(port))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<Answer>>()
    }));
    assert_eq!(hot.read().unwrap().status, 200, "it goes on");
    let lent = answers.iter().filter(|answer| !answer.is_admitted && !answer.is_final).count();
    eventually("all of the limit to be used", || {
        answers.extend(until_refused(ports[0]));
        answers.last().is_some_and(|last| last.is_final).then_some(())
    });
    let used = |before: u64| answers.iter().filter(|it| it.is_admitted && it.sent < before).count();
    let all = used(u64::MAX);
    assert_eq!(all, LIMIT, "{NO_EXCUSE}: {scope}, {algo}");
    let first = answers.iter().filter(|it| it.is_final).map(|it| it.received).min().unwrap();
    let early = || {
        let what = format!("{scope}, {algo}: one is told that all is used after {}", used(first));
        Complaint::new(what, began..first, SPOILED)
    };
    (lent, (used(first) < LIMIT).then(early))
}

#[test]
fn what_a_worker_holds_that_stands_still_is_not_used() {
    alone();
    let algorithms = ["W", "SW", "TB"];
    let all = "{actor: all, unit: second, rpu: 1000000, scope: global}";
    let mut limits = format!("limits:\n  - {{Url: /together, rules: [{all}]}}\n");
    for scope in ["gateway", "global"] {
        for algo in algorithms {
            limits += &format!(
                "  - {{Url: /{scope}/{algo}, rules: [{{actor: account, unit: day, rpu: {LIMIT}, algo: {algo}, \
                 scope: {scope}}}]}}\n"
            );
        }
    }
    try_until_undisturbed("a worker that stands still", || {
        let fleet = Fleet::start_with(|port, _| keeping(gateway(TIMEOUT, &limits, port)));
        fleet.comes_together("/together");
        let (clock, mut lent, mut complaints) = (Clock::new(), 0, Vec::new());
        let began = clock.now();
        for scope in ["gateway", "global"] {
            for algo in algorithms {
                let (waited, complaint) = trial(&fleet, scope, algo, &clock);
                lent += waited;
                complaints.extend(complaint);
            }
        }
        fleet.assert_unharmed();
        if lent == 0 {
            // Nobody came often enough.
            let what = "nothing was held".into();
            complaints.push(Complaint::new(what, began..clock.now(), Duration::ZERO));
        }
        ((), complaints)
    });
}
