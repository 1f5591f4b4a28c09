//! Hosts, conditions on values, and exemptions.

mod escapes;
mod law;

use std::borrow::Cow;
use std::net::IpAddr;

use diana_policy::port::{Property, Pseudo, Request, Values};
use diana_policy::{Condition, Except, Field, Host, Test};
use diana_request::matching::{condition, except};
use kit::fake::FakeRequest;

#[test]
fn hosts_ignore_case_and_port() {
    let host = |pattern: &str, authority: &str| {
        Host::parse(pattern).unwrap().matches(authority.as_bytes())
    };
    assert!(host("example.com", "Example.COM:8443"));
    assert!(host("Example.com", "example.com."));
    assert!(host("example.com", "example.com.."));
    assert!(host("example.com", "u:p@example.com:80"));
    assert!(host("example.com", "example.com:80:80"));
    assert!(!host("example.com", "example.com@other"));
    assert!(host("[2001:db8::1]", "[2001:db8::1]:80"));
    assert!(host("[2001:db8::1]", "[2001:DB8::1]"));
    for spelling in ["[2001:0db8:0:0::1]", "[2001:db8::0.0.0.1]:80", "u@[2001:DB8:0::1]"] {
        assert!(host("[2001:db8::1]", spelling), "{spelling}");
        assert!(!host("[2001:db8::2]", spelling), "{spelling}");
    }
    assert!(!host("[2001:db8::1]", "example.com"));
    assert!(!host("example.com", "[2001:db8::1]"));
    assert!(host("example.com", "ex%61mple.c%4fm:80"));
    assert!(host("*.example.com", "a%2eexample.com"));
    assert!(!host("example.com", "example.com%"));
    assert!(host("example.com", "other, example.com:80"));
    assert!(host("example.com", "example.com,example.com"));
    assert!(!host("example.com", "example,com"));
    assert!(!host("example.com", "a.example.com"));
    assert!(!host("example.com", "example.com.evil"));
    assert!(host("*.example.com", "a.b.example.com:1"));
    assert!(!host("*.example.com", "example.com"));
    assert!(!host("*.example.com", ".example.com"));
    assert!(!host("*.example.com", "badexample.com"));
    for bad in ["", "*", "*.", "a b", "*example.com", ".example.com", "example.com:80", "a/b"] {
        assert!(Host::parse(bad).is_err(), "{bad}");
    }
}

/// Whether a condition holds for a rule, and for an exemption.
fn holds(test: Test, values: &[&str]) -> (bool, bool) {
    let request = values.iter().fold(FakeRequest::get("/"), |r, v| r.header("x-app", v));
    let condition = Condition { field: Field::Header("x-app".into()), test };
    (condition::may_hold(&condition, &request), condition::must_hold(&condition, &request))
}

const YES: (bool, bool) = (true, true);
const NO: (bool, bool) = (false, false);
/// Only for some readers: a rule applies, an exemption does not.
const MAYBE: (bool, bool) = (true, false);

#[test]
fn header_conditions() {
    let text = |text: &str| text.to_owned();
    assert_eq!(holds(Test::Exact(text("web")), &["web"]), YES);
    assert_eq!(holds(Test::Exact(text("web")), &["webs"]), NO);
    assert_eq!(holds(Test::Exact(text("web")), &[]), NO);
    assert_eq!(holds(Test::Prefix(text("mobile")), &["mobile-7"]), YES);
    assert_eq!(holds(Test::Prefix(text("mobile")), &["a-mobile"]), NO);
    assert_eq!(holds(Test::Suffix(text("-7")), &["mobile-7"]), YES);
    assert_eq!(holds(Test::Suffix(text("-7")), &["-7-"]), NO);
    assert_eq!(holds(Test::Present(true), &["x"]), YES);
    for empty in [&[""][..], &[" "], &["\t"], &["", " "]] {
        assert_eq!(holds(Test::Present(true), empty), NO, "{empty:?}");
        assert_eq!(holds(Test::Present(false), empty), YES, "{empty:?}");
    }
    assert_eq!(holds(Test::Present(true), &[]), NO);
    assert_eq!(holds(Test::Present(false), &[]), YES);
    assert_eq!(holds(Test::Present(false), &["x"]), NO);
    assert_eq!(holds(Test::Not(text("web")), &[]), YES);
    assert_eq!(holds(Test::Not(text("web")), &["app"]), YES);
    assert_eq!(holds(Test::Not(text("web")), &["web"]), NO);
}

