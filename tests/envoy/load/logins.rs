//! Logins: wrong passwords count, good ones do not, however many come at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::harness::{Envoy, Gateway, eventually};
use crate::metrics::settles;
use crate::settling::upstream::{self, ACT};

const LIMIT: usize = 5;
const CLIENTS: usize = 50;
const GOOD: usize = 1000;

pub fn rules(scope: &str) -> String {
    format!(
        "limits:
  - Url: /login
    rules: [{{name: logins, actor: address, unit: day, rpu: {LIMIT}, algo: SW, scope: {scope}, count: {{status: [401]}}}}]"
    )
}

/// One try, made again at once as long as the gateway is asked for more at one instant than may be under way. The
/// status, and the longest time after which a refusal says to come back.
fn login(envoy: &Envoy, password: &str, patience: usize) -> (u16, u64) {
    let status = if password == "good" { 200 } else { 401 };
    let act = format!("sleep 2 status {status}");
    let mut longest = 0;
    for _ in 0..patience {
        let response = envoy.get("/login", &[(ACT, &act)]);
        if !response.refused() {
            assert_eq!(response.status, status);
            return (status, longest);
        }
        let after = response.header("retry-after").expect("a time");
        longest = longest.max(after.parse().expect("seconds"));
        thread::sleep(Duration::from_millis(3));
    }
    (0, longest)
}

/// All come from one address.
pub fn play(envoys: &[Envoy]) {
    let (good, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (good, wrong) = (&good, &wrong);
            scope.spawn(move || {
                let envoy = &envoys[number % envoys.len()];
                for _ in 0..GOOD / CLIENTS {
                    let (status, after) = login(envoy, "good", 10_000);
                    assert!(status == 200 && after <= 1, "{status}, {after} s");
                    good.fetch_add(1, Ordering::Relaxed);
                }
                // One wrong password less than may be.
                if number < LIMIT - 1 {
                    let (status, after) = login(envoy, "wrong", 10_000);
                    assert!(status == 401 && after <= 1, "{status}, {after} s");
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((good.into_inner(), wrong.into_inner()), (GOOD, LIMIT - 1));
    let passed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (envoy, passed) = (&envoys[number % envoys.len()], &passed);
            scope.spawn(move || {
                let (status, _) = login(envoy, "wrong", 20);
                passed.fetch_add(usize::from(status == 401), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(passed.into_inner(), 1, "never a sixth");
    let (status, after) = login(&envoys[0], "good", 3);
    assert_eq!(status, 0, "five have counted");
    assert!(after > 60, "{after} s");
}

#[test]
fn five_wrong_passwords_and_never_a_sixth() {
    let service = upstream::start();
    let envoys = [Gateway::with(&rules("gateway")).workers(4).before(&service).start()];
    play(&envoys);
    envoys[0].assert_unharmed();
}

/// What counted adds up over the workers. Good logins never lead to a ban, nor do they escape one.
#[test]
fn five_wrong_passwords_lead_to_a_ban() {
    let service = upstream::start();
    let rules = "limits:
  - Url: /login
    rules:
      - {name: logins, actor: account, unit: minute, rpu: 100, algo: SW, count: {status: [401]},
         ban: {after: 5, within: 1m, for: 10m, on: counted}}";
    let envoy = Gateway::with(rules).workers(4).before(&service).start();
    // Each comes by a connection of its own, to any worker.
    let login = |account: &str, status: u16| {
        let act = format!("status {status}");
        envoy.get("/login", &[("x-account-id", account), (ACT, &act)])
    };
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| (0..50).for_each(|_| assert_eq!(login("ann", 200).status, 200)));
        }
    });
    for number in 0..LIMIT {
        assert!((0..20).all(|_| login("eve", 200).status == 200), "after {number}");
        assert_eq!(login("eve", 401).status, 401, "after {number}");
    }
    let is_banned = |_| {
        let answer = login("eve", 200);
        let left = answer.header("retry-after").and_then(|left| left.parse::<u64>().ok());
        answer.refused() && left > Some(540)
    };
    eventually("all workers to ban", || (0..40).all(is_banned).then_some(()));
    assert!((0..40).all(|_| login("ann", 200).status == 200));
    settles(&envoy, "rule.logins.bans", 1);
    envoy.assert_unharmed();
}
