//! `diana replay` of Envoy's access log makes the same decisions as Envoy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Gateway, eventually};

/// No permits are added within the hour, so only the order of the requests matters.
const RULES: &str = "
limits:
  - {Url: /window, rules: [{actor: account, unit: hour, rpu: 3, algo: W}]}
  - {Url: /sliding, rules: [{actor: account, unit: hour, rpu: 5, algo: SW}]}
  - {Url: /bucket, rules: [{actor: account, unit: day, rpu: 1, burst: 7, algo: TB}]}
  - Url: /two
    rules:
      - {actor: all, unit: hour, rpu: 8, algo: W}
      - {actor: account, unit: hour, rpu: 6, algo: W, scope: local}
";

/// Envoy's default format, and the account.
const FORMAT: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% \
                      %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \
                      \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \
                      \"%UPSTREAM_HOST%\" \"%REQ(X-ACCOUNT-ID)%\"\n";

const PATHS: [&str; 4] = ["/window", "/sliding", "/bucket", "/two"];
const REQUESTS: usize = 12;

/// The number of requests of each path that the command refuses.
fn replayed(log: &[String]) -> BTreeMap<String, usize> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| folder.join(format!("replay-{}-{name}", std::process::id()));
    fs::write(path("rules.yaml"), RULES).unwrap();
    fs::write(path("access.log"), log.join("\n")).unwrap();
    let words = ["diana", "replay"].map(Into::into).into_iter();
    let files = [path("rules.yaml"), path("access.log")].map(Into::into).into_iter();
    let options = ["--set", "header:x-account-id=14", "--decisions"].map(Into::into).into_iter();
    diana_cli::run(words.chain(files).chain(options).chain([path("decisions").into()]));
    let mut refused = BTreeMap::new();
    for line in fs::read_to_string(path("decisions")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let count = refused.entry(line["path"].as_str().unwrap().to_owned()).or_default();
        *count += usize::from(line["decision"] == "refused");
    }
    refused
}

#[test]
fn replay_decides_as_envoy_did() {
    let envoy = Gateway::with(RULES).logging(FORMAT).start_shared();
    let mut refused = BTreeMap::new();
    for path in PATHS {
        let statuses = envoy.statuses(REQUESTS, path, &[("x-account-id", "a")]);
        let count = statuses.iter().filter(|status| **status == 503).count();
        refused.insert(path.to_owned(), count);
    }
    let log = eventually("all lines of the access log", || {
        Some(envoy.access_log()).filter(|lines| lines.len() == PATHS.len() * REQUESTS)
    });
    let counts: Vec<usize> = PATHS.map(|path| refused[path]).into();
    assert_eq!(counts, [9, 7, 5, 6]);
    assert_eq!(replayed(&log), refused);
    envoy.assert_unharmed();
}
