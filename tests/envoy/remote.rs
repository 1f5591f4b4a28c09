//! Rules from a configuration server.

mod open_requests;
mod tags;

use std::time::Duration;

use diana_worker::remote::version_of;

use crate::harness::{
    ConfigServer, Envoy, Gateway, NODE, ServerResponse, assert_no_trap, eventually,
};

/// A document of this name: one rule that counts, and one that identifies the current document.
pub fn document(name: &str, rpu: u32) -> String {
    format!(
        "
limits:
  - Url: /
    rules: [{{name: counted, actor: account, unit: day, rpu: {rpu}, algo: W}}]
  - Url: /closed
    rules: [{{name: {name}, actor: all, unit: hour, rpu: 0, scope: local}}]
"
    )
}

/// A gateway with its own rules and a configuration server that it polls every second.
pub fn gateway(port: u16) -> Gateway {
    let own = document("own", 10);
    let remote = "remote: {cluster: centre, path: /rules.yaml, every: 1s, timeout: 900ms}";
    Gateway::with(&format!("{own}{remote}")).cluster("centre", port)
}

/// The document that decided about this request.
pub fn in_force(envoy: &Envoy) -> Option<String> {
    let refused = envoy.get("/closed", &[]);
    let policy = refused.header("ratelimit-policy")?;
    policy.split('"').find(|name| !name.is_empty() && *name != "counted").map(str::to_owned)
}

/// Waits until all workers apply these rules. Enough connections to reach all workers.
#[track_caller]
pub fn settles_on(envoy: &Envoy, name: &str) {
    eventually(&format!("the rules of `{name}`"), || {
        (0..20).all(|_| in_force(envoy).as_deref() == Some(name)).then_some(())
    });
}

pub fn metric(envoy: &Envoy, what: &str) -> u64 {
    envoy.metric(&format!("remote.{what}")).unwrap_or(0)
}

/// The log lines about the configuration server.
pub fn lines(envoy: &Envoy) -> Vec<String> {
    let log = envoy.log();
    log.lines().filter(|line| line.contains("remote configuration of")).map(str::to_owned).collect()
}

/// Waits until the last line contains these words.
#[track_caller]
pub fn wait_for_line(envoy: &Envoy, words: &str) {
    eventually(&format!("a line with `{words}`"), || {
        lines(envoy).last().is_some_and(|line| line.contains(words)).then_some(())
    });
}

#[test]
fn rules_arrive_when_the_server_comes_up() {
    let config_server = ConfigServer::start(ServerResponse::Status(500));
    let port = config_server.port;
    drop(config_server);
    let envoy = gateway(port).workers(2).start();
    assert_eq!(in_force(&envoy).as_deref(), Some("own"));
    wait_for_line(&envoy, "status 503, which Envoy also returns if it cannot connect");
    let failed = metric(&envoy, "failed");
    eventually("some more polls", || (metric(&envoy, "failed") >= failed + 2).then_some(()));
    assert_eq!(lines(&envoy).len(), 1, "{:?}", lines(&envoy));
    assert!(lines(&envoy)[0].contains("the gateway's own rules stay active"));
    let config_server = ConfigServer::on(port, ServerResponse::Text(document("up", 10)));
    settles_on(&envoy, "up");
    let requests = config_server.requests();
    assert!(
        requests[0].starts_with("GET /rules.yaml HTTP/1.1\r\nhost: centre\r\n"),
        "{requests:?}"
    );
    drop(config_server);
    wait_for_line(&envoy, "if it cannot connect");
    assert_eq!(in_force(&envoy).as_deref(), Some("up"));
    envoy.assert_unharmed();
}

/// On each Envoy and in both modules.
#[test]
fn polls_name_the_gateway_and_its_document() {
    let good = document("good", 10);
    let config_server = ConfigServer::start(ServerResponse::Text(good.clone()));
    let envoy = gateway(config_server.port).workers(2).start();
    let version = |text: &str| format!("{:016x}", version_of(text.as_bytes()));
    let header = |name: &str| {
        let prefix = format!("{name}: ");
        let latest = config_server.requests().pop()?;
        latest.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
    };
    let names = |wanted: String| {
        eventually(&format!("a poll that names {wanted}"), || {
            (header("x-diana-document").as_ref() == Some(&wanted)).then_some(())
        });
        assert_eq!(header("x-diana-gateway").as_deref(), Some(NODE));
    };
    names(version(&good));
    let bad = "limits: [{Url: /, rules: [{actor: all, unit: dya}]}]";
    config_server.respond_with(ServerResponse::Text(bad.into()));
    names(format!("{} refused={}", version(&good), version(bad)));
    let better = document("better", 10);
    config_server.respond_with(ServerResponse::Text(better.clone()));
    names(version(&better));
    assert!((0..20).all(|_| in_force(&envoy).as_deref() == Some("better")), "in all workers");
    envoy.assert_unharmed();
}

