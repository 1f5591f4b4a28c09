//! Any request is decided about: none traps the VM, and memory stays bounded.

mod requests;

use fastrand::Rng;

use host::Host;
use host::answer::{Answer, StreamOutcome};
use host::pairs;
use host::request::Request;
use host::vm::Vm;
use requests::hostile;

/// Reads all parts of a request: paths, hosts, methods, headers, and every kind of source.
const CONFIG: &str = r#"
keys: 1000
log: refused
accepted: {headers: true, filter_state: true}
except: {addresses: [10.0.0.0/8], paths: [/healthz], headers: {x-probe: {exact: "1"}}}
actors:
  cookie: [{cookie: id}]
  query: [{query: id}]
  token: [{jwt_claim: sub, unverified: true}]
  claim: [{jwt_claim: sub, payload: jwt}]
  peer: [{peer: uri_san}]
  meta: [{metadata: [ns, key]}]
limits:
- Url: /
  rules:
  - {actor: device, unit: second, rpu: 20, algo: W, scope: local}
  - {actor: account, unit: second, rpu: 20, algo: SW, scope: local, absent: share}
  - {actor: cookie, unit: second, rpu: 20, algo: TB, scope: local}
  - {actor: query, unit: second, rpu: 20, algo: LB, scope: local, shadow: true}
  - {actor: token, unit: second, rpu: 20, algo: TB, scope: local}
  - {actor: [claim, peer, meta], unit: second, rpu: 20, algo: TB, scope: local, absent: deny, shadow: true}
- Url: /a/b
  match: {methods: [GET, POST], hosts: ["*.example.com", example.com], headers: {x-app: {prefix: m}}}
  rules: [{actor: all, unit: minute, rpu: 1000, algo: TB, scope: local}]
- Url: /CASE
  ignore_case: true
  rules: [{actor: all, unit: minute, rpu: 1000, algo: TB, scope: local}]
"#;

/// Maximum cost of a request: a millisecond or two in Envoy.
const MOST_FUEL: u64 = 40_000_000;

fn start(host: &mut Host) -> Vm {
    host.start_vm(CONFIG).unwrap_or_else(|error| panic!("{error}"))
}

fn decide(vm: &mut Vm, request: &Request) -> Answer {
    let answer = vm.request(request);
    assert_ne!(answer.outcome, StreamOutcome::Held, "{request:?}");
    assert!(matches!(answer.status(), 200 | 503), "{answer:?}");
    assert!(answer.fuel < MOST_FUEL, "{} for {:.400}", answer.fuel, format!("{request:?}"));
    answer
}

#[test]
fn thousands_of_hostile_requests_cause_no_trap() {
    let seed = 1;
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut host = Host::new(seed);
    let mut vm = start(&mut host);
    let (mut refused, mut most) = (0, 0);
    let mut memory = Vec::new();
    for number in 0..3_000 {
        host.advance(random.u64(..20_000));
        let answer = decide(&mut vm, &hostile(&mut random));
        refused += u32::from(answer.is_refused());
        most = most.max(answer.fuel);
        if number % 500 == 499 {
            vm.run(1_000_000);
            memory.push(vm.memory());
        }
    }
    println!("refused {refused}, at most {most} fuel, memory {memory:?}");
    assert!(refused > 100 && refused < 2_900, "too tame: {refused} refused");
    assert!(memory[memory.len() - 1] <= memory[0] + (256 << 10), "it keeps growing: {memory:?}");
}

/// The fuel of the most expensive of some hostile paths under an entry.
fn hostile_paths(entry: &str) -> u64 {
    let rule = "actor: all, unit: day, rpu: 1000000, scope: local";
    let limits =
        format!("limits: [{{Url: /, rules: [{{{rule}}}]}}, {{{entry}, rules: [{{{rule}}}]}}]");
    let mut host = Host::new(9);
    let mut vm = host.start_vm(&limits).unwrap_or_else(|error| panic!("{error}"));
    let mut most = 0;
    for piece in ["/", "\\", "/a/..", "/a%2f..;/", "/x%2fy/..;", "%2f..;/a", "/%61%2f"] {
        for end in ["", "/..", "/%2e%2e"] {
            // The longest path that Envoy accepts, and one with more readings.
            for length in [8_000, 60_000] {
                let path = format!("/a{}{}", piece.repeat(length / piece.len()), end.repeat(100));
                most = most.max(vm.request(&Request::get(path)).fuel);
            }
        }
    }
    most
}

