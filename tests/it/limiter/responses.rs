//! Configured responses to callers.

use std::collections::BTreeSet;

use diana_limiter::Refusal;
use diana_policy::time::SECOND;
use kit::fake::FakeRequest;

use super::{Gate, from};

/// The refusal of the only rule `r`, with two requests per hour, under this response.
pub fn refusal(response: &str) -> Refusal {
    refusal_of("algo: W, rpu: 2", response)
}

fn refusal_of(rule: &str, response: &str) -> Refusal {
    let mut gate = Gate::new(&format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: hour, scope: local, {rule}}}]}}]
response: {response}"
    ));
    (0..9).for_each(|_| _ = gate.admits(&from("ann")));
    gate.refusal(&from("ann"))
}

#[test]
fn body_is_rendered_from_its_pieces() {
    let refusal = refusal(
        r#"{body: '{"rule": "{rule}", "in": {retry_after}, "of": {limit}, "left": {remaining}, "id": "{id}", "{rules}{": 1}'}"#,
    );
    assert!(refusal.contains_id());
    let body = |id: &[u8]| refusal.body(id).to_string();
    let expected = |id: &str| {
        format!(
            r#"{{"rule": "r", "in": 2760, "of": 2, "left": 0, "id": "{id}", "{{rules}}{{": 1}}"#
        )
    };
    assert_eq!(body(b"a-1_B.2"), expected("a-1_B.2"));
    assert_eq!(body("x".repeat(128).as_bytes()), expected(&"x".repeat(128)));
    for id in [&b""[..], b"a b", b"a\"b", b"a\r\nb: c", b"a,b", b"\xff", &[b'x'; 129], b"{rule}"] {
        assert_eq!(body(id), expected(""), "{id:?}");
    }
    assert_eq!(refusal.content_type(), "text/plain");
}

/// Caches store responses with status 200, and many of those with another one that a rule may have.
#[test]
fn caches_store_no_refusal() {
    let cached = |response: &str| {
        let refusal = refusal(response);
        let headers = refusal.reply(String::new(), &from("ann")).headers;
        let all = headers.iter().filter(|(name, _)| *name == "cache-control");
        all.map(|(_, value)| value.to_owned()).collect::<Vec<_>>()
    };
    for response in [
        "{}",
        "{status: 404, body: gone}",
        "{problem: true}",
        "{fields: x-ratelimit, headers: {x-cache-control: public, pragma: a}}",
    ] {
        assert_eq!(cached(response), ["no-store"], "{response}");
    }
    for (name, value) in [("cache-control", "private, max-age=1"), ("Cache-CONTROL", "no-cache")] {
        assert_eq!(cached(&format!("{{headers: {{{name}: '{value}'}}}}")), [value]);
    }
    let mut gate = Gate::cut_off(
        "redis: {cluster: redis, on_failure: deny}\n\
         limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 9, scope: global}]}]",
    );
    let unavailable = gate.refusal(&from("ann"));
    assert!(unavailable.is_unavailable());
    assert_eq!(unavailable.headers().get("cache-control"), Some("no-store"));
}

/// The first rule refuses every request; the others only distinguish its callers.
#[test]
fn jitter_follows_the_finest_caller_of_any_rule() {
    let device = "{actor: device, unit: day, rpu: 9, algo: W, scope: local}";
    for (refusing, more) in [
        ("actor: all, unit: day, rpu: 0", device),
        ("actor: all, in_flight: 1", device),
        (
            "actor: all, unit: day, rpu: 0",
            "{actor: device, in_flight: 9, scope: local, shadow: true}",
        ),
        ("actor: account, absent: share, unit: day, rpu: 0", device),
        ("actor: account, absent: deny, unit: day, rpu: 9", device),
        ("actor: account, unit: day, rpu: 0", device),
        (
            "actor: account, unit: day, rpu: 0",
            "{actor: [account, device], unit: day, rpu: 9, scope: local}",
        ),
        ("actor: account, unit: day, rpu: 0, ban: {after: 1, within: 1h, for: 10s}", device),
        ("actor: device, unit: day, rpu: 0", "{actor: all, unit: day, rpu: 9, scope: local}"),
    ] {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{{refusing}, scope: local}}, {more}]}}]
