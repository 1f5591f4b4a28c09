//! What an operator is told who asks why.

use super::{House, MILLISECOND, Thread};
use crate::fleet::redis::decides;
use diana_core::time::SECOND;
use diana_worker::host::Level;
use kit::fake::{FakeEnvironment, FakeRequest};
use serde_json::{Value, json};

const TOKEN: &str = "a token of 24 characters";

fn house(token: Option<&str>) -> House {
    let variables = token.map(|token| ("DIANA_TOKEN".into(), token.into()));
    let environment = FakeEnvironment(variables.into_iter().collect());
    House { environment, ..House::default() }
}

fn thread(token: Option<&str>, rules: &str) -> Thread {
    let mut thread = Thread::of(house(token));
    let explain = "explain: {header: X-Why, token_env: DIANA_TOKEN}";
    assert!(thread.configure(1, &format!("{explain}\n{rules}")), "{:?}", thread.host.lines());
    thread
}

fn request(path: &str) -> FakeRequest {
    FakeRequest::get(path).header("x-account-id", "ann").header("x-why", TOKEN)
}

/// What the response to a request explains, in a stream of its own.
fn admitted(thread: &mut Thread, request: FakeRequest) -> Value {
    assert!(thread.ask(1, 10, request));
    told(thread, 10).expect("it is explained")
}

fn told(thread: &mut Thread, stream: u32) -> Option<Value> {
    let fields = thread.responds(stream).unwrap_or_default();
    let field = fields.iter().find(|(name, _)| *name == "x-why");
    field.map(|(_, told)| serde_json::from_str(told).unwrap())
}

fn refused(thread: &mut Thread, request: FakeRequest) -> Value {
    assert!(!thread.ask(1, 10, request));
    refusal(thread)
}

fn refusal(thread: &mut Thread) -> Value {
    let refusal = thread.host.refusal.take().expect("it is refused");
    let header = refusal.response.headers.iter().find(|(name, _)| name == "x-why");
    serde_json::from_str(&header.expect("it is explained").1).unwrap()
}

const RULES: &str = "
except: {paths: [/healthz]}
limits:
  - Url: /
    rules: [{name: all, actor: all, unit: minute, rpu: 9, algo: W}]
  - Url: /a
    rules:
      - {name: a, actor: account, unit: minute, rpu: 2, algo: W, scope: local}
      - {name: a-tenant, actor: tenant, unit: minute, rpu: 2, algo: W}
      - {name: a-shadow, actor: account, unit: minute, rpu: 1, algo: W, shadow: true}
      - {name: a-not-ann, actor: account, unit: minute, rpu: 1, except: {headers: {x-account-id: ann}}}
  - {Url: /a, match: {methods: [POST]}, rules: [{name: post, actor: all, unit: minute, rpu: 1}]}
  - {Url: /b, rules: [{name: b, actor: all, unit: minute, rpu: 1}]}
actors: {tenant: [{header: x-tenant}]}
";

#[test]
fn every_rule_says_what_it_decided_or_why_it_did_not() {
    let mut thread = thread(Some(TOKEN), RULES);
    let mut told = admitted(&mut thread, request("/a/1"));
    assert_eq!(*thread.host.taken_off.borrow(), ["x-why"]);
    for record in told.as_array_mut().unwrap() {
        if let Some(key) = record.as_object_mut().unwrap().remove("key") {
            assert_eq!(key.as_str().unwrap().len(), 32);
        }
    }
    let decided = |rule: &str, scope: &str, mode: &str, limit: u64, remaining: u64| {
        json!({"rule": rule, "scope": scope, "mode": mode, "decision": "admitted", "limit": limit,
               "remaining": remaining, "wait": 0})
    };
    let skipped = |rule: &str, why: &str| json!({"rule": rule, "decision": "skipped", "why": why});
    assert_eq!(
        told,
        json!([
            decided("all", "gateway", "enforced", 9, 8),
            decided("a", "local", "enforced", 2, 1),
            decided("a-shadow", "gateway", "shadow", 1, 0),
            skipped("a-tenant", "absent"),
            skipped("a-not-ann", "exempt"),
            skipped("post", "match"),
            skipped("b", "path"),
        ])
    );
    admitted(&mut thread, request("/a/1"));
    let told = refused(&mut thread, request("/a/1"));
    assert_eq!(told.as_array().unwrap().len(), 7);
    assert_eq!((&told[0]["decision"], &told[0]["remaining"]), (&json!("admitted"), &json!(7)));
    assert_eq!((&told[1]["decision"], &told[1]["remaining"]), (&json!("refused"), &json!(0)));
    assert!(told[1]["wait"].as_f64().is_some_and(|wait| (0.0..=60.0).contains(&wait)), "{told}");
    assert_eq!((&told[2]["decision"], &told[2]["mode"]), (&json!("refused"), &json!("shadow")));
    let told = admitted(&mut thread, request("/healthz"));
    let all_exempt = |told: &Value| told.as_array().unwrap().iter().all(|it| it["why"] == "exempt");
    assert!(all_exempt(&told) && told.as_array().unwrap().len() == 7, "{told}");
}

