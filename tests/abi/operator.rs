//! What operators ask for as nobody should: each is answered in JSON, and nothing changes by it.

use serde_json::Value;

use host::Host;
use host::answer::Answer;
use host::request::Request;
use host::vm::Vm;

const TOKEN: &str = "Bearer a token of 24 characters";

const CONFIG: &str = "
admin: {path: /.diana, token_env: DIANA_TOKEN}
limits:
- Url: /
  rules:
  - {name: r, actor: account, unit: day, rpu: 3, algo: W, ban: {after: 50, within: 1m, for: 1h}}
  - {name: l, actor: account, unit: day, rpu: 900, algo: W, scope: local}";

/// Longer ones Envoy answers with 431 by itself.
const LONGEST: usize = 60 << 10;

fn start() -> Vm {
    let mut host = Host::new(1);
    host.set_environment("DIANA_TOKEN", TOKEN.strip_prefix("Bearer ").unwrap());
    host.start_vm(CONFIG).unwrap()
}

fn request(method: &str, path: &str) -> Request {
    Request::get(path).without(":method").header(":method", method)
}

fn ask(vm: &mut Vm, method: &str, rest: &str) -> (Answer, Value) {
    told(vm, &request(method, &format!("/.diana{rest}")).header("authorization", TOKEN))
}

fn told(vm: &mut Vm, request: &Request) -> (Answer, Value) {
    let answer = vm.request(request);
    assert!(answer.is_refused(), "it goes nowhere");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let is_problem = answer.status() != 200;
    assert_eq!(body["error"].is_string(), is_problem, "{}: {body}", answer.status());
    (answer, body)
}

fn used(vm: &mut Vm, rest: &str) -> u64 {
    let (answer, body) = ask(vm, "GET", rest);
    assert_eq!(answer.status(), 200, "{body}");
    body["callers"][0]["used"].as_u64().unwrap()
}

#[test]
fn callers_are_found_however_they_are_spelled() {
    let mut vm = start();
    for name in ["ada", "a b&c=%", "\u{e9}"] {
        assert!(vm.request(&Request::get("/").header("x-account-id", name)).is_admitted());
    }
    for spelled in
        ["ada", "%61da", "%61%64%61", "ad%61", "a+b%26c%3D%25", "a%20b%26c%3d%25", "%c3%A9"]
    {
        for rule in ["r", "%72"] {
            let rest = format!("/usage?rule={rule}&%61ctor.account={spelled}");
            assert_eq!(used(&mut vm, &rest), 1, "{rest}");
        }
    }
    // Whatever is no escape stands for itself.
    for other in ["%6", "%zz", "%2561da", "%00", "ada%00", "%ff", "Ada", "=ada"] {
        assert_eq!(used(&mut vm, &format!("/usage?rule=r&actor.account={other}")), 0, "{other}");
    }
    for byte in ["a", "%61", "%ff", "+a"] {
        let long = byte.repeat((LONGEST - 100) / byte.len());
        for (method, rest) in [("GET", "usage"), ("POST", "reset"), ("POST", "unban")] {
            let rest = format!("/{rest}?rule=r&actor.account={long}");
            let (answer, body) = ask(&mut vm, method, &rest);
            assert_eq!(answer.status(), 200, "{method} {byte}");
            assert!(answer.body.len() < 1000, "it is told by its key: {body}");
        }
    }
    assert_eq!(used(&mut vm, "/usage?rule=r&actor.account=ada"), 1, "nobody else was lifted");
}