response: {{jitter: 100s}}"
        ));
        let request = |device: u32| {
            let request = FakeRequest::get("/").header("x-device-id", device.to_string());
            let has_account = refusing.contains("account") && !refusing.contains("absent");
            if has_account { request.header("x-account-id", "one") } else { request }
        };
        // It holds the only slot, or is the refusal that bans.
        let _open = gate.decide(&request(1000));
        let mut jitter = |device: u32| {
            let refusal = gate.refusal(&request(device));
            assert!(!refusal.jitter.needs_address(), "{refusing}; {more}");
            refusal.jitter.ticks() / SECOND
        };
        let all: Vec<u64> = (0..300).map(&mut jitter).collect();
        let distinct: BTreeSet<u64> = all.iter().copied().collect();
        assert!(distinct.len() > 80, "{refusing}; {more}: {distinct:?}");
        let again: Vec<u64> = (0..300).map(jitter).collect();
        assert_eq!(again, all, "{refusing}; {more}");
    }
}

#[test]
fn jitter_without_a_known_caller_needs_the_address() {
    for (refusing, jitter, needs) in [
        ("actor: all, unit: day, rpu: 0", "1s", true),
        ("actor: account, absent: share, unit: day, rpu: 0", "1s", true),
        ("actor: account, absent: deny, unit: day, rpu: 9", "1s", true),
        ("actor: all, unit: day, rpu: 0", "0s", false),
    ] {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{{refusing}, scope: local}}]}}]
response: {{jitter: {jitter}}}"
        ));
        let refusal = gate.refusal(&FakeRequest::get("/").from("192.0.2.1:1"));
        assert_eq!(refusal.jitter.needs_address(), needs, "{refusing}, {jitter}");
    }
}

#[test]
fn jitter_is_constant_for_a_caller_and_a_second() {
    let gate = |jitter: &str| {
        Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{actor: account, unit: day, rpu: 0, algo: W, scope: local,
               ban: {{after: 1, within: 1h, for: 100s}}}}]}}]
response: {{jitter: {jitter}, body: '{{retry_after}}'}}"
        ))
    };
    let delay = |gate: &mut Gate, account: &str| {
        let refusal = gate.refusal(&from(account));
        let header = refusal.headers().get("retry-after").unwrap().to_owned();
        assert_eq!(*refusal.body(b""), *header);
        header.parse::<u64>().unwrap()
    };
    let (mut plain, mut jittered) = (gate("0"), gate("20s"));
    let mut seen = BTreeSet::new();
    for caller in 0..200 {
        let account = format!("a{caller}");
        // The rule refuses the first request permanently, and the ban refuses the following ones.
        assert!(!plain.admits(&from(&account)) && !jittered.admits(&from(&account)));
        assert_eq!(delay(&mut plain, &account), 100);
        let first = delay(&mut jittered, &account);
        assert_eq!(delay(&mut jittered, &account), first, "the same second");
        assert!((100..=120).contains(&first), "{first}");
        seen.insert(first);
    }
    assert!(seen.len() > 15, "{seen:?}");
    let later: BTreeSet<u64> = (1..20)
        .map(|seconds| {
            jittered.wait(1_000_000);
            delay(&mut jittered, "a7") + seconds
        })
        .collect();
    assert!(later.len() > 5 && later.iter().all(|delay| (100..=120).contains(delay)), "{later:?}");
}

/// The delays of a refusal in seconds, by where a client finds them: `retry-after`, the body, the
/// pushback of gRPC rounded up, and the reset of the fields.
fn delays(refusal: &Refusal) -> [u64; 4] {
    let headers = refusal.headers();
    let text = |name: &str| headers.get(name).unwrap_or_default().to_owned();
    let call = from("ann").header("content-type", "application/grpc");
    let reply = refusal.reply(String::new(), &FakeRequest { method: Some("POST".into()), ..call });
    let pushback = reply.headers.get("grpc-retry-pushback-ms").unwrap();
    let t = text("ratelimit").rsplit(";t=").next().unwrap_or_default().to_owned();
    let resets = [t, text("x-ratelimit-reset"), text("ratelimit-reset")];
    let reset: u64 = resets.iter().find_map(|reset| reset.parse().ok()).unwrap();
    [
        text("retry-after").parse().unwrap(),
        refusal.body(b"").parse().unwrap(),
        pushback.parse::<u64>().unwrap().div_ceil(1000),
        reset,
    ]
}