#[test]
fn one_plain_rule_is_explained_too_and_counts_as_ever() {
    let rules = "limits: [{Url: /, rules: [{name: r, actor: account, unit: minute, rpu: 3, algo: W, scope: local}]}]";
    let mut thread = thread(Some(TOKEN), rules);
    assert!(thread.request(1, 20, "ann"));
    assert_eq!(told(&mut thread, 20), None, "nobody asked");
    for remaining in [1, 0] {
        assert_eq!(admitted(&mut thread, request("/"))[0]["remaining"], remaining);
    }
    assert_eq!(refused(&mut thread, request("/"))[0]["decision"], "refused");
    let nobody = FakeRequest::get("/").header("x-why", TOKEN);
    assert_eq!(admitted(&mut thread, nobody)[0]["why"], "absent");
}

/// Held ones, too, and those that wait for Redis; of it is said if it was not asked.
#[test]
fn what_waits_is_explained_when_it_goes_on() {
    let held = "limits: [{Url: /, rules: [{name: r, actor: all, unit: second, rpu: 100, algo: LB, scope: local}]}]";
    let mut held = thread(Some(TOKEN), held);
    assert!(held.ask(1, 9, request("/")) && !held.ask(1, 10, request("/")));
    held.pass(SECOND / 50);
    assert_eq!(*held.host.resumed.borrow(), [10]);
    assert_eq!(told(&mut held, 10).unwrap()[0]["decision"], "held");
    let fleet = "redis: {cluster: redis}\nlimits: [{Url: /, rules: [{name: g, actor: account, unit: day, rpu: 5, \
                 algo: W, scope: global}, {name: l, actor: account, unit: day, rpu: 2, algo: W, scope: local}]}]";
    let mut fleet = thread(Some(TOKEN), fleet);
    for (call, retry) in [(0, 0), (1, 50_000_000)] {
        assert!(!fleet.ask(1, 10 + call, request("/")));
        fleet.pass(2 * MILLISECOND);
        let wait = if retry == 0 { 0 } else { -1 };
        fleet.answer(1, call, Some(200), &decides(&[wait, retry, 0, 4, 1, 0, 0, 0, 0, 0, 0]));
    }
    let first = told(&mut fleet, 10).unwrap();
    assert_eq!((&first[0]["scope"], &first[0]["remaining"]), (&json!("global"), &json!(4)));
    assert_eq!(refusal(&mut fleet)[0]["decision"], "refused");
    fleet.request(1, 12, "bob");
    fleet.pass(2 * MILLISECOND);
    fleet.answer(1, 2, Some(200), &decides(&[0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0]));
    fleet.request(1, 13, "bob");
    fleet.pass(2 * MILLISECOND);
    fleet.answer(1, 3, Some(200), &decides(&[0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0]));
    let bob = FakeRequest::get("/").header("x-account-id", "bob").header("x-why", TOKEN);
    let told = refused(&mut fleet, bob);
    assert_eq!((&told[0]["rule"], &told[0]["decision"]), (&json!("g"), &json!("not asked")));
    assert_eq!((&told[1]["rule"], &told[1]["decision"]), (&json!("l"), &json!("refused")));
}

