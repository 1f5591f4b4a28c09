//! Many streams at once, some of whose clients leave: what they used is what their accounts were charged.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::left;
use super::upstream::{self, ACT};
use crate::harness::{Client, Envoy, Gateway, Upstream, eventually, request};

/// Accounts that may use as much as they like, and then one that may not.
const ACCOUNTS: usize = 4;
const LIMIT: u64 = 1_000_000;
const TIGHT: u64 = 4_000;

const RESERVE: u64 = 100;
const MOST: u64 = 300;

/// Milliseconds for which the service rests where a client leaves, which it does within a second.
const LONG: u64 = 5_000;

/// Streams at once, and how often.
const CLIENTS: usize = 200;
const ROUNDS: usize = 5;

/// A rule that lets accounts use much, and one that does not.
pub fn rules(algo: &str, scope: &str) -> String {
    let rule = |path: &str, rpu: u64| {
        format!(
            "
  - Url: {path}
    rules:
      - name: tokens{rpu}
        actor: account
        unit: day
        rpu: {rpu}
        algo: {algo}
        scope: {scope}
        cost: {{response: {{header: x-tokens-used}}, reserve: {RESERVE}, max: {MOST}}}"
        )
    };
    format!("accepted: {{headers: true}}\nlimits:{}{}", rule("/wide", LIMIT), rule("/tight", TIGHT))
}

/// Lets them all come to gateways in front of a service, and holds what accounts were charged against what they used.
pub fn play(envoys: &[Envoy], service: &Upstream) {
    let seeds = Mutex::new(fastrand::Rng::with_seed(kit::seed::fresh()));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut rng = seeds.lock().unwrap().fork();
            scope.spawn(move || {
                (0..ROUNDS).for_each(|_| one(&envoys[number % envoys.len()], &mut rng));
            });
        }
    });
    for account in 0..ACCOUNTS {
        let name = account.to_string();
        let used: u64 = used(service, "/wide", &name).iter().sum();
        assert!(used > 10_000, "too tame: {used}");
        let mut last = 0;
        eventually(&format!("{used} to be charged to {name}"), || {
            let probe = [("x-account-id", &*name), (ACT, "sleep 0 tokens 0")];
            let left = left(&envoys[account % envoys.len()], "/wide", &probe);
            last = LIMIT - RESERVE - left;
            (last == used).then_some(())
        });
        println!("{name}: {last} of {used}");
    }
    let tight: u64 = used(service, "/tight", "0").iter().sum();
    let bound = TIGHT + CLIENTS as u64 * (MOST - RESERVE);
    assert!((TIGHT - RESERVE..=bound).contains(&tight), "{tight} used, of {TIGHT} to {bound}");
    let more = envoys[0].get("/tight", &[("x-account-id", "0"), (ACT, "tokens 0")]).status;
    assert_ne!(more, 200, "{tight} used");
}

/// One stream, from its beginning to its end.
fn one(envoy: &Envoy, rng: &mut fastrand::Rng) {
    let (path, account) = match rng.u8(..8) {
        0 => ("/tight", 0),
        _ => ("/wide", rng.usize(..ACCOUNTS)),
    };
    let leaves = rng.u8(..8) == 0;
    let pause = if leaves { LONG } else { rng.u64(..40) };
    let act = format!("sleep {pause} tokens {}", rng.u64(..=MOST));
    let headers = [("x-account-id", &*account.to_string()), (ACT, &act)];
    let mut client = Client::connect(envoy.port).unwrap();
    client.write(&request("GET", path, &headers)).unwrap();
    if leaves {
        thread::sleep(Duration::from_millis(rng.u64(300..600)));
        return client.reset();
    }
    _ = client.read().unwrap();
}

/// What each request of an account used that came through.
fn used(service: &Upstream, path: &str, account: &str) -> Vec<u64> {
    let those = service
        .arrivals()
        .into_iter()
        .filter(|arrival| arrival.path == path && arrival.header("x-account-id") == Some(account));
    let used = |act: &str| {
        let words: Vec<&str> = act.split(' ').collect();
        let (pause, tokens) = (words[1], words[3].parse().unwrap());
        // Whoever leaves before the answer uses the most.
        if pause == LONG.to_string() { MOST } else { tokens }
    };
    those.filter_map(|arrival| Some(used(arrival.header(ACT)?))).collect()
}

#[test]
fn accounts_are_charged_what_they_used() {
    for algo in ["W", "SW"] {
        let service = upstream::start();
        let envoy = Gateway::with(&rules(algo, "gateway")).workers(4).before(&service).start();
        let envoys = [envoy];
        play(&envoys, &service);
        envoys[0].assert_unharmed();
    }
}
