//! Policies of teams with the document of a platform.

mod attack;

use std::collections::BTreeMap;

use diana_compose::{
    AcceptedSpec, AttachedRoute, Composition, Expression, Namespace, NamespaceSelector, Plane,
    Platform, PolicyObject, PolicyReason, PolicyStatus, Rights, compose,
};
use diana_config::resource::PolicyTargetRef;
use diana_config::{ConfigSource, Reader};
use diana_policy::Scope;
use diana_policy::remote::Own;
use diana_policy::tree::Tree;
use kit::fake::FakeRequest;

use crate::limiter::Gate;

fn tree(text: &str) -> Tree {
    ConfigSource::read(text.as_bytes()).unwrap_or_else(|it| panic!("{it}\n{text}")).documents()[0]
        .clone()
}

/// A platform that allows these keys, and `url`, `rules` and those of a plain rule.
fn platform(document: &str, keys: &str) -> Platform {
    let plain = "url rules name actor unit rpu";
    let keys = plain.split(' ').chain(keys.split(' ')).map(String::from).collect();
    let rights = Rights {
        namespaces: NamespaceSelector::default(),
        rules: 10,
        callers: 1000,
        scopes: vec![Scope::Local, Scope::Gateway],
        keys,
        defaults: ["default".into()].into(),
    };
    Platform { document: tree(document), own: Own::default(), rights, plane: Plane::EnvoyGateway }
}

fn namespace(name: &str) -> Namespace {
    Namespace { name: name.into(), labels: BTreeMap::from([("team".into(), name.into())]) }
}

fn route(name: &str) -> AttachedRoute {
    let (namespace, name) = name.split_once('/').unwrap();
    let target = PolicyTargetRef { kind: "HTTPRoute".into(), name: name.into() };
    AttachedRoute { namespace: namespace.into(), target, rules: vec![None, None] }
}

fn routes() -> Vec<AttachedRoute> {
    ["team-a/shop", "team-b/cart", "team-b/old.cart"].map(route).into()
}

fn namespaces() -> Vec<Namespace> {
    ["team-a", "team-b"].map(namespace).into()
}

/// A policy, such as `team-a/limits`, for a route of its namespace. The older ones have lower numbers.
fn policy(name: &str, created: i64, route: &str, limits: &str) -> PolicyObject {
    let (namespace, name) = name.split_once('/').unwrap();
    let target = format!("{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: {route}}}");
    PolicyObject {
        namespace: namespace.into(),
        name: name.into(),
        created,
        generation: 1,
        spec: tree(&format!("{{targetRefs: [{target}], limits: {limits}}}")),
        in_force: None,
    }
}

const CHECKOUT: &str =
    "[{url: /checkout, rules: [{name: checkout, actor: all, unit: day, rpu: 1}]}]";

fn composed(platform: &Platform, policies: &[PolicyObject]) -> Composition {
    let composition = compose(platform, policies, &routes(), &namespaces());
    let read = Reader::remote(platform.own.clone()).policy(composition.document.as_bytes());
    read.unwrap_or_else(|problems| panic!("{problems}\n{}", composition.document));
    composition
}

/// The reason and the message of the only policy.
fn refused(platform: &Platform, policy: PolicyObject) -> (PolicyReason, String) {
    let mut composition = composed(platform, &[policy]);
    let refusal = composition.policies.remove(0).refusal.unwrap();
    (refusal.reason, refusal.message)
}

fn status<'c>(composition: &'c Composition, name: &str) -> &'c PolicyStatus {
    composition.policies.iter().find(|it| format!("{}/{}", it.namespace, it.name) == name).unwrap()
}

const PLATFORM: &str = "{limits: [{Url: /, rules: [{name: default, actor: account, unit: day, rpu: 3}]}], \
                        actors: {tenant: [{header: x-tenant}]}}";

