//! Polling: the calls of workers, and the delay of a change.

use diana_policy::port::{Call, Destination};
use diana_worker::remote::{Poller, READ_INTERVAL};
use fastrand::Rng;
use kit::fake::FakeEnvironment;
use std::collections::HashMap;

use super::{EVERY, Gateway, LATENCY, LOCAL, MILLISECOND, SECOND, Server, TIMEOUT, document};
use kit::seed;

#[test]
fn one_worker_polls_and_all_apply() {
    let mut gateway = Gateway::serving("a");
    gateway.run(LATENCY + READ_INTERVAL + 2 * MILLISECOND);
    assert_eq!(gateway.rules(), ["a"; 4]);
    assert_eq!((gateway.calls(), gateway.count("fetched"), gateway.count("applied")), (1, 1, 4));
    let lines = gateway.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("`server`") && lines[0].contains("is now active"), "{lines:?}");
    gateway.run(10 * EVERY);
    assert_eq!((gateway.calls(), gateway.count("fetched"), gateway.count("applied")), (11, 11, 4));
    assert_eq!(gateway.workers.iter().filter(|worker| !worker.sent.is_empty()).count(), 1);
    assert_eq!(gateway.lines(), Vec::<String>::new(), "an unchanged document is no news");
    let in_force: Vec<i64> = gateway.workers.iter().map(|worker| worker.in_force).collect();
    assert_eq!(in_force, [1; 4]);
    assert!(gateway.workers.iter().all(|worker| worker.poller.retire(&gateway.data) == -1));
}

#[test]
fn change_arrives_within_the_interval_and_a_second() {
    let mut random = Rng::with_seed(seed::next());
    let mut gateway = Gateway::serving("r0");
    gateway.run(SECOND);
    for number in 1..60 {
        gateway.run(random.u64(0..2 * EVERY));
        let name = format!("r{number}");
        gateway.serve(&name);
        gateway.run(EVERY + SECOND);
        assert_eq!(gateway.rules(), vec![name; 4]);
    }
    assert_eq!(gateway.count("applied"), 60 * 4, "each document once in each worker");
    let seconds = (gateway.now / SECOND - 1_000) as usize;
    assert!(gateway.calls() <= seconds / 10 + 1, "{} calls in {seconds} s", gateway.calls());
}

#[test]
fn request_is_sent_as_configured() {
    let config = r#"
limits: []
remote:
  cluster: etcd
  authority: config.example.com
  path: /v3/kv/range
  method: POST
  headers: {accept: application/json, authorization: {env: TOKEN}}
  body: '{"key": "eA=="}'
  timeout: 250ms
"#;
    let mut gateway = Gateway::new(1, config, Server::IsSilent);
    gateway.run(SECOND / 10);
    let header = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let headers = [
        (":method", "POST"),
        (":path", "/v3/kv/range"),
        (":authority", "config.example.com"),
        ("accept", "application/json"),
        ("authorization", "secret"),
        ("x-diana-gateway", "pod-1"),
        ("x-diana-document", "-"),
    ];
    let wanted = Call {
        destination: Destination::Cluster("etcd".into()),
        headers: headers.map(header).into(),
        body: br#"{"key": "eA=="}"#.into(),
        timeout: 250_000,
    };
    assert_eq!(*gateway.workers[0].callout.sent.borrow(), [wanted]);
}

#[test]
fn header_without_its_variable_is_a_problem() {
    let config = format!("{}, headers: {{x-a: {{env: NAME}}}}}}", LOCAL.trim_end_matches('}'));
    for (value, is_good) in
        [(None, false), (Some("a\nb"), false), (Some(""), false), (Some("a b"), true)]
    {
        let environment = value.map(|value: &str| ("NAME".to_owned(), value.to_owned()));
        let environment = FakeEnvironment(HashMap::from_iter(environment));
        let policy = crate::config::policy(&config);
        let own = policy.own();
        let poller = Poller::new(policy.remote.unwrap(), own, "shop", &environment, (1, 1));
        assert_eq!(poller.is_ok(), is_good, "{value:?}");
        if let Some(problem) = poller.err() {
            assert!(problem.starts_with("remote.headers.x-a.env: "), "{problem}");
        }
    }
}

#[test]
fn failed_call_is_retried_soon() {
    let mut gateway = Gateway::new(3, LOCAL, Server::CannotBeCalled);
    gateway.run(10 * SECOND);
    assert_eq!((gateway.rules(), gateway.calls()), (vec!["own"; 3], 0));
    assert!((39..=41).contains(&gateway.count("failed")), "{}", gateway.count("failed"));
    let lines = gateway.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].ends_with("no cluster; the gateway's own rules stay active"), "{lines:?}");
    gateway.serve("a");
    gateway.run(2 * SECOND);
    assert_eq!(gateway.rules(), ["a"; 3]);
}

#[test]
fn call_without_a_response_times_out() {
    let mut gateway = Gateway::new(2, LOCAL, Server::IsLost);
    gateway.run(TIMEOUT + SECOND);
    assert_eq!((gateway.calls(), gateway.count("failed")), (1, 0));
    gateway.run(SECOND / 2);
    assert_eq!((gateway.calls(), gateway.count("failed")), (2, 1));
    // The response arrives too late.
    let leader = gateway.leader();
    let Gateway { now, data, workers, .. } = &mut gateway;
    workers[leader].answer(Some(200), &document("late"), *now, data);
    assert_eq!(gateway.rules(), ["own"; 2]);
    gateway.serve("a");
    gateway.run(EVERY);
    assert_eq!(gateway.rules(), ["a"; 2]);
}
