//! Refusals whose headers are made of the same say the same.

use std::rc::Rc;

use diana_core::decision::Retry;
use diana_core::key::Key;
use diana_core::policy::{LimitFields, Response, Scope};
use diana_core::report::{Outcome, Record, Refusal};
use diana_core::time::SECOND;
use fastrand::Rng;
use kit::told::Told;

struct Any {
    rng: Rng,
    responses: Vec<Rc<Response>>,
    rules: Vec<Rc<str>>,
}

impl Any {
    fn new() -> Any {
        let response = |fields| Response {
            status: 503,
            body: Vec::new(),
            content_type: "text/plain".into(),
            headers: Vec::new(),
            is_problem: false,
            jitter: 0,
            fields,
        };
        let all = [LimitFields::Ietf, LimitFields::XRateLimit];
        let responses = all.into_iter().map(|fields| Rc::new(response(fields))).collect();
        let rng = Rng::with_seed(kit::seed::next());
        Any { rng, responses, rules: vec!["a".into(), "b".into()] }
    }

    /// One of few, so that many are alike.
    fn refusal(&mut self) -> Refusal {
        let rng = &mut self.rng;
        let retry = match rng.u8(0..5) {
            0 => Retry::Never,
            _ => Retry::After(rng.u64(1..3 * SECOND)),
        };
        let by = Record {
            rule: rng.choice(&self.rules).unwrap().clone(),
            scope: Scope::Local,
            shadow: false,
            shown: rng.u8(0..4) > 0,
            plan: None,
            outcome: match rng.u8(0..4) {
                0 => Outcome::Unavailable(SECOND),
                _ => Outcome::Refused(retry),
            },
            policy: (rng.u64(1..3), rng.u64(0..2) * SECOND),
            remaining: rng.bool().then(|| rng.u64(0..2)),
            reset: [retry.ticks(), Some(SECOND)][rng.usize(0..2)],
            caller: Key { hash: rng.u64(..), second_hash: rng.u64(..) },
        };
        let several = match rng.u8(0..4) {
            0 => vec![by.clone(), Record { remaining: Some(0), shown: true, ..by.clone() }],
            _ => Vec::new(),
        };
        let response = rng.choice(&self.responses).unwrap().clone();
        let (jitter, is_logged) = (rng.u64(0..2) * SECOND, rng.bool());
        Refusal { response, several, by, retry, jitter, is_logged, explained: Vec::new() }
    }
}

#[test]
fn whoever_stands_on_the_same_grounds_is_told_the_same() {
    let mut any = Any::new();
    let refusals: Vec<Refusal> = (0..1_000).map(|_| any.refusal()).collect();
    let (mut alike, mut equal) = (0, 0);
    for one in &refusals {
        let Some(grounds) = one.grounds() else {
            assert!(one.several.len() > 1);
            continue;
        };
        assert!(one.stands_on(&grounds));
        for other in refusals.iter().filter(|other| other.stands_on(&grounds)) {
            assert_eq!(one.headers(), other.headers());
            assert!(Rc::ptr_eq(&one.response, &other.response), "it has headers, too");
            alike += 1;
            equal += u64::from(one.by.outcome == other.by.outcome);
        }
    }
    assert!(alike > equal * 5 / 4, "{alike} of them in the same second, {equal} in the same tick");
}
