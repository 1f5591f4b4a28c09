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

/// Whether a gate with these conditions beside `Url` refuses a request, as it does all that are meant.
fn refuses(conditions: &str, request: &FakeRequest) -> bool {
    let mut gate = Gate::new(&format!(
        "limits: [{{Url: /, {conditions}, rules: [{{actor: all, unit: day, rpu: 0, scope: local}}]}}]"
    ));
    !gate.admits(request)
}

#[test]
fn one_block_of_several_is_enough() {
    let blocks = "match: [{methods: [POST], query: {a: '1'}}, {cookies: {b: '2'}}, {addresses: [10.0.0.0/8]}]";
    let get = FakeRequest::get("/?a=1").from("192.0.2.1:1");
    assert!(!refuses(blocks, &get), "it is no POST");
    let post = FakeRequest { method: Some("POST".into()), ..get.clone() };
    assert!(refuses(blocks, &post));
    assert!(refuses(blocks, &get.header("cookie", "b=2")));
    assert!(refuses(blocks, &FakeRequest::get("/").from("10.9.9.9:1")));
    assert!(!refuses(blocks, &FakeRequest::get("/").from("/run/a.sock")));
}

#[test]
fn what_is_taken_out_is_taken_out_for_all_readers() {
    let unless = |block: &str| {
        format!("match: {{methods: [GET, post]}}, unless: {block}").replace("post", "POST")
    };
    let get = || FakeRequest::get("/?probe=1");
    for (block, plain, odd) in [
        ("{query: {probe: '1'}}", get(), FakeRequest::get("/?prob%65=1")),
        ("{query: {probe: '1'}}", get(), FakeRequest::get("/?probe=1&probe=2")),
        ("{query: {probe: '1'}}", get(), FakeRequest::get("/?x;probe=1")),
        (
            "{cookies: {c: 'a'}}",
            get().header("cookie", "x=y; c=a"),
            get().header("cookie", "c=%61"),
        ),
        ("{headers: {h: a}}", get().header("h", "a"), get().header("h", "a").header("h", "b")),
        (
            "{hosts: [example.com]}",
            get(),
            FakeRequest { authority: Some("u@example.com".into()), ..get() },
        ),
        (
            "{hosts: [example.com]}",
            get(),
            FakeRequest { authority: Some("example.com,b".into()), ..get() },
        ),
        ("{methods: [GET]}", get(), FakeRequest { method: Some("get".into()), ..get() }),
        (
            "[{methods: [PUT]}, {addresses: [10.0.0.0/8]}]",
            get().from("10.0.0.1:1"),
            get().from("11.0.0.1:1"),
        ),
        (
            "{metadata: {n.s: {k: v}}}",
            get().property(&["metadata", "filter_metadata", "n.s", "k"], "v"),
            get(),
        ),
        (
            "{claims: {payload: jwt, values: {plan: {in: [gold, silver]}}}}",
            get().property(
                &["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "jwt", "plan"],
                "silver",
            ),
            get(),
        ),
    ] {
        assert!(!refuses(&unless(block), &plain), "{block} takes {plain:?} out");
        assert!(refuses(&unless(block), &odd), "{block} must not take {odd:?} out");
    }
}

#[test]
fn spellings_of_values_do_not_escape() {
    for query in ["a=x y", "a=x+y", "%61=x%20y", "b&a=x%20y", "b;a=x+y", "a=1&a=x+y", "a=x+y;z"] {
        let conditions = "match: {query: {a: {exact: x y}}}";
        assert!(refuses(conditions, &FakeRequest::get(&format!("/?{query}"))), "{query}");
    }
    for cookie in ["a=xy", "b=1; a=\"xy\"", "a = xy", "%61=%78y", "a=\"\\170y\"", "a=1; a=xy"] {
        let conditions = "match: {cookies: {a: xy}}";
        assert!(refuses(conditions, &FakeRequest::get("/").header("cookie", cookie)), "{cookie}");
    }
}

#[test]
fn several_paths_share_one_count() {
    let mut gate = Gate::new(
        "limits:
          - {Url: [/a/b, /c], rules: [{name: shared, actor: all, unit: day, rpu: 3, scope: local}]}
          - {Url: /a, rules: [{name: a, actor: all, unit: day, rpu: 9, scope: local}]}
          - {Url: /c/d, rules: [{name: d, actor: all, unit: day, rpu: 9, scope: local}]}",
    );
    assert!(gate.admits(&FakeRequest::get("/a/b/x")));
    assert!(gate.admits(&FakeRequest::get("/c/d")));
    // Both paths cover a reading of it, and it counts once.
    assert!(gate.admits(&FakeRequest::get("/a/b/..;/../c")));
    assert!(!gate.admits(&FakeRequest::get("/c")));
    assert!(gate.admits(&FakeRequest::get("/a")));
    // Each by the path that covers: `a` is judged before `shared` here, and `d` after it there.
    let names = |gate: &mut Gate, path: &str| -> Vec<String> {
        let records = gate.refusal(&FakeRequest::get(path)).records().to_vec();
        records.iter().map(|record| record.rule.to_string()).collect()
    };
    assert_eq!(names(&mut gate, "/a/b"), ["a", "shared"]);
    assert_eq!(names(&mut gate, "/c/d"), ["shared", "d"]);
    assert_eq!(names(&mut gate, "/a/b/..;/../c"), ["shared", "a"]);
}