/// Patterns follow the readings of a path within the bound of plain paths. `each` reads a path again, unless
/// it has many readings.
#[test]
fn hostile_path_costs_hardly_more_by_a_pattern() {
    let plain = hostile_paths("Url: /a/b/c");
    let pattern = hostile_paths("Url: '/a/{x}/c'");
    let each = hostile_paths("Url: '/a/{x}/{rest=**}', each: true");
    println!("{plain} by a path, {pattern} by a pattern, {each} by each of its paths");
    assert!(pattern < plain / 100 * 103 && each < plain / 100 * 103, "{plain} {pattern} {each}");
}

#[test]
fn thousands_of_headers_hide_no_header() {
    // Envoy accepts at most 1,024 pairs or a mebibyte from a module, but returns any number.
    let mut host = Host::new(6);
    let mut vm = start(&mut host);
    let crowd = (0..2_000).fold(Request::get("/"), |request, number| {
        request.header(&format!("x-{number}"), [b'a'; 600])
    });
    let mut admitted = |caller: &str| {
        let request = crowd.clone().header("x-device-id", caller).header("x-account-id", caller);
        (0..30).filter(|_| decide(&mut vm, &request).is_admitted()).count()
    };
    assert_eq!([admitted("a"), admitted("a"), admitted("b")], [20, 0, 20]);
}

#[test]
fn unreadable_headers_name_no_caller() {
    let mut host = Host::new(7);
    let mut vm = host
        .start_vm(
            "limits: [{Url: /a, rules: [{actor: account, unit: day, rpu: 12, algo: W, scope: local}]}]",
        )
        .unwrap();
    let whole = pairs::encode(&Request::get("/a").header("x-account-id", "ada").headers);
    let huge = [0xff; 64];
    let lengths = [&[2, 0, 0, 0][..], &huge].concat();
    let overflow = [&[0xff, 0xff, 0xff, 0x1f][..], &huge].concat();
    let cut = |length: usize| whole[..length].to_vec();
    let broken =
        [cut(1), cut(4), cut(20), cut(60), cut(whole.len() - 1), huge.into(), lengths, overflow];
    for (number, bytes) in broken.iter().enumerate() {
        let request = Request::get("/a").header("x-account-id", format!("a{number}"));
        assert!(decide(&mut vm, &request.garbled(bytes.clone())).is_admitted());
    }
    let mut admitted = broken.len();
    for number in 0..20 {
        let bytes = broken[number % broken.len()].clone();
        admitted += usize::from(decide(&mut vm, &Request::get("/a").garbled(bytes)).is_admitted());
    }
    assert_eq!(admitted, 12, "whoever cannot be told from others shares one bucket");
    let ada = Request::get("/a").header("x-account-id", "ada");
    assert!(decide(&mut vm, &ada.clone().garbled(whole)).is_admitted());
    assert!(decide(&mut vm, &ada.garbled([])).is_admitted(), "no headers, so no account");
}

#[test]
fn request_without_pseudo_headers_is_limited() {
    let mut host = Host::new(5);
    let mut vm = host
        .start_vm("limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 2, algo: W, scope: local}]},
                            {Url: /x, rules: [{actor: all, unit: day, rpu: 9, algo: W, scope: local}]}]")
        .unwrap();
    let connect = Request::get("/").without(":path").without(":method").without(":authority");
    assert!(decide(&mut vm, &connect).is_admitted());
    assert!(decide(&mut vm, &Request::get("*").without(":scheme")).is_admitted());
    assert!(decide(&mut vm, &connect).is_refused(), "they fall under `/`");
}
