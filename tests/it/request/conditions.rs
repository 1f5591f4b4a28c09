//! Conditions on hosts and on values: each for one reader of the request, as a rule needs it, or for all, as an exemption
//! does.

mod law;

use std::borrow::Cow;
use std::net::IpAddr;

use diana_policy::port::{Property, Pseudo, Request, Values};
use diana_policy::{Condition, ConditionField, HostPattern, Test};
use diana_request::matching::condition;
use kit::fake::FakeRequest;

use crate::config::policy;
use crate::support::documents::{assert_outcomes, outcome};
use crate::support::steps;

/// Each step of a document is a request with a condition of `match` under `if`. The condition holds for no reader of the
/// request, for all, or for some: a rule applies then, an exemption does not.
#[test]
fn conditions_match_their_transcripts() {
    assert_outcomes(concat!(env!("CARGO_MANIFEST_DIR"), "/it/request/conditions"), |_, _, text| {
        let mut transcript = String::new();
        for (line, mut keys) in steps::split(text).1 {
            let block = serde_json::to_string(&keys.remove("if").unwrap()).unwrap();
            let request = steps::request(&keys);
            let rules = policy(&format!("{{Url: /, rules: [], match: {block}}}"));
            let block = &rules.limits[0].matcher.any[0];
            let held = match (&block.hosts[..], &block.values[..]) {
                ([host], []) => [host.matches(request.authority.as_ref().unwrap()); 2],
                ([], [condition]) => holds(condition, &request),
                _ => panic!("one condition"),
            };
            let held = match held {
                [false, false] => "no",
                [true, true] => "yes",
                [true, false] => "maybe",
                [false, true] => panic!("{line} holds for all, and for none"),
            };
            transcript += &outcome(line, held);
        }
        transcript
    });
}

/// Whether a condition holds for some reader, and for all of them.
fn holds(condition: &Condition, request: &dyn Request) -> [bool; 2] {
    [condition::may_hold(condition, request), condition::must_hold(condition, request)]
}

#[test]
fn host_patterns_that_match_nothing_are_refused() {
    for bad in ["", "*", "*.", "a b", "*example.com", ".example.com", "example.com:80", "a/b"] {
        assert!(HostPattern::parse(bad).is_err(), "{bad}");
    }
}

/// A request with headers that the host does not give to the module.
pub struct Closed;

impl Request for Closed {
    fn pseudo(&self, _: Pseudo) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn header(&self, _: &str) -> Values<'_> {
        Values::Many(Vec::new())
    }

    fn client(&self) -> Option<IpAddr> {
        None
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

#[test]
fn unreadable_header_limits_and_never_exempts() {
    for test in [Test::Exact("web".into()), Test::Not("web".into()), Test::Present(true)] {
        let condition = Condition::new(ConditionField::Header("x-app".into()), test);
        assert_eq!(holds(&condition, &Closed), [true, false]);
    }
}

/// The text `a` in a list, as Envoy hands it over.
#[test]
fn metadata_list_passes_as_its_items_do() {
    let path = ["metadata", "filter_metadata", "n", "k"];
    let list = b"\x01\0\0\0\x01\0\0\0\0\0\0\0a\0\0";
    for (test, value, held) in [
        (Test::Contains("a".into()), &list[..], true),
        (Test::Contains("b".into()), list, false),
        (Test::Not("a".into()), list, true),
        (Test::Present(true), list, true),
        (Test::Not("a".into()), &[0; 4], true),
    ] {
        let request = FakeRequest::get("/").property(&path, value);
        let condition = Condition::new(ConditionField::Property(Property::new(&path)), test);
        assert_eq!(holds(&condition, &request), [held; 2], "{condition:?}");
    }
}

/// RFC 3986: a query's data may need any character encoded but the unreserved ones. Libraries encode cookies as they encode
/// queries, though most reserved bytes could stand in one.
#[test]
fn value_with_encoded_reserved_bytes_is_plain() {
    for byte in 0..=0x7f_u8 {
        let letter = char::from(byte);
        let is_plain =
            !letter.is_ascii_alphanumeric() && !"-._~".contains(letter) && !letter.is_control();
        for code in [format!("%{byte:02x}"), format!("%{byte:02X}")] {
            let pair = format!("c=a{code}z");
            for (field, request) in [
                (ConditionField::Query("c".into()), FakeRequest::get(&format!("/?{pair}"))),
                (ConditionField::Cookie("c".into()), FakeRequest::get("/").header("cookie", &pair)),
            ] {
                let test = Test::Exact(format!("a{letter}z"));
                let held = holds(&Condition::new(field, test), &request);
                assert_eq!(held, [true, is_plain], "{code}");
            }
        }
    }
}
