//! Every source of identity, built through the registry.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diana_policy::tree::Tree;
use diana_request::identity::{Found, REGISTRY, Source};
use kit::fake::FakeRequest;

fn text(text: &str) -> Tree {
    Tree::Text(text.into())
}

fn build(kind: &str, value: Tree, options: &[(&str, Tree)]) -> Option<Rc<dyn Source>> {
    let kind = REGISTRY.iter().find(|known| known.name == kind).unwrap();
    let options: Vec<(String, Tree)> =
        options.iter().map(|(key, value)| ((*key).into(), value.clone())).collect();
    (kind.build)(&value, &options).ok()
}

fn find(source: &dyn Source, request: &FakeRequest) -> Result<Vec<u8>, Found<'static>> {
    match source.find(request) {
        Found::Value(value) => Ok(value.to_vec()),
        Found::Absent => Err(Found::Absent),
        Found::NoMetadata => Err(Found::NoMetadata),
        Found::Repeated => Err(Found::Repeated),
    }
}

#[test]
fn a_header() {
    let source = build("header", text("X-Account-Id"), &[]).unwrap();
    let with = |values: &[&str]| {
        let request = values.iter().fold(FakeRequest::get("/"), |r, v| r.header("x-account-id", v));
        find(&*source, &request)
    };
    assert_eq!(with(&["bob"]).unwrap(), b"bob");
    assert_eq!(with(&[]), Err(Found::Absent));
    assert_eq!(with(&[""]), Err(Found::Absent));
    assert_eq!(with(&["bob", "eve"]), Err(Found::Repeated));
    assert_eq!(with(&["bob", "bob"]), Err(Found::Repeated));
    assert_eq!(with(&["", "bob"]), Err(Found::Repeated));
    // HTTP/2 preserves spaces, which the upstream strips.
    for spaced in [" \tbob ", "bob ", " bob", "bob\t"] {
        assert_eq!(with(&[spaced]).unwrap(), b"bob", "{spaced:?}");
    }
    assert_eq!(with(&[" "]), Err(Found::Absent));
    let raw = FakeRequest::get("/").header("x-account-id", b"\xff\xfe");
    assert_eq!(find(&*source, &raw).unwrap(), b"\xff\xfe");
    for bad in [text(""), text("a b"), text("x:"), Tree::Int(1)] {
        assert!(build("header", bad, &[]).is_none());
    }
}

#[test]
fn a_cookie() {
    let source = build("cookie", text("sid"), &[]).unwrap();
    let with = |headers: &[&str]| {
        let request = headers.iter().fold(FakeRequest::get("/"), |r, v| r.header("cookie", v));
        find(&*source, &request)
    };
    assert_eq!(with(&["a=1; sid=abc; b=2"]).unwrap(), b"abc");
    assert_eq!(with(&["sid=a=b"]).unwrap(), b"a=b");
    assert_eq!(with(&["xsid=1; sidx=2; sid"]), Err(Found::Absent));
    assert_eq!(with(&["sid="]), Err(Found::Absent));
    assert_eq!(with(&["sid=1; sid=2"]), Err(Found::Repeated));
    assert_eq!(with(&["sid=1", "sid=2"]), Err(Found::Repeated));
    assert_eq!(with(&["a=1", "sid=2"]).unwrap(), b"2");
    // One session in any spelling.
    for spelling in ["sid=\"ab c\"", "sid=ab%20c", "sid=ab+c", "x; sid=%61b%2Bc", "sid=ab c\t"] {
        assert_eq!(with(&[spelling]).unwrap(), b"ab c", "{spelling}");
    }
    for nobody_knows in [
        "sid=\"a\\142c\"",
        "sid=\"a;b\"",
        "sid=\"abc",
        "sid=1; s%69d=2",
        "sid=;sid=2",
        "sid =1",
        "s%69d=1",
    ] {
        assert_eq!(with(&[nobody_knows]), Err(Found::Repeated), "{nobody_knows}");
    }
    assert_eq!(with(&["sid=a\"b\""]).unwrap(), b"a\"b\"");
    assert_eq!(with(&["sid=\"\""]), Err(Found::Absent));
    let odd = build("cookie", text("s+d"), &[]).unwrap();
    let request = FakeRequest::get("/").header("cookie", "s+d=1");
    assert_eq!(find(&*odd, &request).unwrap(), b"1");
    let many = "a=b; ".repeat(10_000) + "sid=found";
    assert_eq!(with(&[&many]).unwrap(), b"found");
    assert!(build("cookie", text("a=b"), &[]).is_none());
}