#[test]
fn whatever_is_wrong_is_told_as_json() {
    let mut vm = start();
    assert!(vm.request(&Request::get("/").header("x-account-id", "ada")).is_admitted());
    let long = "x".repeat(LONGEST - 100);
    for (method, rest, status) in [
        ("GET", "/usage?rule=nobody&actor.account=ada", 404),
        ("GET", "/usage?rule=%00&actor.account=ada", 404),
        ("GET", &format!("/usage?rule={long}&actor.account=ada"), 404),
        ("GET", "/usage?rule=r", 400),
        ("GET", "/usage?rule=r&actor.device=ada", 400),
        ("GET", "/usage?rule=r&rule=r&actor.account=ada", 400),
        ("GET", "/usage?rule=r&%72ule=r&actor.account=ada", 400),
        ("GET", &format!("/usage?{long}"), 400),
        ("GET", &format!("/{long}"), 404),
        ("GET", &format!("/usage?{}", "&".repeat(LONGEST - 100)), 400),
        ("POST", "/reset?rule=l&actor.account=ada", 409),
        ("POST", "/ban?rule=l&actor.account=ada&for=5m", 409),
        ("POST", "/ban?rule=r&actor.account=ada&for=1e9", 400),
        ("POST", "/ban?rule=r&actor.account=ada&for=18446744073709551615d", 400),
        ("POST", &format!("/ban?rule=r&actor.account=ada&for={}m", "9".repeat(50_000)), 400),
    ] {
        let (answer, body) = ask(&mut vm, method, rest);
        let rest: String = rest.chars().take(60).collect();
        assert_eq!(answer.status(), status, "{method} {rest}: {body}");
        assert!(answer.body.len() < 1000, "{method} {rest}");
    }
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get", "", "GET "] {
        let (answer, _) = ask(&mut vm, method, "/usage?rule=r&actor.account=ada");
        assert_eq!((answer.status(), answer.header("allow")), (405, Some("GET")), "{method}");
    }
    for method in ["GET", "HEAD", "PUT", "DELETE", "post"] {
        let (answer, _) = ask(&mut vm, method, "/reset?rule=r&actor.account=ada");
        assert_eq!((answer.status(), answer.header("allow")), (405, Some("POST")), "{method}");
    }
    let (answer, _) = told(
        &mut vm,
        &request("GET", "/.diana/rules").without(":method").header("authorization", TOKEN),
    );
    assert_eq!(answer.status(), 405, "without a method");
    assert_eq!(used(&mut vm, "/usage?rule=r&actor.account=ada"), 1, "nothing was lifted");
}

/// Nobody learns that there is such a path, whatever stands in the token's place.
#[test]
fn a_token_that_comes_twice_is_none() {
    let mut vm = start();
    let bare = || request("GET", "/.diana/rules");
    let mut nothing = None;
    for request in [
        bare(),
        bare().header("authorization", TOKEN).header("authorization", TOKEN),
        bare().header("authorization", "").header("authorization", TOKEN),
        bare().header("authorization", format!("{TOKEN}, {TOKEN}")),
        bare().header("authorization", TOKEN.to_lowercase()),
        bare().header("authorization", &TOKEN[7..]),
        bare().header("authorization", [0xff; 60]),
        bare().header("authorization", "x".repeat(LONGEST - 100)),
        bare().header("authorization", format!("Bearer {}", "x".repeat(LONGEST - 100))),
    ] {
        let (answer, body) = told(&mut vm, &request);
        assert_eq!(answer.status(), 404);
        assert_eq!(*nothing.get_or_insert(body.clone()), body, "always the same");
    }
    assert_eq!(ask(&mut vm, "GET", "/rules").0.status(), 200);
}

#[test]
fn a_storm_of_resets_takes_no_memory_and_loses_nobody() {
    let mut vm = start();
    assert!(vm.request(&Request::get("/").header("x-account-id", "bob")).is_admitted());
    let storm = |vm: &mut Vm, resets: u32| {
        for number in 0..resets {
            let caller = if number % 2 == 0 { "ada".into() } else { format!("nobody-{number}") };
            let (answer, body) = ask(vm, "POST", &format!("/reset?rule=r&actor.account={caller}"));
            assert_eq!(answer.status(), 200, "{body}");
        }
    };
    storm(&mut vm, 2000);
    let memory = vm.memory();
    storm(&mut vm, 2000);
    assert_eq!(vm.memory(), memory);
    assert_eq!(used(&mut vm, "/usage?rule=r&actor.account=bob"), 1);
    let ada = || Request::get("/").header("x-account-id", "ada");
    let admitted = (0..10).filter(|_| vm.request(&ada()).is_admitted()).count();
    assert_eq!(admitted, 3);
}
