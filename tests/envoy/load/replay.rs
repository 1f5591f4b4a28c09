//! What `diana replay` says of an access log is what Envoy did with its requests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{
    Clock, Complaint, Envoy, Gateway, eventually, exchange, request, try_until_undisturbed,
};

/// Each path has a rule of its own, so that a path and a decision tell which rule it was.
const RULES: &str = "
limits:
  - {Url: /window, rules: [{actor: account, unit: second, rpu: 3, algo: W}]}
  - {Url: /sliding, rules: [{actor: account, unit: hour, rpu: 15, algo: SW}]}
  - {Url: /bucket, rules: [{actor: account, unit: second, rpu: 2, burst: 5, algo: TB}]}
  - {Url: /leaky, rules: [{actor: account, unit: second, rpu: 2, algo: LB, max_delay: 1200ms}]}
  - Url: /two
    rules:
      - {actor: all, unit: hour, rpu: 12, algo: W}
      - {actor: account, unit: hour, rpu: 5, algo: W, scope: local}
";

/// Envoy's own format, and who calls.
const FORMAT: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% \
                      %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \
                      \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \
                      \"%UPSTREAM_HOST%\" \"%REQ(X-ACCOUNT-ID)%\"\n";

const PATHS: [&str; 5] = ["/window", "/sliding", "/bucket", "/leaky", "/two"];

/// Milliseconds between two requests at least.
const APART: u64 = 2;

/// Rounds, one in each second, and requests in each of them under each path.
const ROUNDS: u64 = 6;
const REQUESTS: usize = 4;

/// When a round begins, in milliseconds of its second, and how much later all but the first of them do. Permits of the
/// buckets come back every half a second after the first request, so nothing happens close to that.
const BEGIN: u64 = 400;
const LATER: u64 = 130;

/// How late a request may be, in milliseconds, without coming close to it.
const LATE: u64 = 250;

/// Sends all requests. Those that are held have a connection each, as all have.
fn send(envoy: &Envoy, clock: &Clock, account: &str) {
    let second = clock.now() / 1_000_000 + 1;
    let mut waiting = Vec::new();
    for round in 0..ROUNDS {
        let begin = (second + round) * 1000 + BEGIN + if round > 0 { LATER } else { 0 };
        let left = (begin * 1000).saturating_sub(clock.now());
        thread::sleep(Duration::from_micros(left));
        for path in PATHS {
            for _ in 0..REQUESTS {
                let (port, bytes) =
                    (envoy.port, request("GET", path, &[("x-account-id", account)]));
                waiting
                    .push(thread::spawn(move || exchange(port, &bytes).expect("an answer").status));
                // A log has milliseconds only, by which requests are in their order.
                thread::sleep(Duration::from_millis(3));
            }
        }
    }
    waiting.into_iter().for_each(|thread| _ = thread.join().unwrap());
}

/// A line of the access log: when the request came, its path, and whether it was refused.
fn line(line: &str) -> (u64, String, bool) {
    let mut words = line.split_whitespace();
    let time = words.next().unwrap().trim_matches(['[', ']']);
    let at = time.parse::<jiff::Timestamp>().unwrap().as_millisecond().cast_unsigned();
    (at, words.nth(1).unwrap().into(), words.nth(1).unwrap() == "503")
}

/// The same, by the command.
fn replayed(folder: &Path, log: &[String]) -> Vec<(u64, String, bool)> {
    let path = |name: &str| folder.join(name);
    fs::write(path("rules.yaml"), RULES).unwrap();
    fs::write(path("access.log"), log.join("\n")).unwrap();
    let (rules, log, decisions) = (path("rules.yaml"), path("access.log"), path("decisions"));
    let words: [OsString; 8] = [
        "diana".into(),
        "replay".into(),
        rules.into_os_string(),
        log.into_os_string(),
        "--set".into(),
        "header:x-account-id=14".into(),
        "--decisions".into(),
        decisions.clone().into_os_string(),
    ];
    diana_cli::run(words.into_iter());
    let text = fs::read_to_string(decisions).unwrap();
    let decided = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = (line["time"].as_f64().unwrap() * 1000.0).round() as u64;
        (at, line["path"].as_str().unwrap().into(), line["decision"] == "refused")
    });
    decided.collect()
}

/// Requests that came close to an instant at which a rule changes its mind.
fn close(decided: &[(u64, String, bool)]) -> Vec<Complaint> {
    let mut first = BTreeMap::new();
    let mut complaints = Vec::new();
    for (at, path, _) in decided {
        let begin = *first.entry(path).or_insert(*at);
        let since = match path.as_str() {
            "/window" => at % 1000,
            "/bucket" | "/leaky" => match (at - begin) % 500 {
                // Those of the first round come at once.
                early if at - begin < LATE => early + 10,
                since => since,
            },
            _ => continue,
        };
        let end = if path == "/window" { 1000 } else { 500 };
        if !(10..end - 10).contains(&since) {
            let what = format!("{path}: a request came {since} ms after a rule changed its mind");
            let during = (at - 2000) * 1000..(at + 2000) * 1000;
            complaints.push(Complaint::new(what, during, Duration::from_millis(50)));
        }
    }
    complaints
}

/// What became of the requests of each path in the order in which they came; of those that came closer to each other than a
/// log can tell, in any order.
fn by_path(decided: &[(u64, String, bool)]) -> BTreeMap<&str, Vec<(u64, bool)>> {
    let mut of = BTreeMap::<&str, Vec<(u64, bool)>>::new();
    for (at, path, refused) in decided {
        of.entry(path).or_default().push((*at, *refused));
    }
    for requests in of.values_mut() {
        requests.sort_unstable();
        for close in requests.chunk_by_mut(|one, other| other.0 - one.0 < APART) {
            let mut refused: Vec<bool> = close.iter().map(|(_, refused)| *refused).collect();
            refused.sort_unstable();
            close.iter_mut().zip(refused).for_each(|(request, refused)| request.1 = refused);
        }
    }
    of
}

fn folder() -> PathBuf {
    let name = format!("replay-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_replay_decides_as_envoy_did() {
    let folder = folder();
    let (log, decided) = try_until_undisturbed("replay", || {
        let clock = Clock::new();
        let envoy = Gateway::with(RULES).workers(1).logging(FORMAT).start();
        send(&envoy, &clock, "ann");
        let count = ROUNDS as usize * PATHS.len() * REQUESTS;
        let log =
            eventually("all lines", || Some(envoy.access_log()).filter(|it| it.len() == count));
        let decided = replayed(&folder, &log);
        let complaints = close(&decided);
        ((log, decided), complaints)
    });
    let told: Vec<_> = log.iter().map(|text| line(text)).collect();
    assert_eq!(decided.len(), told.len());
    assert_eq!(by_path(&decided), by_path(&told));
    for path in PATHS {
        let refused = told.iter().filter(|(_, own, refused)| own == path && *refused).count();
        assert!(
            (1..ROUNDS as usize * REQUESTS).contains(&refused),
            "{path}: {refused} tell nothing"
        );
    }
}