#[test]
fn a_header_with_several_values() {
    let text = |text: &str| text.to_owned();
    for both in [["app", "web"], ["web", "app"]] {
        assert_eq!(holds(Test::Exact(text("web")), &both), MAYBE);
        assert_eq!(holds(Test::Not(text("web")), &both), MAYBE);
        assert_eq!(holds(Test::Present(true), &both), YES);
        assert_eq!(holds(Test::Present(false), &both), NO);
    }
    assert_eq!(holds(Test::Exact(text("web")), &["web", "web"]), YES);
    assert_eq!(holds(Test::Not(text("web")), &["web", "web"]), NO);
    // One line that another proxy joined from two.
    assert_eq!(holds(Test::Exact(text("web")), &["app, web"]), MAYBE);
    assert_eq!(holds(Test::Not(text("web")), &["app, web"]), MAYBE);
    assert_eq!(holds(Test::Suffix(text("b")), &["web,app"]), MAYBE);
    // A single value that contains a comma.
    assert_eq!(holds(Test::Exact(text("a, b")), &["a, b"]), YES);
    assert_eq!(holds(Test::Prefix(text("probe (")), &["probe (x, y)"]), YES);
    // Spaces, which HTTP/2 preserves.
    assert_eq!(holds(Test::Exact(text("web")), &[" web"]), MAYBE);
    assert_eq!(holds(Test::Not(text("web")), &["web\t"]), MAYBE);
}

/// A request with headers that the host does not return.
struct Closed;

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

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}

#[test]
fn a_header_that_nobody_can_read() {
    for test in [Test::Exact("web".into()), Test::Not("web".into()), Test::Present(true)] {
        let condition = Condition { field: Field::Header("x-app".into()), test };
        assert!(
            condition::may_hold(&condition, &Closed) && !condition::must_hold(&condition, &Closed)
        );
    }
}

/// Whether a condition on a property holds for a rule, and for an exemption. The host does not
/// report the type.
fn of_property(test: Test, value: Option<&[u8]>) -> (bool, bool) {
    let path = ["metadata", "filter_metadata", "n", "k"];
    let request = FakeRequest::get("/");
    let request = match value {
        Some(value) => request.property(&path, value),
        None => request,
    };
    let condition = Condition { field: Field::Property(Property::new(&path)), test };
    (condition::may_hold(&condition, &request), condition::must_hold(&condition, &request))
}

#[test]
fn metadata_and_claims() {
    let exact = |text: &str| Test::Exact(text.into());
    assert_eq!(of_property(exact("gold"), Some(b"gold")), YES);
    assert_eq!(of_property(exact("gold"), Some(b"gold,free")), NO);
    assert_eq!(of_property(exact("gold"), None), NO);
    assert_eq!(of_property(Test::Not("gold".into()), None), YES);
    assert_eq!(of_property(Test::Present(false), None), YES);
    assert_eq!(of_property(Test::Present(true), Some(b"")), NO);
    assert_eq!(of_property(Test::Present(false), Some(b"")), YES);
    assert_eq!(of_property(Test::Present(true), Some(&[0])), YES);
    assert_eq!(of_property(exact("true"), Some(&[1])), YES);
    assert_eq!(of_property(exact("false"), Some(&[0])), YES);
    for (number, text) in [(0.0, "0"), (5.0, "5"), (9_007_199_254_740_991.0, "9007199254740991")] {
        let number: f64 = number;
        assert_eq!(of_property(exact(text), Some(&number.to_le_bytes())), YES, "{text}");
        assert_eq!(of_property(exact("7"), Some(&number.to_le_bytes())), NO, "{text}");
    }
    for number in [0.5_f64, -5.0, 1e300, f64::NAN, f64::INFINITY] {
        assert_eq!(of_property(exact("5"), Some(&number.to_le_bytes())), NO, "{number}");
    }
    // A list with the text `a`, in Envoy's encoding.
    let list = b"\x01\0\0\0\x01\0\0\0\0\0\0\0a\0\0";
    assert_eq!(of_property(Test::Contains("a".into()), Some(list)), NO);
    for test in [Test::Not("a".into()), Test::Present(true)] {
        assert_eq!(of_property(test, Some(list)), YES);
    }
    assert_eq!(of_property(Test::Not("a".into()), Some(&[0; 4])), YES);
    // Text that has the form of a whole number.
    assert_eq!(of_property(exact("abcdef3C"), Some(b"abcdef3C")), YES);
}

#[test]
fn exemptions_by_address() {
    let except = Except {
        addresses: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        ..Except::default()
    };
    let exempt =
        |address: &str| except::covers(&except, &FakeRequest::get("/").from(address), b"/");
    assert!(exempt("10.1.2.3:4000"));
    assert!(exempt("[::ffff:10.1.2.3]:4000"));
    assert!(exempt("[2001:db8::1]:4000"));
    assert!(!exempt("11.0.0.1:4000"));
    assert!(!exempt("/run/a.sock"));
    assert!(!except::covers(&except, &FakeRequest::get("/"), b"/"));
}
