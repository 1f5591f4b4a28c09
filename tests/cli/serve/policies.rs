//! `--policies`, with the objects of an API server.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::companion::{Companion, status};
use super::{GOOD, polled, replace, site};

const POLICIES: &str = "controlPlane: envoy-gateway
gateways: [{namespace: plat, name: public}]
pods: [{namespace: proxies, labels: {app: envoy}}]
settings: {}
namespaces: {matchExpressions: [{key: team, operator: Exists}]}
rules: 4
callers: 10000
keys: [url, urls, rules, name, actor, unit, rpu, match]
scopes: [local, gateway]
lease: diana-companion
companion: {labels: {app: companion}, port: 8080}
";

/// A cluster with a Gateway, two teams, and a route of each.
fn cluster() -> Cluster {
    let cluster = Cluster::start();
    let labels = json!({"metadata": {"labels": {"team": "yes"}}});
    for team in ["team-a", "team-b"] {
        cluster.apply(&format!("namespaces//{team}"), labels.clone());
        let parents = json!([{"name": "public", "namespace": "plat"}]);
        let route = json!({"spec": {"parentRefs": parents, "rules": [{}]}});
        cluster.apply(&format!("httproutes/{team}/shop"), route);
    }
    cluster.apply("gateways/plat/public", json!({"spec": {"gatewayClassName": "eg"}}));
    cluster
}

fn policy(rule: Value) -> Value {
    let target = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "shop"});
    json!({"spec": {"targetRefs": [target], "limits": [{"url": "/", "rules": [rule]}]}})
}

fn rule(rpu: u64) -> Value {
    json!({"name": "all", "actor": "all", "unit": "day", "rpu": rpu})
}

/// A folder for companions of a cluster.
fn folder(cluster: &Cluster) -> std::path::PathBuf {
    let folder = site(GOOD);
    fs::write(folder.join("policies.yaml"), POLICIES).unwrap();
    fs::write(folder.join("kubeconfig"), cluster.config()).unwrap();
    folder
}

fn companion(folder: &std::path::Path) -> Companion {
    let policies = folder.join("policies.yaml");
    let more = ["--policies", policies.to_str().unwrap()];
    Companion::with(folder, &folder.join("rules.yaml"), &more)
}

fn document(companion: &Companion) -> String {
    companion.request("GET", "/rules.yaml").split_once("\r\n\r\n").unwrap().1.into()
}

/// The condition of a kind in the summary.
fn condition<'v>(object: &'v Value, kind: &str) -> &'v Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|it| it["type"] == kind)).unwrap_or(&Value::Null)
}

fn is_accepted(object: &Value) -> bool {
    condition(object, "Accepted")["status"] == "True"
}

#[test]
fn policies_are_served_beside_the_rules() {
    let cluster = cluster();
    let folder = folder(&cluster);
    cluster.apply("limitpolicies/team-a/limits", policy(rule(1)));
    let mut companion = companion(&folder);
    companion.wait_for("is served, 2 rules: all, team-a/limits/all");
    assert!(document(&companion).contains("httproute/team-a/shop/"));
    assert_eq!(companion.request("GET", "/ready").lines().last(), Some("ready"));
    let object = cluster.wait("limitpolicies/team-a/limits", is_accepted);
    assert_eq!(object["status"]["observedGeneration"], 1);
    assert_eq!(object["status"]["inForce"]["generation"], 1);
    let gateway = &object["status"]["ancestors"][0];
    assert_eq!(gateway["ancestorRef"]["name"], "public");
    assert_eq!(gateway["conditions"][0]["status"], "True");

    cluster.apply("limitpolicies/team-b/limits", policy(rule(2)));
    companion.wait_for("is served, 3 rules");
    replace(&folder.join("rules.yaml"), "limits: []\n");
    companion.wait_for("is served, 2 rules");
    companion.next_line("these rules have ended: all");
    replace(&folder.join("rules.yaml"), "limit: []\n");
    companion.wait_for("is still served");
    cluster.delete("limitpolicies/team-a/limits");
    companion.wait_for("is served, 1 rule: team-b/limits/all");
    assert!(companion.request("GET", "/ready").contains("with the last good rules"));
}

