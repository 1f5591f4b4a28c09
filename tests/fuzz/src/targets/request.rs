//! Any request is decided about, and a limit on all requests holds for any spelling.

use diana_limiter::{Limiter, Verdict};
use diana_policy::key::Seed;
use diana_policy::time::{Now, SECOND};
use kit::fake::{FakeClock, FakeRequest, FakeSharedData};
use std::cell::RefCell;
use std::rc::Rc;

const RULES: &str = "
limits:
  - Url: /
    rules: [{name: all, actor: all, unit: second, rpu: 3, algo: SW, scope: local}]
  - Url: /share/qq
    ignore_case: true
    match: {methods: [GET], hosts: ['*.example.com'], headers: {x-app: {prefix: mobile}}}
    except: {addresses: [10.0.0.0/8], headers: {x-probe: '1'}, paths: [/share/qq/x]}
    rules:
      - {actor: [someone, device], unit: minute, rpu: 1, absent: share, scope: local}
actors:
  someone: [{query: token}, {cookie: sid}, {jwt_claim: sub, unverified: true}, {header: x-id}]
";

thread_local! {
    static LIMITER: RefCell<(Limiter, FakeClock)> = {
        let policy = diana_config::Reader::default().policy(RULES.as_bytes()).unwrap_or_else(|problems| panic!("{problems}"));
        RefCell::new((Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, Rc::new(FakeSharedData::default())).expect("it can be built"), FakeClock::default()))
    };
}

/// The parts of a request, one per line of the input.
fn request(input: &[u8]) -> FakeRequest {
    let mut lines = input.split(|&byte| byte == b'\n');
    let mut piece = || lines.next().map(<[u8]>::to_vec);
    let mut request = FakeRequest { path: piece(), ..FakeRequest::get("/") };
    let names = ["cookie", "authorization", "x-id", "x-app", "x-device-id", "x-id", "x-probe"];
    for name in names {
        if let Some(value) = piece() {
            request = request.header(name, value);
        }
    }
    match piece() {
        Some(address) => request.property(&["source", "address"], address),
        None => request,
    }
}

pub fn run(input: &[u8]) {
    LIMITER.with_borrow_mut(|(limiter, clock)| {
        let Now { mono, wall } = clock.0.get();
        clock.0.set(Now { mono: mono + 3 * SECOND, wall: wall + 3 * SECOND });
        let request = request(input);
        let admitted = (0..5)
            .filter(|_| matches!(limiter.decide(&request, 0, clock), Verdict::Admit(..)))
            .count();
        assert!(admitted <= 3, "{request:?}");
    });
}
