//! Hosts, header conditions and exemptions.

use diana::port::fake::FakeRequest;
use diana::route::except::Except;
use diana::route::header::{Condition, Test};
use diana::route::host::Host;

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

#[test]
fn header_conditions() {
    let holds = |test: Test, values: &[&str]| {
        let request = values.iter().fold(FakeRequest::get("/"), |r, v| r.header("x-app", v));
        Condition { name: "x-app".into(), test }.holds(&request)
    };
    let text = |text: &str| text.to_owned();
    assert!(holds(Test::Exact(text("web")), &["web"]));
    assert!(!holds(Test::Exact(text("web")), &["webs"]));
    assert!(!holds(Test::Exact(text("web")), &[]));
    assert!(holds(Test::Prefix(text("mobile")), &["mobile-7"]));
    assert!(holds(Test::Suffix(text("-7")), &["mobile-7"]));
    assert!(holds(Test::Present(true), &[""]));
    assert!(!holds(Test::Present(true), &[]));
    assert!(holds(Test::Present(false), &[]));
    assert!(!holds(Test::Present(false), &["x"]));
    assert!(holds(Test::Not(text("web")), &[]));
    assert!(holds(Test::Not(text("web")), &["app"]));
    assert!(!holds(Test::Not(text("web")), &["web"]));
    // A header that occurs twice: nobody slips through by adding a value.
    assert!(holds(Test::Exact(text("web")), &["app", "web"]));
    assert!(!holds(Test::Not(text("web")), &["app", "web"]));
}

#[test]
fn exemptions_by_address() {
    let except = Except {
        addresses: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        ..Except::default()
    };
    let exempt = |address: &str| except.covers(&FakeRequest::get("/").from(address), b"/");
    assert!(exempt("10.1.2.3:4000"));
    assert!(exempt("[::ffff:10.1.2.3]:4000"));
    assert!(exempt("[2001:db8::1]:4000"));
    assert!(!exempt("11.0.0.1:4000"));
    assert!(!exempt("/run/a.sock"));
    assert!(!except.covers(&FakeRequest::get("/"), b"/"));
}
