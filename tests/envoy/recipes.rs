//! Documents of envoy/examples/ with an upstream that they are for.

use std::io::Write;

use crate::harness::{Envoy, Gateway, Upstream, exchange, request, shipped_text, start_whole_text};

const OFFICE: &str = "198.51.100.1";
const ELSEWHERE: &str = "203.0.113.9";

/// The right password, in a header of the request.
const RIGHT: &str = "right";

fn login(envoy: &Envoy, name: &str, address: &str, password: &str) -> u16 {
    let headers = [
        ("x-login-name", name),
        ("x-forwarded-for", address),
        ("x-password", password),
        ("content-length", "0"),
    ];
    exchange(envoy.port, &request("POST", "/login", &headers)).unwrap().status
}

/// A phone with an old password takes its ten attempts. Then it is refused, and its owner with it at
/// this address only.
#[test]
fn old_password_of_a_phone_shuts_out_no_other_login() {
    let service = Upstream::answering(|arrival, to| {
        let is_right = arrival.header("x-password") == Some(RIGHT);
        let status = if is_right { "200 OK" } else { "401 Unauthorized" };
        to.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())
    });
    let rules = shipped_text("envoy/examples/logins.yaml");
    let gateway = Gateway::with(&rules).trust_forwarded_for().before(&service);
    let envoy = gateway.start_shared();
    let phone: Vec<u16> = (0..40).map(|_| login(&envoy, "paul", OFFICE, "old")).collect();
    assert_eq!(phone.iter().filter(|status| **status == 401).count(), 10);
    assert_eq!(phone.last(), Some(&503));
    assert_eq!(login(&envoy, "paul", OFFICE, RIGHT), 503);
    assert_eq!(login(&envoy, "paul", ELSEWHERE, RIGHT), 200);
    for number in 0..200 {
        assert_eq!(login(&envoy, &format!("user{}", number % 20), OFFICE, RIGHT), 200);
    }
    // Guesses from one address are limited under all names together.
    let guesses = (0..120)
        .filter(|number| login(&envoy, &format!("name{number}"), ELSEWHERE, "guess") == 401);
    assert_eq!(guesses.count(), 100);
    envoy.assert_unharmed();
}

/// The name in the body, in all spellings that a service reads alike. What the filters cannot read
/// shares one count.
#[test]
fn logins_count_by_the_name_in_the_body() {
    let service = Upstream::answering(|_, to| {
        to.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
    });
    let envoy = Gateway::as_in_login_body_yaml(&service).start_shared();
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    let login = |kind: &str, body: &str| {
        let length = body.len().to_string();
        let headers = [("content-type", kind), ("content-length", length.as_str())];
        let head = request("POST", "/login", &headers);
        exchange(envoy.port, &[&head[..], body.as_bytes()].concat()).unwrap().status
    };
    for _ in 0..10 {
        assert_eq!(login(json, r#"{"username":"Ada","password":"x"}"#), 401);
    }
    for (kind, body) in [
        (json, r#"{"username":"ada"}"#),
        (json, r#"{"x":{"username":"bob"},"username":"ADA"}"#),
        (json, r#"{"username":"bob","username":"ada"}"#),
        ("application/json; charset=utf-8", r#"{"username":"ada"}"#),
        (form, "a=b&username=ada&password=x"),
        (form, "username=%61d%41"),
        (form, "username=+ada%20"),
        (form, "user%6eame=ada;x=1"),
        (form, "usernames=bob&username=ada&username.x=1"),
        (json, r#"{"username":" ada "}"#),
        ("Application/X-WWW-Form-Urlencoded;charset=utf-8", "username=ADA"),
    ] {
        assert_eq!(login(kind, body), 429, "{kind} {body}");
    }
    assert_eq!(login(form, "username=bob"), 401, "another name has its own count");
    let nameless = [
        (form, "user=bob"),
        (form, "username="),
        (form, "username=bob&username=eve"),
        ("text/plain", "username=bob"),
        (json, r#"{"username":"bob""#),
        (json, r#"{"username":{"a":1}}"#),
        (json, "[]"),
        (form, ""),
        (json, ""),
        (form, "\0=&&&"),
    ];
    for (kind, body) in nameless {
        assert_eq!(login(kind, body), 401, "{kind} {body}");
    }
    for (kind, body) in nameless {
        assert_eq!(login(kind, body), 429, "{kind} {body}");
    }
    // A service takes one of both keys for the name.
    for second in ["&user%6Eame", "&+Username", "&username%5B%5D", ";username%00"] {
        assert_eq!(login(form, &format!("username=bob{second}=eve")), 429, "{second}");
    }
    for kind in [form, json] {
        assert_eq!(login(kind, &format!("username={}", "a".repeat(20_000))), 413, "{kind}");
    }
    envoy.assert_unharmed();
}

/// The recipe of the clock, at fixed times in place of the gateway's. A client cannot choose the hour.
#[test]
fn limits_by_the_clock() {
    let file = shipped_text("envoy/recipes/hours.yaml");
    for (hour, weekday, limit) in [("08", 3, 3), ("18", 3, 6), ("12", 0, 6)] {
        let text = file.replace("%START_TIME_LOCAL(%H)%", hour);
        let text = text.replace("%START_TIME_LOCAL(%w)%", &weekday.to_string());
        let envoy = start_whole_text(text, None);
        let other = if limit == 3 { "3" } else { "12" };
        let get =
            || exchange(envoy.port, &request("GET", "/", &[("x-hour", other), ("x-weekday", "3")]));
        let statuses: Vec<u16> = (0..7).map(|_| get().unwrap().status).collect();
        let admitted = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!((admitted, statuses.last()), (limit, Some(&429)), "{hour} {weekday}");
        envoy.assert_unharmed();
    }
}
