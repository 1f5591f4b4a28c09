//! Several calls in one batch, with independent results.

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::{CallNumber, Failure, Login, Pipeline, Script, ScriptAnswer};

use kit::rules::{Rule, ask_of, by, pipeline_of_calls};
use kit::server::{Decided, Server};

const NOW: u64 = 1_700_000_000 * SECOND;

/// One request under each of two rules, in a call each.
fn two() -> Pipeline {
    let rule = |fingerprint| Rule { fingerprint, ..Rule::new("W", Quota::new(Unit::Day, 10)) };
    let asks = |fingerprint| vec![ask_of(0, vec![rule(fingerprint).charge(1, 1, 0)])];
    pipeline_of_calls(Some(NOW), vec![asks(1), asks(2)])
}

/// The remaining permits of each rule, or the failure of its call.
fn each(server: &Server, pipeline: &Pipeline, login: &Login) -> Vec<Result<u64, Failure>> {
    let left = |answer| match answer {
        Ok(ScriptAnswer::Decided(decided)) => Ok(Decided::of(decided).asks[0].rules[0].remaining),
        Ok(ScriptAnswer::Seed(_)) => panic!("the seed is another"),
        Err(failure) => Err(failure),
    };
    server.answers(pipeline, login).into_iter().map(left).collect()
}

#[test]
fn every_call_of_a_batch_is_charged() {
    let server = Server::start();
    let (login, two) = (Login::default(), two());
    assert_eq!(each(&server, &two, &login), [Err(Failure::NoScript), Err(Failure::NoScript)]);
    // The second call uses the script that the first one loaded.
    let mut mixed = two.clone();
    mixed.calls[0].script = Script::Text;
    assert_eq!(each(&server, &mixed, &login), [Ok(9), Ok(9)]);
    assert_eq!(each(&server, &two, &login), [Ok(8), Ok(8)]);
    server.command(&["SCRIPT", "FLUSH"]);
    mixed.calls.reverse();
    assert_eq!(each(&server, &mixed, &login), [Err(Failure::NoScript), Ok(7)]);
    assert_eq!(each(&server, &by(Script::Digest, &two), &login), [Ok(6), Ok(7)]);
}

#[test]
fn failed_call_does_not_fail_the_other() {
    let server = Server::start();
    let mut two = two();
    assert_eq!(each(&server, &by(Script::Text, &two), &Login::default()), [Ok(9), Ok(9)]);
    // A user with access to the keys of the first rule only.
    let own =
        ["~diana:*}:0000000000000001:*", "~diana:*}:seed", "~diana:*}:clock", "~diana:*}:gateways"];
    let user = [&["ACL", "SETUSER", "half", "on", ">pass", "+@all"], &own[..]].concat();
    assert_eq!(server.command(&user), "OK");
    let login = Login { username: Some("half".into()), password: Some("pass".into()), db: 0 };
    assert_eq!(each(&server, &two, &login), [Ok(8), Err(Failure::NoPerm)]);
    two.calls.reverse();
    assert_eq!(each(&server, &two, &login), [Err(Failure::NoPerm), Ok(7)]);
    assert_eq!(each(&server, &two, &Login::default()), [Ok(8), Ok(6)], "nothing else was charged");
}

/// A call that arrives twice is decided once, in both orders of its attempts. One that arrives
/// after the next one of its sender is not decided.
#[test]
fn repeated_call_is_decided_once() {
    let server = Server::start();
    let login = Login::default();
    let number = |sender, slot, number| Some(CallNumber { sender, slot, number });
    let one = |number| {
        let mut one = two();
        one.calls.truncate(1);
        each(&server, &Pipeline { number, ..by(Script::Text, &one) }, &login)
    };
    assert_eq!(one(number(1, 0, 5)), [Ok(9)]);
    assert_eq!(one(number(1, 0, 5)), [Ok(9)]);
    assert_eq!(one(number(1, 1, 6)), [Ok(8)], "another slot");
    assert_eq!(one(number(2, 0, 5)), [Ok(7)], "another sender");
    assert_eq!(one(number(1, 0, 5)), [Ok(9)]);
    assert_eq!(one(number(1, 0, 7)), [Ok(6)]);
    assert_eq!(one(number(1, 0, 5)), [Err(Failure::Garbage)], "too late");
    assert_eq!(one(number(1, 0, 7)), [Ok(6)]);
    assert_eq!(one(None), [Ok(5)]);
    // What the script has not written counts as nothing.
    for key in server.keys("*:call:*") {
        server.command(&["SET", &key, "x"]);
    }
    assert_eq!(one(number(1, 0, 7)), [Ok(4)]);
}