#[test]
fn wrong_policy_is_told_and_its_last_good_form_stays() {
    let cluster = cluster();
    let folder = folder(&cluster);
    cluster.apply("limitpolicies/team-a/limits", policy(rule(1)));
    let mut first = companion(&folder);
    cluster.wait("limitpolicies/team-a/limits", is_accepted);
    let wrong = json!({"name": "all", "actor": "acount", "unit": "day", "rpu": 1});
    cluster.apply("limitpolicies/team-a/limits", policy(wrong));
    let object = cluster.wait("limitpolicies/team-a/limits", |it| !is_accepted(it));
    let accepted = condition(&object, "Accepted");
    assert_eq!(
        (&accepted["reason"], &accepted["observedGeneration"]),
        (&json!("Invalid"), &json!(2))
    );
    let message = accepted["message"].as_str().unwrap();
    assert_eq!(
        message,
        "spec.limits[0].rules[0].actor: found `acount`; did you mean `account`? allowed: all, account, device, address, another name under `actors`, or a \
         list of names\ngeneration 1 stays in force"
    );
    assert_eq!(object["status"]["inForce"]["generation"], 1);
    // So has a new replica.
    let bytes = document(&first);
    first.wait_for("is served");
    let mut second = companion(&folder);
    second.wait_for("is served, 2 rules: all, team-a/limits/all");
    assert_eq!(document(&second), bytes);
    // No status is written twice.
    let writes = cluster.world().writes.iter().filter(|it| it.contains("limitpolicies")).count();
    assert_eq!(writes, 2);
}

#[test]
fn document_stays_while_the_api_server_tells_nothing() {
    let cluster = cluster();
    let folder = folder(&cluster);
    cluster.apply("limitpolicies/team-a/limits", policy(rule(1)));
    cluster.change(|world| _ = world.refused.insert("grpcroutes".into(), 404));
    let mut first = companion(&folder);
    first.wait_for("is served, 2 rules");
    let kinds = ["limitpolicies", "httproutes", "gateways", "namespaces"];
    cluster.change(|world| kinds.iter().for_each(|it| _ = world.refused.insert((*it).into(), 403)));
    kinds.iter().for_each(|_| first.wait_for("the known ones stay in force"));
    assert!(document(&first).contains("team-a/limits/all"));
    replace(&folder.join("rules.yaml"), "limits: []\n");
    first.wait_for("is served, 1 rule: team-a/limits/all");
    // A new one cannot know which limits it would take away.
    let second = companion(&folder);
    let ready = second.request("GET", "/ready");
    assert_eq!(status(&ready), "503 Service Unavailable");
    assert!(ready.contains("waits for LimitPolicies: "), "{ready}");
}

#[test]
fn api_server_is_away_for_long() {
    let cluster = cluster();
    let folder = folder(&cluster);
    let (one, other) = ("limitpolicies/team-a/limits", "limitpolicies/team-b/limits");
    cluster.apply(one, policy(rule(1)));
    let mut companion = companion(&folder);
    cluster.wait(one, is_accepted);
    let kinds =
        ["limitpolicies", "httproutes", "grpcroutes", "gateways", "namespaces", "pods", "leases"];
    cluster.change(|world| kinds.iter().for_each(|it| _ = world.refused.insert((*it).into(), 503)));
    // The end of a connection is no problem by itself.
    let line = loop {
        let line = companion.any_line();
        if line.contains("LimitPolicies: ") {
            break line;
        }
    };
    assert!(line.contains("the API server does not answer") && line.contains("503"), "{line}");
    assert!(document(&companion).contains("team-a/limits/all"));
    // No watch gets these changes.
    cluster.change(|world| {
        world.remove(one);
        world.apply(other, policy(rule(2)));
        world.objects.remove("leases/plat/diana-companion");
        world.compact();
        world.refused.clear();
    });
    companion.wait_for("LimitPolicies: the API server tells them again");
    companion.wait_for("is served, 2 rules: all, team-b/limits/all");
    cluster.wait(other, is_accepted);
    assert_eq!(companion.request("GET", "/ready").lines().last(), Some("ready"));
}