#[test]
fn a_query_parameter() {
    let source = build("query", text("token"), &[]).unwrap();
    let with = |path: &str| find(&*source, &FakeRequest::get(path));
    assert_eq!(with("/a?x=1&token=t%2Fk#token=no").unwrap(), b"t/k");
    for spelling in ["token=a+b", "token=a%20b", "token=%61%2bb", "token=a+b&x;y"] {
        assert_eq!(with(&format!("/a?{spelling}")).unwrap(), b"a b", "{spelling}");
    }
    for nobody_knows in [
        "token=a;b",
        "token=a;token=b",
        "token=a;x&y",
        "tok%65n=1&token=2",
        "tok%65n=1",
        "x;token=1",
    ] {
        assert_eq!(with(&format!("/a?{nobody_knows}")), Err(Found::Repeated), "{nobody_knows}");
    }
    let odd = build("query", text("to+ken"), &[]).unwrap();
    assert_eq!(find(&*odd, &FakeRequest::get("/?to%20ken=1")), Err(Found::Repeated));
    assert_eq!(with("/token=1"), Err(Found::Absent));
    assert_eq!(with("/a?token"), Err(Found::Absent));
    assert_eq!(with("/a?token=1&token=2"), Err(Found::Repeated));
    assert_eq!(find(&*source, &FakeRequest::default()), Err(Found::Absent));
}

#[test]
fn a_client_address_is_cut_to_its_network() {
    let map = |pairs: &[(&str, i128)]| {
        Tree::Map(pairs.iter().map(|(key, value)| ((*key).into(), Tree::Int(*value))).collect())
    };
    let same = |source: &dyn Source, one: &str, other: &str| {
        let found = |address| find(source, &FakeRequest::get("/").from(address)).unwrap();
        found(one) == found(other)
    };
    let default = build("client_address", Tree::Null, &[]).unwrap();
    assert!(same(&*default, "192.0.2.1:1", "192.0.2.1:2"));
    assert!(same(&*default, "192.0.2.1:1", "[::ffff:192.0.2.1]:2"));
    assert!(!same(&*default, "192.0.2.1:1", "192.0.2.2:1"));
    assert!(same(&*default, "[2001:db8::1]:1", "[2001:db8::ffff:1]:2"));
    assert!(!same(&*default, "[2001:db8::1]:1", "[2001:db8:0:1::1]:1"));
    let wide = build("client_address", map(&[("v4", 24), ("v6", 0)]), &[]).unwrap();
    assert!(same(&*wide, "192.0.2.1:1", "192.0.2.200:1"));
    assert!(same(&*wide, "[::2]:1", "[2001:db8::1]:1"));
    assert!(!same(&*wide, "192.0.2.1:1", "192.0.3.1:1"));
    assert_eq!(find(&*default, &FakeRequest::get("/").from("/run/a.sock")), Err(Found::Absent));
    for bad in [map(&[("v4", 33)]), map(&[("v6", -1)]), map(&[("v5", 1)]), text("all")] {
        assert!(build("client_address", bad, &[]).is_none());
    }
}

