//! Rules by the route: the one by which Envoy would forward the request as Diana sees it.

use serde_json::{Value, json};

use crate::harness::{Envoy, Gateway, Upstream, hcm_filter, is_native};

/// An empty filter that makes Envoy select the route of changed headers.
fn refreshing() -> Value {
    hcm_filter("route", "rbac", "RBAC", json!({}))
}

/// A filter that sets the header `x-plan` to the value of `x-set`. Then Envoy selects the route again,
/// unless `keeps_route` is set.
fn lua(keeps_route: bool) -> Value {
    let script = "function envoy_on_request(request)
        local plan = request:headers():get('x-set')
        if plan then request:headers():replace('x-plan', plan) end
    end";
    let code = json!({"inline_string": script});
    let config = json!({"default_source_code": code, "clear_route_cache": !keeps_route});
    hcm_filter("lua", "lua", "Lua", config)
}

/// Routes that answer, by the conditions of each.
fn routes(list: &[(&str, Value)]) -> Value {
    let answer = json!({"status": 200, "body": {"inline_string": "ok"}});
    let route = |(name, condition): &(&str, Value)| json!({"name": name, "match": condition, "direct_response": answer});
    let list: Vec<Value> = list.iter().map(route).collect();
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": list}]})
}

/// Routes by the header `x-plan`, by the mark, and by the path.
fn shop() -> Value {
    let header = |name: &str, value: &str| json!({"prefix": "/", "headers": [{"name": name, "string_match": {"exact": value}}]});
    routes(&[
        ("gold", header("x-plan", "ada")),
        ("spilled", header("x-mark", "forged")),
        ("httproute/team-a/shop/rule/0/match/0/*", json!({"prefix": "/shop"})),
        ("httproute/team-a/shopping/rule/0/match/0/*", json!({"prefix": "/shopping"})),
        ("", json!({"prefix": "/nameless"})),
        ("plain", json!({"prefix": "/plain"})),
    ])
}

/// A rule of that many permits for each of these conditions on the route.
fn rules(list: &[(&str, &str, u32)]) -> String {
    let entry = |(name, condition, permits): &(&str, &str, u32)| {
        format!(
            "- {{Url: /, {condition}, rules: [{{name: {name}, actor: all, unit: day, rpu: {permits}, algo: W}}]}}\n"
        )
    };
    format!("limits:\n{}", list.iter().map(entry).collect::<String>())
}

/// Rules for the routes of `shop`.
fn of_shop() -> String {
    rules(&[
        ("gold", "match: {route: gold}", 3),
        ("spilled", "match: {route: {exact: spilled}}", 4),
        ("shop", "match: {route: {prefix: httproute/team-a/shop/}}", 1),
        ("plain", "match: {route: [other, plain]}", 2),
    ])
}

/// The number of admitted ones of six requests, of which no admitted one follows a refused one.
#[track_caller]
fn admitted(envoy: &Envoy, path: &str, headers: &[(&str, &str)]) -> usize {
    let statuses = envoy.statuses(6, path, headers);
    let count = statuses.iter().take_while(|status| **status == 200).count();
    assert!(statuses[count..].iter().all(|status| *status == 503), "{statuses:?}");
    count
}

#[test]
fn rules_count_the_requests_of_their_routes() {
    let envoy = Gateway::with(&of_shop()).routed(shop(), json!({})).start_shared();
    assert_eq!(admitted(&envoy, "/shop?x", &[]), 1);
    assert_eq!(admitted(&envoy, "/shopping", &[]), 0, "the first route with this beginning");
    assert_eq!(admitted(&envoy, "/plain/x", &[]), 2);
    assert_eq!(admitted(&envoy, "/nameless", &[]), 6);
    assert_eq!(admitted(&envoy, "/plain", &[("x-plan", "ada")]), 3);
    assert_eq!(envoy.statuses(3, "/nowhere", &[]), [404; 3]);
    envoy.assert_unharmed();
}