#[test]
fn delays_of_a_refusal_agree_for_its_caller() {
    for rule in [
        "rpu: 1, unit: hour, algo: W",
        "rpu: 2, unit: hour, algo: SW",
        "rpu: 1, unit: minute",
        "in_flight: 1",
        "rpu: 1, unit: hour, algo: W, cost: {response: {header: x}, max: 1}",
        "rpu: 1, unit: hour, ban: {after: 1, within: 1h, for: 100s}",
    ] {
        for fields in ["ietf", "x-ratelimit", "legacy", "x-ratelimit, reset: unix"] {
            let mut distinct = BTreeSet::new();
            for (jitter, caller) in (0..40).map(|caller| ("1h", caller)).chain([("0", 0)]) {
                let mut gate = Gate::new(&format!(
                    "limits: [{{Url: /, rules: [{{actor: account, scope: local, {rule}}}]}}]
response: {{jitter: {jitter}, body: '{{retry_after}}', fields: {fields}}}"
                ));
                let request = from(&format!("a{caller}"));
                // These stay open.
                let _open: Vec<_> = (0..3).map(|_| gate.decide(&request)).collect();
                let refusal = gate.refusal(&request);
                let mut delays = delays(&refusal);
                if fields.contains("unix") {
                    delays[3] -= refusal.wall / SECOND;
                }
                assert_eq!(delays, [delays[0]; 4], "{rule}; {fields}; {jitter}");
                distinct.insert(delays[0]);
            }
            assert!(distinct.len() > 30, "{rule}; {fields}: {distinct:?}");
        }
    }
}

/// A rule that would admit the request is no reason for its refusal.
#[test]
fn jitter_leaves_the_reset_of_rules_that_admit() {
    let fields = |jitter: &str| {
        let mut gate = Gate::new(&format!(
            "limits: [{{Url: /, rules: [{{name: b, actor: all, unit: day, rpu: 9, algo: W, scope: local}},
              {{name: r, actor: account, unit: hour, rpu: 1, algo: W, scope: local}}]}}]
response: {{jitter: {jitter}}}"
        ));
        assert!(gate.admits(&from("ann")));
        gate.refusal(&from("ann")).headers().get("ratelimit").unwrap().to_owned()
    };
    let (plain, jittered) = (fields("0"), fields("1h"));
    let first = |fields: &str| fields.split(',').next().unwrap().to_owned();
    assert_eq!(first(&plain), first(&jittered));
    assert_ne!(plain, jittered);
}

#[test]
fn delays_beyond_24_days_are_cut_for_timers_only() {
    const MOST: u64 = 24 * 86_400;
    for (rule, is_cut) in [
        ("unit: year, rpu: 1, algo: W", true),
        ("unit: 30d, rpu: 1", true),
        ("unit: 30d, rpu: 1, algo: SW", true),
        ("unit: day, rpu: 0, ban: {after: 1, within: 1h, for: 720h}", true),
        ("unit: 576h, rpu: 1", false),
        ("unit: week, rpu: 1, algo: W", false),
    ] {
        for jitter in ["0", "1h"] {
            let mut gate = Gate::new(&format!(
                "limits: [{{Url: /, rules: [{{actor: account, scope: local, {rule}}}]}}]
response: {{jitter: {jitter}, body: '{{retry_after}}'}}"
            ));
            (0..3).for_each(|_| _ = gate.admits(&from("ann")));
            let [retry_after, body, pushback, t] = delays(&gate.refusal(&from("ann")));
            assert_eq!([body, pushback], [retry_after; 2], "{rule}; {jitter}");
            assert_eq!(retry_after, t.min(MOST), "{rule}; {jitter}");
            assert_eq!(
                t > MOST,
                is_cut || rule.contains("576h") && jitter == "1h",
                "{rule}; {jitter}: {t}"
            );
        }
    }
}
