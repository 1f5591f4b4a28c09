//! Many streams at once, some of whose clients leave: what they used is what their accounts were charged.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::harness::{Arrival, Client, Envoy, Gateway, Upstream, eventually, request};
use crate::settling::left;
use crate::settling::upstream::{self, ACT};

/// Accounts that may use as much as they like, and then one that may not.
const ACCOUNTS: usize = 4;
const LIMIT: u64 = 1_000_000;
const TIGHT: u64 = 8_000;

const RESERVE: u64 = 100;
const MOST: u64 = 300;

/// Milliseconds for which the service rests where a client leaves, and within which that does.
const LONG: u64 = 5_000;
const LEFT: u64 = 600;

/// Microseconds within which what has ended is settled.
const SETTLED: u64 = 300_000;

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
    let seeds = Mutex::new(fastrand::Rng::with_seed(kit::seed::next()));
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
        let used = sum(&streams(service, "/wide", &name));
        assert!(used > 10_000, "too tame: {used}");
        let mut last = 0;
        eventually(&format!("{used} to be charged to {name}"), || {
            let probe = [("x-account-id", &*name), (ACT, "sleep 0 tokens 0")];
            let left = left(&envoys[account % envoys.len()], "/wide", &probe);
            let charged = LIMIT - RESERVE - left;
            if charged != last {
                println!("{name}: {charged} of {used}");
                last = charged;
            }
            (charged == used).then_some(())
        });
    }
    let probe = [("x-account-id", "0"), (ACT, &*format!("sleep 0 tokens {RESERVE}"))];
    let more = (0..100).take_while(|_| envoys[0].get("/tight", &probe).status == 200).count();
    assert!(more < 100, "nobody is refused");
    let tight = streams(service, "/tight", "0");
    let (used, bound) = (sum(&tight), TIGHT + owed(&tight));
    println!("{used} used of {TIGHT}, at most {bound}; {more} at last");
    assert!((TIGHT - RESERVE + 1..=bound).contains(&used), "{used} used, of {TIGHT} to {bound}");
}

/// One stream, from its beginning to its end.
fn one(envoy: &Envoy, rng: &mut fastrand::Rng) {
    let (path, account, rests) = match rng.u8(..8) {
        0 => ("/tight", 0, 50..150),
        _ => ("/wide", rng.usize(..ACCOUNTS), 0..40),
    };
    let leaves = rng.u8(..8) == 0;
    let pause = if leaves { LONG } else { rng.u64(rests) };
    let act = format!("sleep {pause} tokens {}", rng.u64(..=MOST));
    let headers = [("x-account-id", &*account.to_string()), (ACT, &act)];
    let mut client = Client::connect(envoy.port).unwrap();
    client.write(&request("GET", path, &headers)).unwrap();
    if leaves {
        thread::sleep(Duration::from_millis(rng.u64(300..LEFT)));
        return client.reset();
    }
    _ = client.read().unwrap();
}

/// A request that came through.
struct Came {
    at: u64,
    /// When its stream had ended for sure.
    until: u64,
    used: u64,
}

/// Those of an account.
fn streams(service: &Upstream, path: &str, account: &str) -> Vec<Came> {
    let those = service
        .arrivals()
        .into_iter()
        .filter(|arrival| arrival.path == path && arrival.header("x-account-id") == Some(account));
    let came = |arrival: Arrival| {
        let words: Vec<u64> =
            arrival.header(ACT)?.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [pause, tokens] = words[..] else { panic!("{words:?}") };
        // Whoever leaves before the answer uses the most.
        let (pause, used) = if pause == LONG { (LEFT, MOST) } else { (pause, tokens) };
        Some(Came { at: arrival.at, until: arrival.at + pause * 1000, used })
    };
    those.filter_map(came).collect()
}

fn sum(streams: &[Came]) -> u64 {
    streams.iter().map(|it| it.used).sum()
}

/// What those used beyond what was reserved that were not settled when the last one was let in.
fn owed(streams: &[Came]) -> u64 {
    let last = streams.iter().map(|it| it.at).max().unwrap_or_default();
    let open = streams.iter().filter(|it| it.until + SETTLED >= last);
    open.map(|it| it.used.saturating_sub(RESERVE)).sum()
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