/// A request without a route meets no condition on it.
#[test]
fn nothing_is_excluded_by_the_route_that_a_request_does_not_have() {
    let list = rules(&[
        ("others", "unless: {route: [gold, plain]}", 2),
        ("all", "except: {route: {prefix: go}}", 4),
    ]);
    let envoy = Gateway::with(&list).routed(shop(), json!({})).start_shared();
    assert_eq!(envoy.statuses(3, "/nowhere", &[]), [404, 404, 503]);
    assert_eq!(admitted(&envoy, "/plain", &[]), 2);
    assert_eq!(admitted(&envoy, "/plain", &[("x-plan", "ada")]), 6);
    let except = format!("{list}except: {{route: plain}}\n");
    let envoy = Gateway::with(&except).routed(shop(), json!({})).start_shared();
    assert_eq!(admitted(&envoy, "/plain", &[]), 6);
    assert_eq!(admitted(&envoy, "/nameless", &[]), 2);
    envoy.assert_unharmed();
}

#[test]
fn names_of_routes_are_compared_as_they_are() {
    let long = "n".repeat(255);
    let names = [
        "team-a.shop.0",
        "httproute/team-b/any.host/rule/0/match/1/*",
        "Größe/店",
        "with space, {brace} \"quote\"",
        "TEAM-A.shop.0",
        "team-a.shop.0.more",
        &long,
    ];
    let paths: Vec<String> = (0..names.len()).map(|number| format!("/{number}")).collect();
    let list: Vec<_> =
        names.iter().zip(&paths).map(|(name, path)| (*name, json!({"path": path}))).collect();
    let conditions: Vec<String> =
        names.iter().map(|name| format!("match: {{route: {}}}", json!(name))).collect();
    let rule = |(number, condition): (usize, &String)| {
        rules(&[(&*format!("r{number}"), condition, 1 + number as u32 % 3)])
            .replace("limits:\n", "")
    };
    let list_of_rules: String = conditions.iter().enumerate().map(rule).collect();
    let envoy = Gateway::with(&format!("limits:\n{list_of_rules}"))
        .routed(routes(&list), json!({}))
        .start_shared();
    for (number, path) in paths.iter().enumerate() {
        assert_eq!(admitted(&envoy, path, &[]), 1 + number % 3, "{}", names[number]);
    }
    envoy.assert_unharmed();
}

/// A filter in front changes a header, and the route with it. In wasm the former route counts, unless an
/// empty filter is between the two.
#[test]
fn route_is_that_of_the_headers_after_other_filters() {
    let gateway = || Gateway::with(&of_shop()).routed(shop(), json!({})).behind(lua(false));
    let envoy = gateway().behind(refreshing()).start_shared();
    assert_eq!(admitted(&envoy, "/plain", &[("x-set", "ada")]), 3);
    assert_eq!(admitted(&envoy, "/plain", &[("x-plan", "ada"), ("x-set", "bob")]), 2);
    let without = gateway().start_shared();
    let expected = if is_native() { 3 } else { 2 };
    assert_eq!(admitted(&without, "/plain", &[("x-set", "ada")]), expected);
    // A filter that keeps the route.
    let keeping = Gateway::with(&of_shop()).routed(shop(), json!({})).behind(lua(true));
    let envoy = keeping.behind(refreshing()).start_shared();
    assert_eq!(admitted(&envoy, "/plain", &[("x-set", "ada")]), 2);
    envoy.assert_unharmed();
}

/// A token of ada, by which `jwt_authn` sets `x-plan`, and Envoy selects another route.
#[test]
fn route_of_a_verified_token_counts() {
    const ADA: &str = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ0ZXN0Iiwic3ViIjoiYWRhIn0.LH4SKo9QkRoEJIRuWp53-XoFrAB_vSzx_bCxYsdA_Gw";
    let keys = r#"{"keys":[{"kty":"oct","alg":"HS256","k":"ZGlhbmEgdGVzdHMgd2l0aCB0aGlzIGtleSwgMzIgYnl0ZXM"}]}"#;
    let provider = json!({
        "issuer": "test",
        "local_jwks": {"inline_string": keys},
        "claim_to_headers": [{"header_name": "x-plan", "claim_name": "sub"}],
        "clear_route_cache": true,
    });
    let requirement = json!({"requires_any": {"requirements": [{"provider_name": "test"}, {"allow_missing": {}}]}});
    let jwt = json!({
        "providers": {"test": provider},
        "rules": [{"match": {"prefix": "/"}, "requires": requirement}],
    });
    let envoy = Gateway::with(&of_shop())
        .routed(shop(), json!({}))
        .behind(hcm_filter("jwt", "jwt_authn", "JwtAuthentication", jwt))
        .behind(refreshing())
        .start_shared();
    assert_eq!(admitted(&envoy, "/plain", &[("authorization", ADA)]), 3);
    assert_eq!(admitted(&envoy, "/plain", &[]), 2);
    envoy.assert_unharmed();
}

