//! A worker's calls to Redis, apart from those of waiting requests.

use super::{FakeHost, MILLISECOND, Thread};
use crate::support::redis::decides;
use diana_policy::time::SECOND;
use kit::fake::{FakeEnvironment, SECRET};

const FLEET: &str = "redis: {cluster: redis, timeout: 20ms}\nlimits: [{Url: /, rules: [{name: r, actor: account, unit: \
                     second, rpu: 100000, algo: W, scope: global}]}]";

/// Redis admits a request, and leases this number of permits.
fn lease_reply(block: i64) -> Vec<u8> {
    decides(&[0, 0, 0, 90_000, 1, 7, block, 3, 0, 100_000, 0])
}

/// A request waits for a reply, which arrives within two milliseconds.
fn ask(thread: &mut Thread, body: &[u8]) {
    assert!(!thread.request(1, 10, "ann"));
    answer(thread, body);
}

fn answer(thread: &mut Thread, body: &[u8]) {
    let before = thread.host.calls.borrow().len();
    thread.pass(2 * MILLISECOND);
    assert_eq!(thread.host.calls.borrow().len(), before + 1);
    let (root, _) = thread.host.calls.borrow()[before];
    thread.answer(root, before as u32, Some(200), body);
}

fn soon(thread: &Thread) -> bool {
    let soon = thread.host.now.get().mono + 2 * MILLISECOND;
    thread.host.next().is_some_and(|(fires, _)| fires <= soon)
}

/// A request that passes renews the lease before it is used up.
#[test]
fn lease_renewal_is_sent_at_once() {
    let mut thread = Thread::with(FLEET);
    (0..25).for_each(|stream| _ = thread.request(1, 20 + stream, "ann"));
    let mut body = [0, 0, 0, 90_000, 1, 7, 0, 3, 0, 0, 0].repeat(25);
    // The eighth request makes its caller busy, so that it asks for a block.
    body[7 * 11..8 * 11].copy_from_slice(&[0, 0, 0, 90_000, 1, 7, 40, 3, 0, 100_000, 0]);
    answer(&mut thread, &decides(&body));
    thread.pass(MILLISECOND);
    assert!(!soon(&thread), "there is nothing to ask");
    let (mut spent, before) = (0, thread.host.calls.borrow().len());
    while thread.host.calls.borrow().len() == before {
        assert!(thread.request(1, 60, "ann"), "it has a block");
        thread.pass(MILLISECOND / 2);
        spent += 1;
    }
    assert!((25..40).contains(&spent), "{spent} of 40");
}

/// Frequent replies do not delay reports.
#[test]
fn replies_do_not_delay_maintenance() {
    let mut thread = Thread::with(FLEET);
    for caller in 0..50 {
        assert!(!thread.request(1, 10, &caller.to_string()));
        answer(&mut thread, &lease_reply(0));
        thread.pass(MILLISECOND);
    }
    assert!(thread.host.count_of("diana.ns.rule.r.allowed") > 20, "{:?}", thread.host.counts);
    thread.pass(SECOND);
    let counts = thread.host.counts.borrow();
    let of = |what: &str| counts.get(&format!("diana.ns.fleet.{what}")).copied();
    assert_eq!((of("asks"), of("foreign")), (Some(50), None));
}

/// A worker whose gateway has lost Redis, as another worker detected a second ago.
fn cut_off() -> Thread {
    // Its heartbeats are due at half seconds.
    let random = (SECOND / 2).into();
    let mut other = Thread::of(FakeHost { random, ..FakeHost::default() });
    assert!(other.configure(1, FLEET));
    assert!(!other.request(1, 10, "ann"));
    other.pass(2 * MILLISECOND);
    let host = FakeHost { data: other.host.data.clone(), random: 5, ..FakeHost::default() };
    let mut thread = Thread::of(host);
    assert!(thread.configure(1, FLEET));
    thread.tick(1);
    assert!(!soon(&thread), "there is nothing to tell");
    other.lose(1, 0);
    thread.host.set(other.host.now.get().mono + SECOND);
    thread
}

/// The metrics report it without a request.
#[test]
fn failure_seen_by_another_worker_is_reported() {
    let mut thread = cut_off();
    let away = thread.roots[&1].instance().unwrap().unavailable_shards();
    thread.tick(1);
    assert_eq!((away, thread.roots[&1].instance().unwrap().unavailable_shards()), (0, 1));
    let due = thread.host.next().unwrap().0 - thread.host.now.get().mono;
    assert!(due <= SECOND / 10, "the next heartbeat would be later: {due}");
}

/// A rule that needs Redis causes a probe as soon as one is due.
#[test]
fn request_that_needs_redis_causes_a_probe() {
    let mut thread = cut_off();
    thread.tick(1);
    assert!(!soon(&thread), "nobody needs it");
    let before = thread.host.calls.borrow().len();
    assert!(thread.request(1, 11, "ann"), "by the gateway's part of the limit");
    assert!(soon(&thread));
    thread.pass(2 * MILLISECOND);
    assert_eq!(thread.host.calls.borrow().len(), before + 1);
}

