//! Which requests a rule judges.

use kit::fake::FakeRequest;

use super::Gate;

#[test]
fn exemptions_on_every_level() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            except: {headers: {x-probe: {exact: '1'}}}
            rules:
              - {actor: all, unit: day, rpu: 0, scope: local, except: {addresses: [10.0.0.0/8]}}
except: {paths: [/healthz]}",
    );
    assert!(gate.admits(&FakeRequest::get("/healthz/live")));
    assert!(gate.admits(&FakeRequest::get("/a").header("x-probe", "1")));
    assert!(gate.admits(&FakeRequest::get("/a").from("10.9.9.9:1")));
    assert!(!gate.admits(&FakeRequest::get("/healthzz").from("11.9.9.9:1").header("x-probe", "2")));
}

#[test]
fn methods_hosts_and_headers_must_all_match() {
    let mut gate = Gate::new(
        "limits:
          - Url: /
            match: {methods: [POST], hosts: ['*.example.com'], headers: {x-app: {prefix: mobile}}}
            rules: [{actor: all, unit: day, rpu: 0, scope: local}]",
    );
    let mut post = FakeRequest::get("/").header("x-app", "mobile-7");
    post.method = Some("POST".into());
    post.authority = Some("api.Example.com:8080".into());
    assert!(!gate.admits(&post));
    post.method = Some("pOSt".into());
    assert!(!gate.admits(&post), "upstreams may take it for POST");
    let other = |change: fn(&mut FakeRequest)| {
        let mut request = post.clone();
        change(&mut request);
        request
    };
    assert!(gate.admits(&other(|request| request.method = Some("GET".into()))));
    assert!(gate.admits(&other(|request| request.authority = Some("example.com".into()))));
    assert!(gate.admits(&other(|request| request.authority = None)));
    assert!(gate.admits(&other(|request| request.headers.clear())));
}

#[test]
fn requests_without_a_path_fall_under_the_root() {
    let mut gate = Gate::new(
        "limits:
          - {Url: /, rules: [{actor: all, unit: hour, rpu: 2, scope: local}]}
          - {Url: /deep, rules: [{actor: all, unit: hour, rpu: 0, scope: local}]}",
    );
    assert!(gate.admits(&FakeRequest { path: None, ..FakeRequest::get("/") }));
    assert!(gate.admits(&FakeRequest::get("*")));
    assert!(!gate.admits(&FakeRequest::get("*")));
}

#[test]
fn a_path_is_exempt_only_as_it_is_written() {
    let mut gate = Gate::new(
        "limits: [{Url: /share/qq, rules: [{actor: all, unit: day, rpu: 0, scope: local}]},
                  {Url: /, rules: [{actor: all, unit: day, rpu: 0, scope: local}]}]
except: {paths: [/healthz]}",
    );
    assert!(gate.admits(&FakeRequest::get("/healthz")));
    assert!(gate.admits(&FakeRequest::get("/healthz/?full=1")));
    // What a router or an upstream makes of these is anybody's guess.
    for path in [
        "/share/qq/..;/..;/healthz",
        "/share/qq\\..\\..\\healthz",
        "/share/qq/%2e%2e%2f%2e%2e%2fhealthz",
        "//healthz",
        "/healthz/../share/qq",
    ] {
        assert!(!gate.admits(&FakeRequest::get(path)), "{path}");
    }
}

#[test]
fn an_entry_and_a_rule_exempt_paths_only_as_they_are_written() {
    let except = "except: {paths: [/share/free]}";
    let rule = "actor: all, unit: day, rpu: 0, scope: local";
    for entry in
        [format!("{except}, rules: [{{{rule}}}]"), format!("rules: [{{{rule}, {except}}}]")]
    {
        let mut gate = Gate::new(&format!("limits: [{{Url: /share, {entry}}}]"));
        assert!(gate.admits(&FakeRequest::get("/share/free/x?y")));
        for path in ["/share/free/..%2fx", "/share/./free", "/share//free", "/share/fre%65"] {
            assert!(!gate.admits(&FakeRequest::get(path)), "{path} under {entry}");
        }
    }
}