/// Envoy has selected the route by the mark that Diana removes. The wasm module cannot learn the next
/// one, the dynamic module can.
#[test]
fn forged_mark_chooses_no_permits() {
    let forged = [("x-mark", "forged")];
    for document in [
        format!("mark: x-mark\n{}", of_shop()),
        of_shop().replace(
            "algo: W}]}\n- {Url: /, match: {route: [",
            "algo: W, over: {mark: x-mark, value: spill}}]}\n- {Url: /, match: {route: [",
        ),
    ] {
        assert!(document.contains("x-mark"));
        let gateway = Gateway::with(&document).routed(shop(), json!({})).behind(refreshing());
        let envoy = gateway.start_shared();
        if is_native() {
            assert_eq!(admitted(&envoy, "/plain", &forged), 2);
        } else {
            assert_eq!(envoy.statuses(2, "/plain", &forged), [400; 2]);
            let log = crate::harness::eventually("the access log", || {
                Some(envoy.access_log()).filter(|lines| lines.len() == 2)
            });
            assert!(log.iter().all(|line| line.starts_with("400 diana_forged_mark ")), "{log:?}");
            assert_eq!(
                envoy
                    .get("/plain", &[("X-Mark", "forged"), ("content-type", "application/grpc")])
                    .status,
                200
            );
            assert_eq!(admitted(&envoy, "/plain", &[]), 2);
        }
        assert_eq!(envoy.get("/nameless", &[]).status, 200);
        envoy.assert_unharmed();
    }
    // Rules that do not depend on the route, or never refuse, pass the request on.
    let free = rules(&[("all", "match: {methods: [GET]}", 1)]);
    let shadow = of_shop().replace("algo: W", "algo: W, shadow: true");
    for (document, statuses) in [(free, [200, 503]), (shadow, [200, 200])] {
        let gateway = Gateway::with(&format!("mark: x-mark\n{document}")).routed(shop(), json!({}));
        let envoy = gateway.start_shared();
        assert_eq!(envoy.statuses(2, "/plain", &forged), statuses);
    }
}

/// The mark of an earlier filter of the module is no forged one, and may choose the route.
#[test]
fn mark_of_an_earlier_filter_chooses_the_route() {
    let earlier = Gateway::with(
        "mark: x-plan\nlimits: [{Url: /, rules: [{name: ada, actor: all, unit: day, rpu: 0, algo: W, shadow: true}]}]",
    );
    let later = Gateway::with(&format!("mark: x-plan\n{}", of_shop())).routed(shop(), json!({}));
    let envoy = later.behind_module(&earlier, false).behind(refreshing()).start_shared();
    assert_eq!(admitted(&envoy, "/plain", &[]), 3);
    envoy.assert_unharmed();
}

/// An internal redirect is a further request, on another route; a retry is none.
#[test]
fn each_leg_of_a_redirect_counts_by_its_route() {
    let service = Upstream::answering(|arrival, to| {
        use std::io::Write;
        let head = match &*arrival.path {
            "/moves" => "302 Found\r\nlocation: http://here/lands",
            "/fails" => "500 Internal Server Error",
            _ => "200 OK",
        };
        to.write_all(format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n").as_bytes())
    });
    let cluster = service.cluster();
    let redirected =
        json!({"cluster": cluster, "internal_redirect_policy": {"max_internal_redirects": 1}});
    let retried =
        json!({"cluster": cluster, "retry_policy": {"retry_on": "5xx", "num_retries": 2}});
    let route = |name: &str, action: &Value| json!({"name": name, "match": {"prefix": format!("/{name}")}, "route": action});
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        route("moves", &redirected), route("fails", &retried), route("lands", &json!({"cluster": cluster})),
    ]}]});
    let list = rules(&[
        ("moves", "match: {route: moves}", 9),
        ("lands", "match: {route: lands}", 2),
        ("fails", "match: {route: fails}", 2),
    ]);
    let envoy = Gateway::with(&list).before(&service).routed(routes, json!({})).start_shared();
    // The second leg is refused.
    assert_eq!(envoy.statuses(3, "/moves", &[]), [200, 200, 503]);
    assert_eq!(envoy.statuses(3, "/fails", &[]), [500, 500, 503]);
    assert_eq!(service.arrivals().iter().filter(|it| it.path == "/fails").count(), 6);
    envoy.assert_unharmed();
}