/// There are no probes for rules that have ended.
#[test]
fn ended_instance_needs_no_redis() {
    let mut thread = Thread::with(FLEET);
    assert!(!thread.request(1, 10, "ann"));
    thread.pass(2 * MILLISECOND);
    thread.lose(1, 0);
    thread.pass(SECOND);
    let probes = thread.host.calls.borrow().len();
    assert!(probes > 1, "it is probed");
    assert!(thread.configure(2, &FLEET.replace("scope: global", "scope: gateway")));
    thread.pass(4 * SECOND);
    thread.host.calls.borrow_mut().clear();
    thread.pass(10 * SECOND);
    assert_eq!(thread.host.calls.borrow().len(), 0);
    assert_eq!(thread.host.next(), None);
}

/// No request waits for it, and the permits become available to others.
#[test]
fn usage_is_settled_soon_after_the_stream() {
    let rule = FLEET.replace(
        "scope: global",
        "scope: global, cost: {response: {header: x-used}, reserve: 5, max: 9}",
    );
    let mut thread = Thread::with(&rule);
    ask(&mut thread, &lease_reply(0));
    // Between two heartbeats.
    thread.pass(SECOND / 2);
    _ = thread.responds(10);
    assert!(!soon(&thread));
    thread.leave(1, 10);
    assert!(soon(&thread));
}

/// A pod starts and serves while the Secret with the password is missing.
#[test]
fn missing_credentials_are_logged_once_and_none_are_sent() {
    let text = |more: &str| FLEET.replace("timeout: 20ms", &format!("timeout: 20ms, {more}"));
    let password = ("PASSWORD".to_owned(), "secret".to_owned());
    for (more, is_set, missing) in [
        ("password_env: PASSWORD", true, None),
        ("password_env: PASSWORD", false, Some("redis.password_env: `PASSWORD` is not")),
        (
            "username_env: NAME, password_env: PASSWORD",
            true,
            Some("redis.username_env: `NAME` is not"),
        ),
        (
            "username_env: NAME, password_env: PASSWORD",
            false,
            Some("redis.username_env: `NAME`, redis.password_env: `PASSWORD` is not"),
        ),
    ] {
        let environment =
            || FakeEnvironment([password.clone()].into_iter().filter(|_| is_set).collect());
        let mut thread = Thread::of(FakeHost { environment: environment(), ..FakeHost::default() });
        let data = thread.host.data.clone();
        let mut second =
            Thread::of(FakeHost { environment: environment(), data, ..FakeHost::default() });
        assert!(thread.configure(1, &text(more)) && second.configure(1, &text(more)));
        let lines = thread.host.lines();
        let logged = lines.iter().filter(|line| line.contains("environment of the VM"));
        let logged: Vec<bool> = logged.map(|line| line.starts_with(missing.unwrap())).collect();
        assert_eq!(logged, missing.map_or(vec![], |_| vec![true]), "{lines:?}");
        assert!(!second.host.lines().iter().any(|line| line.contains("environment of the VM")));
        assert!(!thread.request(1, 10, "ann"));
        thread.pass(2 * MILLISECOND);
        let (_, call) = thread.host.calls.borrow()[0].clone();
        let sent = String::from_utf8_lossy(&call.body).contains("AUTH");
        assert_eq!(sent, missing.is_none(), "{more}");
        // Redis requires a login.
        thread.answer(1, 0, Some(200), b"-NOAUTH Authentication required.\r\n");
        thread.pass(50 * MILLISECOND);
        assert_eq!(*thread.host.resumed.borrow(), [10], "by the share of the gateway");
    }
}

/// The commands that log in, in the first call of a worker with this environment.
fn login(more: &str, environment: &[(&str, &str)]) -> Option<String> {
    let variables = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let environment = FakeEnvironment(variables.collect());
    let mut thread = Thread::of(FakeHost { environment, ..FakeHost::default() });
    let text = FLEET.replace("timeout: 20ms", &format!("timeout: 20ms, {more}"));
    assert!(thread.configure(1, &text), "{:?}", thread.host.lines());
    assert!(!thread.request(1, 10, "ann"));
    thread.pass(2 * MILLISECOND);
    let (_, call) = thread.host.calls.borrow()[0].clone();
    let text = String::from_utf8_lossy(&call.body).into_owned();
    let words: Vec<&str> = text.split("\r\n").collect();
    let begin = words.iter().position(|word| *word == "AUTH")?;
    let words = words[begin + 1..].iter().take_while(|word| !word.starts_with('*'));
    Some(words.filter(|word| !word.starts_with('$')).copied().collect::<Vec<_>>().join(" "))
}

/// One document for hosts with secrets and without.
#[test]
fn secret_of_the_host_has_precedence_where_there_are_secrets() {
    const BOTH: &str = "username_env: NAME, password_env: PASSWORD, password_secret: {name: redis}";
    let variables = [("NAME", "diana"), ("PASSWORD", "sesame")];
    assert_eq!(login(BOTH, &variables).as_deref(), Some("diana sesame"));
    let with = |secret| [variables[0], variables[1], (SECRET, secret)];
    assert_eq!(login(BOTH, &with("simsim")).as_deref(), Some("diana simsim"));
    assert_eq!(login(BOTH, &with("")), None, "the host has not received it");
    assert_eq!(login("password_env: PASSWORD", &with("simsim")).as_deref(), Some("sesame"));
}