#[test]
fn policy_limits_its_route_beside_the_rules_of_the_platform() {
    let composition =
        composed(&platform(PLATFORM, ""), &[policy("team-a/limits", 1, "shop", CHECKOUT)]);
    assert_eq!(status(&composition, "team-a/limits").refusal, None);
    let mut gate = Gate::new(&composition.document);
    let checkout = |route: &str| FakeRequest::get("/checkout").routed(route);
    let own = "httproute/team-a/shop/rule/0/match/0/shop_example_com";
    assert!(gate.admits(&checkout(own)));
    assert!(!gate.admits(&checkout(own)));
    assert!(gate.admits(&checkout("httproute/team-a/shop-2/rule/0")));
    assert!(gate.admits(&FakeRequest::get("/checkout")));
    // Of the platform.
    let account = checkout("httproute/team-b/cart/rule/0").header("x-account-id", "a");
    assert_eq!((0..5).filter(|_| gate.admits(&account)).count(), 3);
}

#[test]
fn names_have_their_owner_except_for_clients() {
    let limits = "[{url: /, rules: [{name: a_b, actor: all, unit: day, rpu: 0, response: {body: '{rule}', problem: true}}]}]";
    let policies = [policy("team-b/v1.limits", 1, "cart", limits)];
    let composition = composed(&platform(PLATFORM, "response"), &policies);
    let mut gate = Gate::new(&composition.document);
    let refusal = gate.refusal(&FakeRequest::get("/").routed("httproute/team-b/cart/rule/0"));
    assert_eq!(&*refusal.by.rule, "team-b/v1.limits/a_b");
    assert!(refusal.by.state().contains("rule=team-b/v1.limits/a_b "));
    let shown =
        format!("{:?} {}", refusal.headers().iter().collect::<Vec<_>>(), refusal.body(b"7"));
    assert!(shown.contains("\"a_b\"") && !shown.contains("team"), "{shown}");
    let metrics = gate.metrics();
    assert!(
        metrics.contains(&"diana.ns.rule.team-b_S_v1_D_limits_S_a_b.refused 1".into()),
        "{metrics:?}"
    );
}

#[test]
fn names_in_metrics_are_those_of_one_rule() {
    let parts = ["a", "b", "a-b", "a.b", "a--b", "a-d-b", "s", "d"];
    let rules = ["a", "a_b", "a-b", "a_h_b", "--", "-_-", "a_s_b", "_s_", "s", "a__s__b"];
    let plain = |name: &str| name.replace('-', "_");
    let owned = parts.iter().filter(|space| !space.contains('.')).flat_map(|space| {
        parts.iter().flat_map(move |policy| rules.map(|rule| format!("{space}/{policy}/{rule}")))
    });
    // Names of the platform's own rules stay as they are.
    let own = rules.iter().filter(|name| !name.contains('-')).map(|name| String::from(*name));
    let names: Vec<_> = owned.chain(own).collect();
    // A hyphen and an underscore are the same in Prometheus.
    let seen: std::collections::BTreeSet<_> =
        names.iter().map(|name| plain(&diana_policy::names::in_metrics(name))).collect();
    let different: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(seen.len(), different.len());
}