/// On each Envoy and in both modules.
#[test]
fn polls_read_the_number_of_gateways() {
    let shared = document("shared", 10).replace("algo: W", "algo: W, scope: global, share: true");
    let config_server = ConfigServer::start(ServerResponse::Counted(shared.clone(), 3));
    let envoy = gateway(config_server.port).workers(2).start();
    let admitted = |account: &str| {
        let passes = |_: &u64| !envoy.get("/", &[("x-account-id", account)]).refused();
        (0..20).filter(passes).count()
    };
    settles_on(&envoy, "shared");
    assert_eq!(admitted("a"), 4);
    config_server.respond_with(ServerResponse::Counted(shared, 5));
    let mut accounts = 0..;
    eventually("a share of two", || {
        (admitted(&format!("b{}", accounts.next()?)) == 2).then_some(())
    });
    envoy.assert_unharmed();
}

#[test]
fn last_good_rules_survive_bad_responses() {
    let good = ServerResponse::Text(document("good", 10));
    let config_server = ConfigServer::start(good.clone());
    let envoy = gateway(config_server.port).workers(2).start();
    settles_on(&envoy, "good");
    wait_for_line(&envoy, "is now active");
    let mut logged = lines(&envoy).len();
    for (response, words) in [
        (ServerResponse::Status(404), "status 404"),
        (ServerResponse::Late(Duration::from_secs(2), document("late", 1)), "status 504"),
        (ServerResponse::Text(String::new()), "the document is empty"),
        (ServerResponse::Text("#".repeat(2 << 20)), "the response is larger than `max_size`"),
        (ServerResponse::Text("#".repeat(40 << 20)), "the response is far too large"),
        (ServerResponse::Half(document("half", 1)), "the connection was closed early"),
        (ServerResponse::Garbage, "status 502"),
        (
            ServerResponse::Text("limits: [{Url: /, rules: [{actor: all, unit: dya}]}]".into()),
            "is invalid",
        ),
    ] {
        config_server.respond_with(response);
        wait_for_line(&envoy, words);
        let polls = || metric(&envoy, "failed") + metric(&envoy, "rejected");
        let before = polls();
        eventually("two more polls", || (polls() >= before + 2).then_some(()));
        assert_eq!(in_force(&envoy).as_deref(), Some("good"), "{words}");
        // A line per change, not per poll. The message about a huge response depends on timing.
        let new = lines(&envoy).len() - logged;
        assert!(new == 1 || words.contains("far too large"), "{words}: {:#?}", lines(&envoy));
        config_server.respond_with(good.clone());
        wait_for_line(&envoy, "the last problem is solved");
        logged = lines(&envoy).len();
    }
    assert!(envoy.log().contains("limits[0].rules[0].unit: found `dya`"), "{}", envoy.log());
    assert!(metric(&envoy, "rejected") >= 2);
    config_server.respond_with(ServerResponse::Text(document("next", 10)));
    settles_on(&envoy, "next");
    envoy.assert_unharmed();
}

#[test]
fn header_from_the_environment_is_sent() {
    let config_server = ConfigServer::start(ServerResponse::Text(document("there", 10)));
    let own = document("own", 10);
    let remote = "remote: {cluster: centre, authority: config.example.com, path: '/r?raw', \
                  headers: {authorization: {env: DIANA_TOKEN}}}";
    let gateway = Gateway::with(&format!("{own}{remote}")).cluster("centre", config_server.port);
    let envoy = gateway.variable("DIANA_TOKEN", "Bearer abc").start();
    settles_on(&envoy, "there");
    let requests = config_server.requests();
    assert!(
        requests[0].starts_with("GET /r?raw HTTP/1.1\r\nhost: config.example.com\r\n"),
        "{requests:?}"
    );
    assert!(requests[0].contains("\r\nauthorization: Bearer abc\r\n"), "{requests:?}");
    envoy.assert_unharmed();
}

#[test]
fn unknown_cluster_is_logged() {
    let own = document("own", 10);
    let envoy = Gateway::with(&format!("{own}remote: {{cluster: nobody, path: /r}}")).start();
    let words = "Envoy has no such cluster";
    eventually(words, || envoy.log().contains(words).then_some(()));
    assert_eq!(in_force(&envoy).as_deref(), Some("own"));
    let (status, log) = envoy.quit();
    assert!(status.success(), "Envoy ended with {status}:\n{log}");
    assert_no_trap(&log);
}
