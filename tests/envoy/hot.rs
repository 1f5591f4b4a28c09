//! Hot keys are routed to a separate cluster, as in envoy/hot.yaml.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Client, Envoy, Gateway, Upstream, eventually, hcm_filter, request};
use crate::metrics::settles;

const MARK: &str = "x-hot-key";

/// The upstream services of a gateway: for ordinary and for hot keys.
struct Services([Upstream; 2]);

impl Services {
    fn start() -> Services {
        Services([Upstream::start(), Upstream::start()])
    }

    fn gateway(&self, rules: impl Fn(String) -> String) -> Gateway {
        let [upstream, hot] = &self.0;
        Gateway::as_in_hot_yaml(rules, [upstream, hot])
    }

    /// The service that received the last request with this path, and its marks.
    fn last(&self, path: &str) -> (&'static str, Vec<String>) {
        let last = |(name, service): (&'static str, &Upstream)| {
            let last = service.arrivals().into_iter().rfind(|arrival| arrival.path == path)?;
            let marks = last.headers.iter().filter(|(name, _)| name == MARK);
            Some((last.at, name, marks.map(|(_, value)| value.clone()).collect()))
        };
        let [upstream, hot] = &self.0;
        let lasts = [("upstream", upstream), ("hot", hot)].into_iter().filter_map(last);
        let (_, name, marks) = lasts.max().expect("it came");
        (name, marks)
    }
}

/// Sends requests until the item is hot, on many connections, so that all workers receive some.
fn heat(envoy: &Envoy, services: &Services, path: &str) {
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(envoy.port).unwrap()).collect();
    eventually("the item to be hot", || {
        for client in &mut clients {
            assert_eq!(client.send(&request("GET", path, &[])).unwrap().status, 200);
        }
        (services.last(path).0 == "hot").then_some(())
    });
}

/// Forged marks of clients.
const FORGED: [&[(&str, &str)]; 3] = [
    &[("x-hot-key", "items")],
    &[("X-Hot-Key", "items"), ("x-HOT-key", "items")],
    &[("x-hot-key", ""), ("x-hot-key", "items")],
];

#[test]
fn only_hot_keys_go_to_the_hot_cluster() {
    let services = Services::start();
    let envoy = services.gateway(|rules| rules.replace("per: 10s", "per: 2s")).workers(2).start();
    let forged = |path: &str| {
        for headers in FORGED {
            assert_eq!(envoy.get(path, headers).status, 200);
            assert_eq!(services.last(path), ("upstream", vec![]), "{path} {headers:?}");
        }
    };
    let paths = ["/items?id=8", "/items", "/other", "/items/../items?id=9"];
    paths.into_iter().for_each(forged);
    heat(&envoy, &services, "/items?id=7");
    assert_eq!(services.last("/items?id=7"), ("hot", vec!["items".into()]));
    paths.into_iter().for_each(forged);
    for headers in FORGED {
        envoy.get("/items?id=7", headers);
        let (_, marks) = services.last("/items?id=7");
        assert!(marks.len() <= 1, "{marks:?}");
    }
    settles(&envoy, "rule.items.hot_keys", 1);
    let list = eventually("the list", || {
        heat(&envoy, &services, "/items?id=7");
        let log = envoy.log();
        log.lines().find(|line| line.contains(" top=7:")).map(str::to_owned)
    });
    let beginning = "hot rule=items scope=gateway over=50 per=2s keys=1 requests=";
    assert!(list.contains(beginning), "{list}");
    // After a while without requests there are no hot keys.
    settles(&envoy, "rule.items.hot_keys", 0);
    // The worker that detected the key updates at once, the other one at its next read.
    eventually("the item to be like any other", || {
        // Too rare to make the key hot.
        thread::sleep(Duration::from_millis(90));
        assert_eq!(envoy.get("/items?id=7", &[]).status, 200);
        (services.last("/items?id=7") == ("upstream", vec![])).then_some(())
    });
    envoy.assert_unharmed();
}

/// The routes are those of hot.yaml. A filter in front of Diana requires a login, but not on the
/// route for hot keys. Diana is disabled on another route.
#[test]
fn forged_mark_reaches_no_filter_and_no_upstream() {
    let services = Services::start();
    let login = json!({"header": {"name": "x-login", "present_match": true}});
    let policy = json!({"permissions": [{"any": true}], "principals": [login]});
    let rules = json!({"action": "ALLOW", "policies": {"login": policy}});
    let name = "envoy.filters.http.rbac";
    let rbac = hcm_filter(name, "rbac", "RBAC", json!({"rules": rules}));
    let per_route = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute",
    });
    let off = json!({
        "@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true,
    });
    let envoy = services
        .gateway(|rules| rules)
        .behind(rbac)
        .reroute(|routes| {
            routes[0]["typed_per_filter_config"] = json!({name: per_route});
            let route = json!({"cluster": "upstream"});
            let per_filter = json!({"diana": off});
            routes.insert(0, json!({
                "match": {"path": "/off"}, "route": route, "typed_per_filter_config": per_filter,
            }));
        })
        .start();
    for forged in FORGED {
        assert_eq!(envoy.get("/items?id=7", forged).status, 403, "{forged:?}");
        let headers = [&[("x-login", "ann")], forged].concat();
        for path in ["/off", "/items?id=7"] {
            assert_eq!(envoy.get(path, &headers).status, 200, "{path} {forged:?}");
            assert_eq!(services.last(path), ("upstream", vec![]), "{path} {forged:?}");
        }
    }
    envoy.assert_unharmed();
}

/// A rule with `over` in place of hot keys: a request beyond its limit goes to the other cluster, and
/// no client can choose that cluster.
#[test]
fn request_over_a_limit_is_routed_again() {
    let services = Services::start();
    let rules = "limits: [{Url: /items, rules: [{name: items, actor: item, unit: day, rpu: 2, algo: W, \
                 over: {mark: x-hot-key, value: items}}]}]\nactors: {item: [{query: id}]}";
    let envoy = services.gateway(|_| rules.into()).start();
    for place in ["upstream", "upstream", "hot", "hot"] {
        assert_eq!(envoy.get("/items?id=1", &[]).status, 200);
        let marks = if place == "hot" { vec!["items".into()] } else { vec![] };
        assert_eq!(services.last("/items?id=1"), (place, marks));
    }
    for headers in FORGED {
        assert_eq!(envoy.get("/items", headers).status, 200);
        assert_eq!(services.last("/items"), ("upstream", vec![]), "{headers:?}");
    }
    settles(&envoy, "rule.items.over", 2);
    settles(&envoy, "rule.items.allowed", 2);
    envoy.assert_unharmed();
}