#[test]
fn whoever_is_banned_is_told_so() {
    let rules = "limits: [{Url: /, rules: [{name: r, actor: account, unit: minute, rpu: 1, algo: W, scope: local, \
                 ban: {after: 1, within: 1m, for: 5m}}, {name: s, actor: all, unit: minute, rpu: 9, scope: local}]}]";
    let mut thread = thread(Some(TOKEN), rules);
    admitted(&mut thread, request("/"));
    refused(&mut thread, request("/"));
    let told = refused(&mut thread, request("/"));
    assert_eq!((&told[0]["rule"], &told[0]["decision"]), (&json!("r"), &json!("banned")));
    assert_eq!(told[1], json!({"rule": "s", "decision": "skipped", "why": "banned"}));
    assert_eq!(told.as_array().unwrap().len(), 2, "{told}");
}

/// Also of a rule that does not know who calls.
#[test]
fn an_exemption_of_an_entry_is_told_of_each_of_its_rules() {
    let rules = "limits: [{Url: /, except: {headers: {x-vip: '1'}}, rules: [{name: r, actor: account, unit: minute, \
                 rpu: 9}, {name: t, actor: tenant, unit: minute, rpu: 9}]}]\nactors: {tenant: [{header: x-tenant}]}";
    let mut thread = thread(Some(TOKEN), rules);
    let mut why = |request| {
        let told = admitted(&mut thread, request);
        let why = |rule: &Value| rule["why"].as_str().unwrap_or("none").to_owned();
        told.as_array().unwrap().iter().map(why).collect::<Vec<_>>()
    };
    assert_eq!(why(request("/")), ["none", "absent"]);
    assert_eq!(why(request("/").header("x-vip", "1")), ["exempt", "exempt"]);
}

#[test]
fn a_header_without_the_token_is_taken_off_and_explains_nothing() {
    let mut thread = thread(Some(TOKEN), RULES);
    let twice = request("/").header("x-why", TOKEN);
    let wrong = ["", "x", "a token of 24 characterz", "a token of 24 characters "];
    let wrong = wrong.iter().map(|token| FakeRequest::get("/").header("x-why", token));
    for (stream, request) in wrong.chain([twice]).enumerate() {
        assert!(thread.ask(1, 10 + stream as u32, request));
        assert_eq!(told(&mut thread, 10 + stream as u32), None);
    }
    assert_eq!(thread.host.taken_off.borrow().len(), 5);
}

#[test]
fn ten_wrong_tokens_a_second_are_read() {
    let rules = "limits: []";
    let mut thread = thread(Some(TOKEN), rules);
    for _ in 0..10 {
        assert!(thread.ask(1, 10, FakeRequest::get("/").header("x-why", "wrong, and long enough")));
    }
    assert!(thread.ask(1, 10, request("/")));
    assert_eq!(told(&mut thread, 10), None, "unread");
    thread.pass(SECOND);
    assert_eq!(admitted(&mut thread, request("/")), json!([]));
}

#[test]
fn a_token_that_is_not_there_or_could_be_guessed_is_nobodys() {
    for (token, why) in [(None, "not in the environment"), (Some("fifteen letters"), "shorter")] {
        let mut thread = thread(token, "limits: []");
        let log = thread.host.log.take();
        let errors: Vec<&String> =
            log.iter().filter(|(level, _)| *level == Level::Error).map(|(_, line)| line).collect();
        assert!(errors.len() == 1 && errors[0].contains(why), "{errors:?}");
        let given = token.unwrap_or_default();
        assert!(thread.ask(1, 10, FakeRequest::get("/").header("x-why", given)));
        assert_eq!(told(&mut thread, 10), None);
        assert_eq!(*thread.host.taken_off.borrow(), ["x-why"]);
    }
}

#[test]
fn an_explanation_has_at_most_eight_kibibytes() {
    let rule =
        |number| format!("{{name: rule-{number}, actor: all, unit: day, rpu: 9, scope: local}}, ");
    let rules: String = (0..300).map(rule).collect();
    let mut thread = thread(Some(TOKEN), &format!("limits: [{{Url: /, rules: [{rules}]}}]"));
    let told = admitted(&mut thread, request("/"));
    let records = told.as_array().unwrap();
    let (last, rest) = records.split_last().unwrap();
    assert_eq!(last["more"].as_u64().unwrap() as usize + rest.len(), 300);
    let size = told.to_string().len();
    assert!((7 << 10..=8 << 10).contains(&size), "{size}");
}
