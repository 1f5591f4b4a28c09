//! Token buckets of callers who have many streams at once and use nothing: all of it is there for them afterwards.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Envoy, Gateway, eventually};
use crate::settling::left_after;
use crate::settling::upstream::{self, ACT};

const LIMIT: u64 = 10;

/// Clients of one caller, and for how long they come.
const CLIENTS: usize = 16;
const TIME: Duration = Duration::from_secs(2);

/// Within which all is settled. What all of them together were charged too much would take thrice as long to drain.
const SOON: Duration = Duration::from_secs(6);

/// Where it is told what was used, how that is asked for, and how that nothing is.
const WAYS: [(&str, &str, &str); 2] =
    [("/cost", "tokens 1", "tokens 0"), ("/count", "status 401", "status 200")];

/// A rule for each way.
pub fn rules(scope: &str) -> String {
    let rule = |path: &str, settles: &str| {
        format!(
            "
  - Url: {path}
    rules:
      - name: bucket{}
        actor: account
        unit: day
        rpu: {LIMIT}
        algo: TB
        scope: {scope}
        {settles}",
            path.trim_start_matches('/')
        )
    };
    let cost = rule("/cost", "cost: {response: {header: x-tokens-used}, reserve: 1, max: 1}");
    let count = rule("/count", "count: {status: [401]}");
    format!("accepted: {{headers: true}}\nlimits:{cost}{count}")
}

/// Lets them come to all gateways, and then just as many as there are permits.
pub fn play(envoys: &[Envoy]) {
    for (path, uses, unused) in WAYS {
        let asks = |does: &'static str| [("x-account-id", "hot"), (ACT, does)];
        let until = Instant::now() + TIME;
        let come = |number: usize| {
            (number..)
                .take_while(|_| Instant::now() < until)
                .filter(|turn| envoys[turn % envoys.len()].get(path, &asks(unused)).status == 200)
                .count()
        };
        let came: usize = thread::scope(|scope| {
            let clients: Vec<_> =
                (0..CLIENTS).map(|number| scope.spawn(move || come(number))).collect();
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert!(came > 50, "too tame: {came}");
        for envoy in envoys {
            let is_full = || {
                let probe = envoy.get(path, &asks(unused));
                (probe.status == 200 && left_after(&probe) == LIMIT - 1).then_some(())
            };
            eventually(&format!("all of {LIMIT} to be left of {path}"), is_full);
        }
        assert!(until.elapsed() < SOON, "{path}: {:?}, after {came}", until.elapsed());
        let fit = (0..=LIMIT as usize)
            .take_while(|turn| !envoys[turn % envoys.len()].get(path, &asks(uses)).refused())
            .count();
        assert_eq!(fit as u64, LIMIT, "{path}, after {came} that used nothing");
    }
}

#[test]
fn a_bucket_of_which_nothing_was_used_is_full() {
    let service = upstream::start();
    let envoy = Gateway::with(&rules("gateway")).workers(4).before(&service).start();
    let envoys = [envoy];
    play(&envoys);
    envoys[0].assert_unharmed();
}
