//! A worker that stands still while it holds permits of a caller: others do not take them for used.

use std::thread;
use std::time::Duration;

use serde_json::json;

use super::modes::{Modes, without_cause};
use super::{Fleet, gateway};
use crate::harness::{
    Client, Clock, Complaint, Gateway, NO_EXCUSE, alone, eventually, hcm_filter, request,
    try_until_undisturbed,
};

const TIMEOUT: u64 = 500_000;
const LIMIT: usize = 500;

/// So much of it is left when the worker stands still: little enough for others to use up meanwhile.
const LEFT: usize = 100;

/// For how long it stands still, in milliseconds, and at most, in microseconds, on a machine that is busy: what is leased is spent
/// for a tenth of a second, and counts as out for half a second at least.
const STILL: &str = "250";
const LONGEST: u64 = 350_000;

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
/// and what was wrong, unless it stood still for too long.
fn trial(
    fleet: &Fleet,
    scope: &str,
    algo: &str,
    clock: &Clock,
) -> Result<(usize, Option<String>), Complaint> {
    let ports: Vec<u16> = fleet.envoys.iter().map(|envoy| envoy.port).collect();
    let ports = if scope == "gateway" { &ports[..1] } else { &ports[..] };
    let bytes = &request("GET", &format!("/{scope}/{algo}"), &[("x-account-id", "ann")]);
    let mut hot = Client::connect(ports[0]).unwrap();
    let mut answers: Vec<Answer> = (LEFT..LIMIT).map(|_| send(&mut hot, bytes, clock)).collect();
    let until_refused = |port: u16| {
        let mut client = Client::connect(port).unwrap();
        let mut answers = Vec::new();
        while answers.last().is_none_or(|last: &Answer| last.is_admitted) {
            answers.push(send(&mut client, bytes, clock));
        }
        answers
    };
    let began = clock.now();
    hot.write(&request("GET", "/", &[("x-still", STILL)])).unwrap();
    let others = ports.iter().flat_map(|port| [*port; 6]);
    let still = thread::scope(|scope| {
        let threads: Vec<_> = others.map(|port| scope.spawn(move || until_refused(port))).collect();
        assert_eq!(hot.read().unwrap().status, 200, "it goes on");
        let still = clock.now() - began;
        answers.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        still
    });
    let lent = answers.iter().filter(|answer| !answer.is_admitted && !answer.is_final).count();
    eventually("all of the limit to be used", || {
        answers.extend(until_refused(ports[0]));
        answers.last().is_some_and(|last| last.is_final).then_some(())
    });
    let used = |before: u64| answers.iter().filter(|it| it.is_admitted && it.sent < before).count();
    let first = answers.iter().filter(|it| it.is_final).map(|it| it.received).min().unwrap();
    if still > LONGEST {
        let what = format!("{scope}, {algo}: a worker stood still for {still} us");
        return Err(Complaint::new(what, began..began + still, Duration::ZERO));
    }
    let (early, all) = (used(first), used(u64::MAX));
    let wrong = || format!("{scope}, {algo}: told that all is used after {early}, of {all}");
    Ok((lent, (early != LIMIT || all != LIMIT).then(wrong)))
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
        let (modes, clock) = (Modes::watch(&fleet.envoys), Clock::new());
        let (mut lent, mut wrong, mut complaints) = (0, Vec::new(), Vec::new());
        let began = clock.now();
        for scope in ["gateway", "global"] {
            for algo in algorithms {
                match trial(&fleet, scope, algo, &clock) {
                    Ok((waited, what)) => {
                        lent += waited;
                        wrong.extend(what);
                    }
                    Err(complaint) => complaints.push(complaint),
                }
            }
        }
        let alone = modes.end();
        fleet.assert_unharmed();
        assert!(wrong.is_empty() || !alone.is_empty(), "{}; {NO_EXCUSE}", wrong.join("\n"));
        complaints.extend(without_cause(&alone, TIMEOUT));
        if lent == 0 {
            // Nobody came often enough.
            let what = "nothing was held".into();
            complaints.push(Complaint::new(what, began..clock.now(), Duration::ZERO));
        }
        ((), complaints)
    });
}