#[test]
fn policy_with_mistakes_names_them_and_its_last_good_form_stays() {
    let platform = platform(PLATFORM, "algo");
    let wrong = "[{url: checkout, rules: [{name: a, actor: acount, unit: minute, rpu: 20}]}]";
    let (reason, message) = refused(&platform, policy("team-a/limits", 1, "shop", wrong));
    assert_eq!(reason, PolicyReason::Invalid);
    assert!(message.contains("spec.limits[0].url: "), "{message}");
    assert!(
        message.contains("spec.limits[0].rules[0].actor: found `acount`; did you mean `account`?"),
        "{message}"
    );

    // The message names keys of the resource, which are others in a document.
    let names =
        "[{urls: [/a, b], rules: [{name: a, actors: [account, acount], unit: minute, rpu: 20}]}]";
    let wide = self::platform(PLATFORM, "urls actors");
    let (_, message) = refused(&wide, policy("team-a/limits", 1, "shop", names));
    assert!(message.contains("spec.limits[0].urls[1]: "), "{message}");
    assert!(message.contains("spec.limits[0].rules[0].actors[1]: found `acount`"), "{message}");

    let good = policy("team-a/limits", 1, "shop", CHECKOUT);
    let in_force = AcceptedSpec { generation: 1, spec: good.spec };
    let newer = PolicyObject {
        generation: 2,
        in_force: Some(in_force.clone()),
        ..policy("team-a/limits", 1, "shop", wrong)
    };
    let composition = composed(&platform, &[newer]);
    let [PolicyStatus { generation: 2, refusal: Some(refusal), in_force: Some(form), .. }] =
        composition.policies.as_slice()
    else {
        panic!("{composition:?}")
    };
    assert_eq!((refusal.reason, form), (PolicyReason::Invalid, &in_force));
    assert!(composition.document.contains("team-a/limits/checkout"));
}

#[test]
fn missing_route_is_reported_and_the_others_are_limited() {
    let mut both = policy("team-a/limits", 1, "shop", CHECKOUT);
    both.spec = tree(&format!(
        "{{targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}}, \
         {{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}}], limits: {CHECKOUT}}}"
    ));
    let composition = composed(&platform(PLATFORM, ""), &[both]);
    let refusal = status(&composition, "team-a/limits").refusal.as_ref().unwrap();
    assert_eq!(refusal.reason, PolicyReason::TargetNotFound);
    assert!(refusal.message.contains("HTTPRoute `cart`"), "{}", refusal.message);
    assert!(composition.document.contains("httproute/team-a/shop/"));
    assert!(!composition.document.contains("cart"));

    let alone = composed(&platform(PLATFORM, ""), &[policy("team-a/limits", 1, "none", CHECKOUT)]);
    assert!(!alone.document.contains("team-a"), "{}", alone.document);
}

#[test]
fn platform_decides_what_policies_may_do() {
    let of = |rule: &str| {
        format!("[{{url: /, rules: [{{name: a, actor: all, unit: day, rpu: 1{rule}}}]}}]")
    };
    let refused = |keys: &str, rule: &str| {
        let (reason, message) =
            refused(&platform(PLATFORM, keys), policy("team-a/limits", 1, "shop", &of(rule)));
        assert_eq!(reason, PolicyReason::NotAllowed, "{message}");
        message
    };
    assert!(refused("", ", shadow: true").starts_with("found `shadow`, "));
    assert!(
        refused("scope", ", scope: global")
            .contains("`scope: global`, allowed for policies: local, gateway")
    );
    // Diana removes their headers from all requests, so no list of keys allows them.
    assert!(refused("over", ", over: {mark: authorization, value: a}").contains("other routes"));
    assert!(
        refused("hot", ", hot: {over: 1, per: 1s, header: authorization}").contains("other routes")
    );
}

#[test]
fn rules_replace_defaults_only() {
    let document = "{limits: [{Url: /, rules: [{name: default, actor: all, unit: day, rpu: 1}, {name: own, actor: all, unit: day, rpu: 9}]}]}";
    let platform = platform(document, "replaces");
    let of = |name| {
        format!(
            "[{{url: /, rules: [{{name: a, actor: all, unit: day, rpu: 5, replaces: [{name}]}}]}}]"
        )
    };
    let (reason, message) = refused(&platform, policy("team-a/limits", 1, "shop", &of("own")));
    assert_eq!(reason, PolicyReason::NotAllowed);
    assert_eq!(
        message,
        "the rule `a` replaces `own`, which is no default of the platform, allowed: default"
    );
    let two = [
        policy("team-a/new", 2, "shop", &of("default")),
        policy("team-a/old", 1, "shop", &of("default")),
    ];
    let composition = composed(&platform, &two);
    assert_eq!(status(&composition, "team-a/old").refusal, None);
    let refusal = status(&composition, "team-a/new").refusal.as_ref().unwrap();
    assert_eq!(refusal.reason, PolicyReason::Conflicted);
    assert!(refusal.message.contains("`old` is older"), "{}", refusal.message);
    let mut gate = Gate::new(&composition.document);
    let shop = FakeRequest::get("/").routed("httproute/team-a/shop/rule/0");
    assert_eq!((0..9).filter(|_| gate.admits(&shop)).count(), 5);
    assert_eq!((0..9).filter(|_| gate.admits(&FakeRequest::get("/"))).count(), 1);
}

