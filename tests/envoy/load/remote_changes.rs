//! Changes under load: how soon, and what they leave as it was.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Centre, Client, Load, Says, alone, eventually, request};
use crate::remote::{document, gateway, in_force, lines, metric, settles_on};

const WORKERS: u32 = 3;
const EVERY: Duration = Duration::from_secs(1);
const CHANGES: usize = 7;

/// Waits until the requests on all these connections are answered by the document.
#[track_caller]
fn all_settle_on(clients: &mut [Client], name: &str) {
    let bytes = request("GET", "/closed", &[]);
    for client in clients {
        eventually(&format!("the rules of `{name}`"), || {
            let refused = client.send(&bytes).unwrap();
            let policy = refused.header("ratelimit-policy").unwrap();
            policy.contains(&format!("\"{name}\"")).then_some(())
        });
    }
}

#[test]
fn a_change_reaches_all_workers_in_time_and_no_request_fails() {
    alone();
    let centre = Centre::start(Says::Text(document("first", 1_000_000)));
    let envoy = gateway(centre.port).workers(WORKERS).start();
    settles_on(&envoy, "first");
    // That none of them falls on one of the workers happens once in 10^5 runs.
    let mut clients: Vec<Client> = (0..30).map(|_| Client::connect(envoy.port).unwrap()).collect();
    let load = Load { connections: 20, rate: 300, seconds: 18, paths: &["/"] };
    let (shots, mut times) = thread::scope(|scope| {
        let shots = scope.spawn(|| load.fire(envoy.port));
        let change = |number: usize| {
            let name = format!("change-{number}");
            // At another moment of the leader's second each time.
            thread::sleep(EVERY * number as u32 / CHANGES as u32);
            let start = Instant::now();
            centre.say(Says::Text(document(&name, 1_000_000)));
            all_settle_on(&mut clients, &name);
            start.elapsed()
        };
        let times: Vec<Duration> = (0..CHANGES).map(change).collect();
        (shots.join().unwrap(), times)
    });
    println!("seconds from a change to the last worker: {times:?}");
    times.sort();
    // The busiest moment of a shared machine is left out.
    assert!(times[CHANGES - 2] <= EVERY + Duration::from_secs(1), "{times:?}");
    assert!(shots.len() > 2_000, "only {} requests", shots.len());
    let failed: Vec<_> = shots.iter().filter(|shot| shot.status != 200).collect();
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
    // Each worker once, and the main thread, for which nobody waited: it may have skipped some.
    let documents = CHANGES as u64 + 1;
    let (least, most) = (u64::from(WORKERS) * documents + 1, u64::from(WORKERS + 1) * documents);
    eventually("each to be applied once by each worker", || {
        (least..=most).contains(&metric(&envoy, "applied")).then_some(())
    });
    eventually("all to be told", || {
        (metric(&envoy, "in_force") == u64::from(WORKERS + 1)).then_some(())
    });
    assert_eq!(lines(&envoy).len(), CHANGES + 1, "{:#?}", lines(&envoy));
    // One of them asks for all.
    let polls = metric(&envoy, "fetched");
    assert!(centre.asked().len() as u64 <= polls + 1, "{polls} of {}", centre.asked().len());
    envoy.assert_unharmed();
}

/// A document whose rule lets the requests that it holds go 10 ms apart.
fn pacing(name: &str) -> String {
    let rule = "{name: paced, actor: all, unit: second, rpu: 100, algo: LB, max_delay: 10s, max_queue: 900}";
    format!("{}  - Url: /paced\n    rules: [{rule}]\n", document(name, 1_000_000))
}

#[test]
fn nobody_who_waits_is_lost_while_the_centre_flaps() {
    alone();
    let centre = Centre::start(Says::Text(pacing("first")));
    let envoy = gateway(centre.port).workers(2).start();
    settles_on(&envoy, "first");
    // A little more than passes, so that there is always somebody who waits.
    let load = Load { connections: 60, rate: 110, seconds: 8, paths: &["/paced"] };
    let seed = 20_261_123;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let shots = thread::scope(|scope| {
        let shots = scope.spawn(|| load.fire(envoy.port));
        for number in 0.. {
            centre.say(match random.u8(0..6) {
                0 => Says::Status(500),
                1 => Says::Garbage,
                2 => Says::Half(pacing("half")),
                3 => Says::Text(pacing("Bad Name")),
                _ => Says::Text(pacing(&format!("flap-{number}"))),
            });
            if shots.is_finished() {
                break;
            }
            thread::sleep(Duration::from_millis(random.u64(50..900)));
        }
        shots.join().unwrap()
    });
    let failed: Vec<_> = shots.iter().filter(|shot| shot.status != 200).collect();
    assert!(failed.is_empty(), "{} failed: {failed:?}", failed.len());
    let held = || envoy.stat("wasmcustom.diana.diana.rule.paced.held");
    eventually("requests that were held", || held().filter(|held| *held > 100));
    let lines = lines(&envoy).len() as u64;
    let polls = metric(&envoy, "fetched") + metric(&envoy, "failed") + metric(&envoy, "rejected");
    assert!(lines <= polls, "{lines} lines for {polls} polls");
    centre.say(Says::Text(pacing("last")));
    settles_on(&envoy, "last");
    envoy.assert_unharmed();
}

#[test]
fn what_was_used_stays_used() {
    let centre = Centre::start(Says::Text(document("first", 4)));
    let envoy = gateway(centre.port).workers(2).start();
    let ada = [("x-account-id", "ada")];
    // Some under the rules of the gateway itself, before or after the first document.
    assert_eq!(envoy.statuses(2, "/", &ada), [200; 2]);
    settles_on(&envoy, "first");
    let mut left = [200, 200, 503, 503];
    assert_eq!(envoy.statuses(4, "/", &ada), left);
    for (name, rpu) in [("more", 6), ("less", 3), ("most", 8)] {
        centre.say(Says::Text(document(name, rpu)));
        settles_on(&envoy, name);
        left = if rpu == 3 { [503; 4] } else { left };
        assert_eq!(envoy.statuses(4, "/", &ada), left, "{name}");
        left = [200, 200, 503, 503];
    }
    envoy.assert_unharmed();
}

#[test]
fn a_changed_plugin_configuration_goes_on_with_the_last_good_document() {
    alone();
    let centre = Centre::start(Says::Text(document("there", 1_000_000)));
    let port = centre.port;
    let envoy = gateway(port).workers(2).start();
    settles_on(&envoy, "there");
    eventually("all to have it", || (metric(&envoy, "in_force") == 3).then_some(()));
    drop(centre);
    let own = document("changed", 1).replace("/closed", "/closed\n    ignore_case: true");
    let remote = "remote: {cluster: centre, path: /rules.yaml, every: 2s, timeout: 300ms}";
    let changed = crate::harness::Gateway::with(&format!("{own}{remote}")).cluster("centre", port);
    let load = Load { connections: 8, rate: 200, seconds: 4, paths: &["/"] };
    let shots = thread::scope(|scope| {
        let shots = scope.spawn(|| load.fire(envoy.port));
        envoy.update(&changed.workers(2));
        for _ in 0..300 {
            assert_eq!(in_force(&envoy).as_deref(), Some("there"));
        }
        shots.join().unwrap()
    });
    assert!(shots.iter().all(|shot| shot.status == 200), "{shots:?}");
    let _centre = Centre::on(port, Says::Text(document("back", 1_000_000)));
    settles_on(&envoy, "back");
    envoy.assert_unharmed();
}