#[test]
fn a_claim_of_an_unverified_token() {
    let source = build("jwt_claim", text("sub"), &[("unverified", Tree::Bool(true))]).unwrap();
    assert!(source.warning().is_some() && source.is_caller_chosen());
    let with =
        |header: &str| find(&*source, &FakeRequest::get("/").header("authorization", header));
    let token = |claims: &str| format!("Bearer e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
    assert_eq!(with(&token(r#"{"sub":"bob"}"#)).unwrap(), b"bob");
    assert_eq!(with(&token(r#"{"sub":42}"#)).unwrap(), b"42");
    assert_eq!(with(&token(r#"{"sub":"bob"}"#).replace("Bearer", "bEARER")).unwrap(), b"bob");
    assert_eq!(with(&token(r#"{"sub":"bob"}"#).replace("Bearer ", " Bearer  ")).unwrap(), b"bob");
    /// Maximum number of bytes of claims.
    const LONGEST: usize = 12_288;
    let claims_of = |bytes: usize| {
        let claims = r#"{"sub":"bob","p":""}"#;
        token(&claims.replace("\"\"}", &format!("\"{}\"}}", "x".repeat(bytes - claims.len()))))
    };
    assert_eq!(with(&claims_of(LONGEST)).unwrap(), b"bob");
    for absent in [
        token("{}"),
        token(r#"{"sub":""}"#),
        token(r#"{"sub":{"a":1}}"#),
        token("not json"),
        token(&"[".repeat(100_000)),
        token(&format!("{{\"sub\":\"bob\",\"p\":[{}1]}}", "1,".repeat(9_000))),
        token(r#"{"sub":1.5}"#),
        token(r#"["sub","bob"]"#),
        claims_of(LONGEST + 1),
        "Bearer a.b".into(),
        "Bearer ".into(),
        "Basic e30.e30.x".into(),
        "é".into(),
    ] {
        assert_eq!(with(&absent), Err(Found::Absent), "{absent:.40}");
    }
}

#[test]
fn a_claim_that_jwt_authn_left() {
    let source = build("jwt_claim", text("sub"), &[("payload", text("claims"))]).unwrap();
    let path = ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "claims", "sub"];
    let request = FakeRequest::get("/");
    assert_eq!(find(&*source, &request), Err(Found::NoMetadata));
    assert_eq!(find(&*source, &request.property(&path, "bob")).unwrap(), b"bob");
    assert!(build("jwt_claim", text("sub"), &[]).is_none());
    let both = [("payload", text("claims")), ("unverified", Tree::Bool(true))];
    assert!(build("jwt_claim", text("sub"), &both).is_none());
}

#[test]
fn metadata_and_peer() {
    let path = Tree::List(vec![text("ns.with.dots"), text("a"), text("b")]);
    let source = build("metadata", path, &[]).unwrap();
    let request = FakeRequest::get("/");
    assert_eq!(find(&*source, &request), Err(Found::NoMetadata));
    let there = request.property(&["metadata", "filter_metadata", "ns.with.dots", "a", "b"], "v");
    assert_eq!(find(&*source, &there).unwrap(), b"v");
    for bad in ["", "a\0b"] {
        for names in [[bad, "name"], ["space", bad]] {
            assert!(build("metadata", Tree::List(names.map(text).to_vec()), &[]).is_none());
        }
    }
    assert!(build("metadata", Tree::List(vec![text("only")]), &[]).is_none());

    let peer = build("peer", text("uri_san"), &[]).unwrap();
    let request = FakeRequest::get("/");
    assert_eq!(find(&*peer, &request), Err(Found::Absent));
    let there = request.property(&["connection", "uri_san_peer_certificate"], "spiffe://a/b");
    assert_eq!(find(&*peer, &there).unwrap(), b"spiffe://a/b");
    assert!(build("peer", text("name"), &[]).is_none());
}

/// A source reports whether clients choose its value, and the header that contains only this value.
#[test]
fn a_source_says_whose_word_it_takes() {
    let unverified = ("unverified", Tree::Bool(true));
    let path = Tree::List(vec![text("space"), text("name")]);
    let nothing = Tree::Map(Vec::new());
    for (kind, value, options, is_chosen, header) in [
        ("header", text("X-Account"), vec![], true, Some("x-account")),
        ("cookie", text("sid"), vec![], true, None),
        ("query", text("token"), vec![], true, None),
        ("jwt_claim", text("sub"), vec![unverified], true, None),
        ("jwt_claim", text("sub"), vec![("payload", text("p"))], false, None),
        ("metadata", path, vec![], false, None),
        ("peer", text("sha256"), vec![], false, None),
        ("client_address", nothing, vec![], false, None),
    ] {
        let source = build(kind, value, &options).unwrap();
        assert_eq!((source.is_caller_chosen(), source.header()), (is_chosen, header), "{source:?}");
    }
}

#[test]
fn a_name_is_not_empty_and_holds_no_nul() {
    for kind in ["header", "cookie", "query", "jwt_claim"] {
        let options = if kind == "jwt_claim" { vec![("payload", text("p"))] } else { Vec::new() };
        for (name, is_one) in [("a", true), ("", false), ("a\0b", false), ("\0", false)] {
            assert_eq!(build(kind, text(name), &options).is_some(), is_one, "{kind}: {name:?}");
        }
    }
    for payload in ["", "a\0b"] {
        assert!(build("jwt_claim", text("sub"), &[("payload", text(payload))]).is_none());
    }
}