#[test]
fn namespace_has_a_number_of_rules_and_the_oldest_come_first() {
    let platform = Platform {
        rights: Rights { rules: 2, ..platform(PLATFORM, "").rights },
        ..platform(PLATFORM, "")
    };
    let policies = [
        policy("team-a/third", 3, "shop", CHECKOUT),
        policy("team-a/first", 1, "shop", CHECKOUT),
        policy("team-a/second", 2, "shop", CHECKOUT),
        policy("team-b/own", 4, "cart", CHECKOUT),
    ];
    let composition = composed(&platform, &policies);
    let reasons = composition
        .policies
        .iter()
        .map(|it| (it.name.as_str(), it.refusal.as_ref().map(|it| it.reason)));
    let expected = [
        ("first", None),
        ("second", None),
        ("third", Some(PolicyReason::NotAllowed)),
        ("own", None),
    ];
    assert_eq!(reasons.collect::<Vec<_>>(), expected);
}

#[test]
fn callers_of_a_namespace_are_divided_over_its_rules() {
    let rules = |count: usize| {
        let rule = |number| format!("{{name: r{number}, actor: account, unit: day, rpu: 1}}");
        let rules: Vec<_> = (0..count).map(rule).collect();
        format!("[{{url: /, rules: [{}]}}]", rules.join(", "))
    };
    let keys = |callers: usize| {
        let rights = Rights { callers, ..platform(PLATFORM, "").rights };
        let platform = Platform { rights, ..platform(PLATFORM, "") };
        let policies = [
            policy("team-a/first", 1, "shop", &rules(2)),
            policy("team-a/second", 2, "shop", &rules(1)),
            // Of a route that does not exist, so it has no tables.
            policy("team-a/third", 3, "none", &rules(5)),
            policy("team-b/limits", 4, "cart", &rules(1)),
        ];
        let document = composed(&platform, &policies).document;
        let read = Reader::remote(Own::default()).policy(document.as_bytes()).unwrap();
        read.rules().map(|rule| rule.keys).collect::<Vec<_>>()
    };
    assert_eq!(keys(100), [None, Some(33), Some(33), Some(33), Some(100)]);
    assert_eq!(keys(2), [None, Some(1), Some(1), Some(1), Some(2)]);
}

#[test]
fn namespaces_are_selected_by_labels() {
    let select = |selector| {
        let rights = Rights { namespaces: selector, ..platform(PLATFORM, "").rights };
        let platform = Platform { rights, ..platform(PLATFORM, "") };
        let composition = composed(&platform, &[policy("team-a/limits", 1, "shop", CHECKOUT)]);
        let refusal = status(&composition, "team-a/limits").refusal.as_ref().map(|it| it.reason);
        assert_eq!(refusal.is_none(), composition.document.contains("team-a/limits"));
        refusal.is_none()
    };
    let label = |value: &str| NamespaceSelector {
        labels: BTreeMap::from([("team".into(), value.into())]),
        expressions: Vec::new(),
    };
    let expression = |key: &str, expression| NamespaceSelector {
        labels: BTreeMap::new(),
        expressions: vec![(key.into(), expression)],
    };
    assert!(select(label("team-a")) && !select(label("team-b")));
    assert!(select(expression("team", Expression::In(vec!["x".into(), "team-a".into()]))));
    assert!(!select(expression("team", Expression::NotIn(vec!["team-a".into()]))));
    assert!(select(expression("other", Expression::NotIn(vec!["team-a".into()]))));
    assert!(
        select(expression("team", Expression::Exists))
            && !select(expression("other", Expression::Exists))
    );
    assert!(!select(expression("team", Expression::DoesNotExist)));
    // A namespace that is not known is not selected.
    let unknown = compose(
        &platform(PLATFORM, ""),
        &[policy("team-c/limits", 1, "shop", CHECKOUT)],
        &routes(),
        &namespaces(),
    );
    assert_eq!(
        unknown.policies[0].refusal.as_ref().map(|it| it.reason),
        Some(PolicyReason::NotAllowed)
    );
}