fn pod(name: &str, phase: &str) -> (String, Value) {
    let labels = json!({"app": "envoy", "gateway.envoyproxy.io/owning-gateway-namespace": "plat", "gateway.envoyproxy.io/owning-gateway-name": "public"});
    let status = json!({"phase": phase, "podIP": "192.0.2.1"});
    (format!("pods/proxies/{name}"), json!({"metadata": {"labels": labels}, "status": status}))
}

/// The version of the served document.
fn version(companion: &Companion) -> String {
    let answer = companion.request("HEAD", "/rules.yaml");
    let tag = answer.split("etag: \"").nth(1).unwrap();
    tag.split(['.', '"']).next().unwrap().into()
}

/// A poll of a pod with a document. Returns the head of the answer.
fn poll(companion: &Companion, pod: &str, document: &str) -> String {
    polled(companion, &format!("x-diana-gateway: {pod}\r\nx-diana-document: {document}\r\n")).0
}

fn programmed(object: &Value) -> (&str, &str) {
    let condition = condition(object, "Programmed");
    (
        condition["status"].as_str().unwrap_or_default(),
        condition["message"].as_str().unwrap_or_default(),
    )
}

#[test]
fn status_tells_in_which_pods_a_policy_is_in_force() {
    let cluster = cluster();
    let folder = folder(&cluster);
    for (name, phase) in [("gw-1", "Running"), ("gw-2", "Pending"), ("gw-3", "Succeeded")] {
        let (name, pod) = pod(name, phase);
        cluster.apply(&name, pod);
    }
    let name = "limitpolicies/team-a/limits";
    cluster.apply(name, policy(rule(1)));
    let mut first = companion(&folder);
    first.wait_for("is served");
    // The first status may be written before the pods are listed.
    let nothing =
        "in force on 0 of 2 pods\nproxies/gw-1 has not polled\nproxies/gw-2 has not polled";
    cluster.wait(name, |it| programmed(it) == ("False", nothing));
    let one = version(&first);
    poll(&first, "gw-1", &one);
    cluster.wait(name, |it| {
        programmed(it).1 == "in force on 1 of 2 pods\nproxies/gw-2 has not polled"
    });
    poll(&first, "gw-2", &format!("- refused={one}"));
    cluster.wait(name, |it| {
        programmed(it).1.ends_with("proxies/gw-2 refuses the document, see its log")
    });
    let head = poll(&first, "gw-2", &one);
    assert!(head.contains("x-diana-gateways: 2"), "{head}");
    cluster.wait(name, |it| programmed(it) == ("True", "in force on 2 of 2 pods"));

    // Another policy changes the document, and the first one stays programmed.
    let other = "limitpolicies/team-b/limits";
    cluster.apply(other, policy(rule(1)));
    cluster.wait(other, |it| programmed(it).1.contains("in force on 0 of 2 pods"));
    poll(&first, "router~192.0.2.7~gw-1.proxies~proxies.svc.cluster.local", &version(&first));
    cluster.wait(other, |it| {
        programmed(it).1 == "in force on 1 of 2 pods\nproxies/gw-2 has another document"
    });
    assert_eq!(programmed(&cluster.wait(name, is_accepted)), ("True", "in force on 2 of 2 pods"));

    // A wrong form: the former one stays.
    cluster.apply(name, policy(json!({"name": "all", "actor": "acount", "unit": "day", "rpu": 1})));
    let object = cluster.wait(name, |it| !is_accepted(it));
    assert_eq!(programmed(&object), ("False", "generation 1 is in force on 2 of 2 pods"));
    let writes = cluster.world().writes.clone();
    let of = |name: &str| writes.iter().filter(|it| it.starts_with(name)).count();
    assert_eq!((of(name), of(other)), (5, 2), "{writes:?}");
    let told = first.request("GET", "/polls.json");
    assert!(told.contains(r#""name":"gw-2","address":"127.0.0.1""#), "{told}");
}

#[test]
fn one_replica_writes_and_knows_what_the_other_was_told() {
    let cluster = cluster();
    let folder = folder(&cluster);
    // The port of all replicas is the same.
    let address = TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap();
    let port = POLICIES.replace("8080", &address.port().to_string());
    replace(&folder.join("policies.yaml"), port);
    let (gateway, running) = pod("gw-1", "Running");
    cluster.apply(&gateway, running);
    let replica = json!({"status": {"phase": "Running", "podIP": "127.0.0.2"}});
    cluster.apply("pods/plat/replica", replica);
    let name = "limitpolicies/team-a/limits";
    cluster.apply(name, policy(rule(1)));
    let mut writer = companion(&folder);
    writer.wait_for("is served");
    cluster.wait(name, is_accepted);
    let path = folder.join("policies.yaml");
    let more = ["--policies", path.to_str().unwrap()];
    let mut other = Companion::begin(&folder, &folder.join("rules.yaml"), address, &more);
    other.wait_for("is served, 2 rules");
    let version = version(&other);
    poll(&other, "gw-1", &version);
    cluster.wait(name, |it| programmed(it) == ("True", "in force on 1 of 1 pods"));
    let lease = cluster.wait("leases/plat/diana-companion", |_| true);
    assert_eq!(lease["spec"]["holderIdentity"], format!("pid-{}", writer.id()));
}

#[test]
fn replica_that_leaves_gives_the_lease_up() {
    let cluster = cluster();
    let folder = folder(&cluster);
    let (one, other) = ("limitpolicies/team-a/limits", "limitpolicies/team-b/limits");
    cluster.apply(one, policy(rule(1)));
    let mut writer = companion(&folder);
    cluster.wait(one, is_accepted);
    writer.terminate();
    assert_eq!(writer.exit_code(), Some(0));
    let holder =
        || cluster.world().objects["leases/plat/diana-companion"]["spec"]["holderIdentity"].clone();
    assert_eq!(holder(), "");
    let next = companion(&folder);
    cluster.apply(other, policy(rule(1)));
    cluster.wait(other, is_accepted);
    assert_eq!(holder(), format!("pid-{}", next.id()));
}

#[test]
fn status_of_a_large_policy() {
    let cluster = cluster();
    let folder = folder(&cluster);
    let (one, other) = ("limitpolicies/team-a/limits", "limitpolicies/team-b/limits");
    let mut large = policy(rule(1));
    let path = |number| format!("/{number}/{}", "long".repeat(500));
    let paths = (0..100).map(path).collect::<Vec<_>>();
    let entry = |name| json!({"urls": paths, "rules": [{"name": name, "actor": "all", "unit": "day", "rpu": 1}]});
    large["spec"]["limits"] = ["one", "two", "three"].map(entry).to_vec().into();
    cluster.apply(one, large);
    cluster.apply(other, policy(rule(1)));
    let mut companion = companion(&folder);
    let object = cluster.wait(one, is_accepted);
    assert_eq!(object["status"].get("inForce"), None);
    let message = condition(&object, "Accepted")["message"].as_str().unwrap();
    assert!(message.contains("too large for its status"), "{message}");
    // If the API server refuses one status, those of other teams are written.
    cluster.wait(other, is_accepted);
    cluster.change(|world| _ = world.unwritable.insert(one.into()));
    let wrong = json!({"name": "all", "actor": "acount", "unit": "day", "rpu": 1});
    for name in [one, other] {
        cluster.apply(name, policy(wrong.clone()));
    }
    cluster.wait(other, |it| !is_accepted(it));
    companion.wait_for("the status of `team-a/limits` cannot be written");
    // The former form stays in the document.
    assert!(document(&companion).contains("/99/long"));
}

#[test]
fn version_of_the_definition_is_compared() {
    let cluster = cluster();
    let folder = folder(&cluster);
    let name = "limitpolicies/team-a/limits";
    cluster.apply(name, policy(rule(1)));
    let annotations = json!({"limits.diana.internal/version": "0.1.0"});
    let definition = json!({"metadata": {"annotations": annotations}});
    cluster.apply("customresourcedefinitions//limitpolicies.limits.diana.internal", definition);
    let _companion = companion(&folder);
    let advised = cluster.wait(name, |it| {
        let message = condition(it, "Accepted")["message"].as_str().unwrap_or_default();
        message.contains("its CustomResourceDefinition has version 0.1.0, and the companion ")
    });
    assert!(is_accepted(&advised));
}

#[test]
fn replica_that_is_behind_takes_no_gateway_back() {
    let cluster = cluster();
    let folder = folder(&cluster);
    let mut late = companion(&folder);
    late.wait_for("is served, 1 rule: all");
    cluster.change(|world| _ = world.held.insert("limitpolicies".into()));
    cluster.apply("limitpolicies/team-a/limits", policy(rule(1)));
    let mut first = companion(&folder);
    first.wait_for("is served, 2 rules");
    let (head, _) = polled(&first, "");
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    let known = format!("if-none-match: {tag}\r\n");
    let version = format!("x-diana-document: {}\r\n", version(&first));
    let newer = document(&first);
    drop(first);
    assert!(!document(&late).contains("team-a"));

    // While it does not know whether it is behind, a gateway keeps its document.
    cluster.change(|world| _ = world.refused.insert("limitpolicies".into(), 403));
    late.wait_for("the known ones stay in force");
    let (head, _) = polled(&late, &known);
    assert!(head.contains("304 Not Modified") && head.contains(tag), "{head}");
    let (head, body) = polled(&late, &version);
    assert!(head.contains("503 Service Unavailable") && body.contains("newer rules"), "{head}");

    cluster.change(|world| _ = world.refused.remove("limitpolicies"));
    let lists = cluster.world().lists["limitpolicies"];
    // The write of its status has made the policy newer than in the tag.
    let (head, body) = polled(&late, &known);
    assert!(head.contains("304 Not Modified") || body == newer, "{head}");
    late.wait_for("is served, 2 rules");
    assert_eq!(document(&late), newer);
    assert!(cluster.world().lists["limitpolicies"] > lists);
    // It knows now.
    let lists = cluster.world().lists["limitpolicies"];
    polled(&late, &version);
    polled(&late, &known);
    assert_eq!(cluster.world().lists["limitpolicies"], lists);
}

#[test]
fn gateway_with_an_older_text_gets_the_document() {
    let cluster = cluster();
    let folder = folder(&cluster);
    cluster.apply("limitpolicies/team-a/limits", policy(rule(1)));
    let mut companion = companion(&folder);
    companion.wait_for("is served, 2 rules");
    let lists = || cluster.world().lists["limitpolicies"];
    let before = lists();
    // Without a tag, only a list that began after the poll shows which one is newer. It may take longer
    // than polls wait, and is not begun again by each of them.
    cluster.change(|world| _ = world.slow.insert("limitpolicies".into()));
    let older = "x-diana-document: 0123456789abcdef\r\n";
    for _ in 0..2 {
        let (head, _) = polled(&companion, older);
        assert!(head.contains("503 Service Unavailable"), "{head}");
    }
    cluster.change(|world| world.slow.clear());
    let (head, body) = polled(&companion, older);
    assert!(head.contains("200 OK") && body.contains("team-a/limits/all"), "{head}");
    assert_eq!(lists(), before + 1);
    let (head, _) = polled(&companion, older);
    assert!(head.contains("200 OK"), "{head}");
    assert_eq!(lists(), before + 1);
}

#[test]
fn companions_of_two_releases_write_about_their_own_gateways() {
    let cluster = cluster();
    let name = "limitpolicies/team-a/limits";
    let other = |controller: &str| {
        let condition = json!({"type": "Accepted", "status": "True", "observedGeneration": 1});
        let reference = json!({"name": "internal"});
        let ancestor = json!({"ancestorRef": reference, "controllerName": controller, "conditions": [condition]});
        let mut policy = policy(rule(1));
        policy["status"] = json!({"ancestors": [ancestor], "conditions": [{"type": "Accepted", "status": "True"}]});
        policy
    };
    let summary = |name: &str| {
        let has_both =
            |it: &Value| it["status"]["ancestors"].as_array().is_some_and(|all| all.len() == 2);
        cluster.wait(name, has_both)["status"]["conditions"].as_array().unwrap().len()
    };
    cluster.apply(name, other("limits.diana.internal/a-companion"));
    // It comes later by its name.
    cluster.apply("limitpolicies/team-b/limits", other("limits.diana.internal/z-companion"));
    let folder = folder(&cluster);
    let _companion = companion(&folder);
    assert_eq!((summary("limitpolicies/team-b/limits"), summary(name)), (2, 1));
    // Without a Gateway of this release, the status has none of its conditions.
    cluster.delete("gateways/plat/public");
    let ancestors =
        |it: &Value| it["status"]["ancestors"].as_array().is_some_and(|all| all.len() == 1);
    let object = cluster.wait("limitpolicies/team-b/limits", ancestors);
    assert_eq!(condition(&object, "Accepted")["status"], "True");
}

#[test]
fn names_that_another_team_may_have_chosen_are_reported_in_istio() {
    let cluster = cluster();
    let folder = folder(&cluster);
    let istio = POLICIES.replace("envoy-gateway", "istio");
    replace(&folder.join("policies.yaml"), istio);
    let parents = json!([{"name": "public", "namespace": "plat"}]);
    let route = json!({"spec": {"parentRefs": parents, "rules": [{"name": "team-a.shop.0"}]}});
    cluster.apply("httproutes/team-b/forged", route);
    cluster.apply("limitpolicies/team-a/limits", policy(rule(1)));
    // Istio joins the names of a route and its matches by a dot, and those of delegates by a hyphen.
    let service = json!({"spec": {"hosts": ["a"], "http": [
        {"name": "team-a.shop.1"},
        {"name": "team-a.two", "match": [{"name": "0"}, {}]},
        {"name": "three", "match": [{"name": "fine"}]},
        {"name": "one.dot", "delegate": {"name": "a"}},
    ]}});
    cluster.apply("virtualservices/team-b/forged", service);
    let delegate = json!({"spec": {"http": [{"name": "its.dot"}, {"match": [{"name": "fine"}]}]}});
    cluster.apply("virtualservices/team-b/delegate", delegate);
    let mut companion = companion(&folder);
    let (mut told, mut is_served) = (BTreeSet::new(), false);
    while told.len() < 5 || !is_served {
        let line = companion.any_line();
        is_served |= line.contains("is served");
        told.extend(Some(line).filter(|line| line.contains("the route name")));
    }
    let text = |kind, name, route| {
        format!(
            "diana: the {kind} `team-b/{name}` has the route name `{route}`, which may be that of another team's route; rename it"
        )
    };
    let expected = [
        text("HTTPRoute", "forged", "team-a.shop.0"),
        text("VirtualService", "delegate", "its.dot"),
        text("VirtualService", "forged", "one.dot"),
        text("VirtualService", "forged", "team-a.shop.1"),
        text("VirtualService", "forged", "team-a.two.0"),
    ];
    assert!(told.iter().eq(&expected), "{told:?}");
    assert!(document(&companion).contains(r#"{"route":["team-a.shop.0"]}"#));
}
