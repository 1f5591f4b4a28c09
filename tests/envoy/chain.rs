//! Two filters of the module in one chain: by address before the login, by account after it.

use std::io::Write;

use crate::harness::{Envoy, Gateway, Upstream, eventually};

/// Rules by one actor, with names that begin with `name`: a limit, a hot key, and a rule in shadow.
fn rules(name: &str, actor: &str, limit: u32) -> Gateway {
    Gateway::with(&format!(
        "mark: x-limited
accepted: {{headers: true, filter_state: true}}
response: {{fields: x-ratelimit}}
limits:
- Url: /
  rules:
  - {{name: {name}, actor: {actor}, unit: hour, rpu: {limit}, algo: W, scope: local,
     hot: {{over: 1, per: 1h, header: x-hot-key}}}}
  - {{name: {name}-shadow, actor: all, unit: hour, rpu: 0, scope: local, shadow: true}}
- Url: /{name}
  rules: [{{name: {name}-never, actor: all, unit: hour, rpu: 0, scope: local}}]
actors: {{address: [{{client_address: {{}}}}]}}"
    ))
}

/// Marks that a client forges.
const FORGED: [(&str, &str); 4] =
    [("x-account-id", "ann"), ("x-hot-key", "forged"), ("x-limited", "a"), ("x-limited", "b")];

fn values<'a>(headers: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    headers.iter().filter(|(found, _)| found == name).map(|(_, value)| &**value).collect()
}

/// The marks of the last request that the upstream received.
fn marks(upstream: &Upstream) -> [Vec<String>; 2] {
    let last = upstream.arrivals().pop().unwrap();
    ["x-hot-key", "x-limited"]
        .map(|name| values(&last.headers, name).into_iter().map(str::to_owned).collect())
}

/// The last of `count` lines of the access log.
fn log_line(envoy: &Envoy, count: usize) -> String {
    let lines = eventually("the lines of the access log", || {
        Some(envoy.access_log()).filter(|lines| lines.len() == count)
    });
    lines.into_iter().next_back().unwrap()
}

#[test]
fn later_filter_keeps_marks_log_and_limits_of_the_earlier_one() {
    for shares_vm in [true, false] {
        let upstream = Upstream::start();
        let earlier = rules("one", "address", 100_000);
        let later = rules("two", "account", 50_000).behind_module(&earlier, shares_vm);
        let envoy = later.before(&upstream).start_shared();
        let first = envoy.get("/", &FORGED);
        assert_eq!(first.status, 200);
        assert_eq!(marks(&upstream), [vec![], vec!["one-shadow".to_owned(), "two-shadow".into()]]);
        // The later filter sees the response first.
        assert_eq!(values(&first.headers, "x-ratelimit-limit"), ["50000"]);
        assert_eq!(values(&first.headers, "x-ratelimit-remaining"), ["49999"]);
        let line = log_line(&envoy, 1);
        let (one, two) = line.split_once("; ").expect("two entries");
        assert!(
            one.contains("shadow rule=one-shadow ") && two.starts_with("shadow rule=two-shadow ")
        );

        eventually("both keys to be hot", || {
            assert_eq!(envoy.get("/", &FORGED).status, 200);
            (marks(&upstream)[0] == ["one", "two"]).then_some(())
        });

        let before = upstream.arrivals().len();
        let refused = envoy.get("/two", &FORGED);
        assert_eq!(refused.status, 503);
        assert_eq!(values(&refused.headers, "x-ratelimit-limit"), ["0"]);
        let line = log_line(&envoy, before + 1);
        assert!(line.contains(" shadow rule=one-shadow "), "{line}");
        assert!(line.contains("; refused rule=two-never "), "{line}");
        // A later filter does not see a request that an earlier one refuses.
        let refused = envoy.get("/one", &FORGED);
        assert_eq!(values(&refused.headers, "x-ratelimit-limit"), ["0"]);
        let line = log_line(&envoy, before + 2);
        assert!(line.contains(" refused rule=one-never ") && !line.contains(';'), "{line}");
        envoy.assert_unharmed();
    }
}

/// The earlier filter did not set it.
#[test]
fn later_filter_removes_marks_that_the_earlier_one_does_not_know() {
    let upstream = Upstream::start();
    let earlier = Gateway::with("mark: x-other\nlimits: []");
    let later = rules("two", "account", 9).behind_module(&earlier, false);
    let envoy = later.before(&upstream).start_shared();
    envoy.get("/", &FORGED);
    assert_eq!(marks(&upstream), [vec![], vec!["two-shadow".to_owned()]]);
}

#[test]
fn limits_of_the_upstream_stay_alone() {
    let upstream = Upstream::answering(|_, to| {
        to.write_all(b"HTTP/1.1 200 OK\r\nx-ratelimit-remaining: 7\r\ncontent-length: 0\r\n\r\n")
    });
    let envoy = rules("r", "account", 9).before(&upstream).start_shared();
    let answer = envoy.get("/", &FORGED);
    assert_eq!(values(&answer.headers, "x-ratelimit-remaining"), ["7"]);
    assert_eq!(answer.header("x-ratelimit-limit"), None);
}