#[test]
fn newest_policies_beyond_a_document_are_not_allowed() {
    // Each has a tenth of the largest document.
    let paths: Vec<_> = (0..90).map(|number| format!("/{number}{}", "x".repeat(1000))).collect();
    let big = format!(
        "[{{urls: [{}], rules: [{{name: a, actor: all, unit: day, rpu: 1}}]}}]",
        paths.join(", ")
    );
    let policies: Vec<_> = (0..20)
        .map(|number| policy(&format!("team-a/p{number}"), 100 - number, "shop", &big))
        .collect();
    let rights = Rights { rules: 1000, ..platform(PLATFORM, "urls").rights };
    let platform = Platform { rights, ..platform(PLATFORM, "urls") };
    let composition = composed(&platform, &policies);
    assert!(composition.document.len() <= 1 << 20);
    let accepted = policies
        .iter()
        .filter(|it| status(&composition, &format!("team-a/{}", it.name)).refusal.is_none());
    let accepted: Vec<_> = accepted.map(|it| it.created).collect();
    assert_eq!(accepted, (81..=91).rev().collect::<Vec<_>>());
}

#[test]
fn routes_of_istio_have_names_that_no_other_team_can_choose() {
    let on_istio = |routes: &[AttachedRoute]| {
        let platform = Platform { plane: Plane::Istio, ..platform(PLATFORM, "") };
        compose(&platform, &[policy("team-a/limits", 1, "shop", CHECKOUT)], routes, &namespaces())
    };
    let composition = on_istio(&routes());
    assert!(
        composition.document.contains(r#"{"route":["team-a.shop.0","team-a.shop.1"]}"#),
        "{}",
        composition.document
    );
    let named = AttachedRoute { rules: vec![Some("cart".into())], ..route("team-a/shop") };
    let composition = on_istio(&[named]);
    let refusal = composition.policies[0].refusal.as_ref().unwrap();
    assert_eq!(refusal.reason, PolicyReason::NotAllowed);
    assert!(refusal.message.contains("remove the names of its rules"), "{}", refusal.message);
    let mut grpc = route("team-a/shop");
    grpc.target.kind = "GRPCRoute".into();
    let composition = on_istio(&[route("team-a/shop"), grpc]);
    assert!(
        composition.policies[0].refusal.as_ref().unwrap().message.contains("rename one of them")
    );
    assert!(!composition.document.contains("team-a"));
}

#[test]
fn order_of_objects_does_not_matter() {
    let policies = [
        policy("team-a/limits", 1, "shop", CHECKOUT),
        policy("team-b/limits", 1, "cart", CHECKOUT),
        policy("team-b/more", 0, "old.cart", CHECKOUT),
    ];
    let expected = composed(&platform(PLATFORM, ""), &policies);
    let mut reversed = policies.to_vec();
    reversed.reverse();
    let mut routes = routes();
    routes.reverse();
    assert_eq!(compose(&platform(PLATFORM, ""), &reversed, &routes, &namespaces()), expected);
    let numbers = "{limits: [], plans: {p: {by: [{jwt_claim: a, payload: b}], of: {x: {rpu: 9}}}}, actors: {a: [{header: x-a}]}}";
    let document = composed(&platform(numbers, ""), &[]).document;
    assert_eq!(tree(&document).get("plans"), tree(numbers).get("plans"));
}
