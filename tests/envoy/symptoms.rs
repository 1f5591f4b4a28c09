//! The runbook by symptom. Each symptom is staged, and the commands of its section run as they are on
//! the page. Their output has an entry in the section's list.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{
    Envoy, Fault, Gateway, Redis, Wire, assert_no_trap, eventually, free_port, hcm_filter,
    shipped_text, start_all, validate,
};
use crate::operator::{TOKEN, explained, operate};

const RUNBOOK: &str = include_str!("../../docs/runbook.md");

/// The token of the page's commands.
const TOKEN_OF_THE_PAGE: &str = "a-token-for-this-page";

/// A section of the page, by the beginning of its heading.
struct Section(&'static str);

impl Section {
    fn of(heading: &str) -> Self {
        let (_, rest) = RUNBOOK.split_once(&format!("\n## {heading}")).expect(heading);
        Self(rest.split_once("\n## ").map_or(rest, |(section, _)| section))
    }

    /// The output of the section's commands that contain a text, each run by the shell after these replacements.
    #[track_caller]
    fn run(&self, with: &str, replacements: &[(&str, &str)]) -> String {
        let commands =
            self.0.lines().filter(|line| line.contains(with) && !line.starts_with(['|', '-', ' ']));
        let mut script: String =
            commands.flat_map(|line| [line.trim_start_matches("$ "), "\n"]).collect();
        assert!(!script.is_empty(), "no command with {with}");
        for (from, to) in replacements {
            script = script.replace(from, to);
        }
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The output of the section's commands for Envoy's admin port.
    #[track_caller]
    fn read(&self, envoy: &Envoy) -> String {
        let here = format!("127.0.0.1:{}/", envoy.admin_port());
        self.run(
            ":9901/",
            &[("localhost:9901/", &here), ("127.0.0.1:9901/", &here), ("sleep 1; ", "")],
        )
    }

    /// Waits until these commands print each of these texts.
    #[track_caller]
    fn shows(&self, envoy: &Envoy, texts: &[&str]) {
        eventually(&format!("{texts:?}"), || {
            let output = self.read(envoy);
            texts.iter().all(|text| output.contains(text)).then_some(())
        });
    }

    /// Fails unless an entry of the section has these texts.
    #[track_caller]
    fn explains(&self, texts: &[&str]) {
        has_entry(self.0, texts);
    }
}

/// Fails unless a row of a table or an item of a list has these texts.
#[track_caller]
fn has_entry(page: &str, texts: &[&str]) {
    let joined = page.replace("\n  ", " ");
    let mut entries =
        joined.lines().filter(|line| line.starts_with("| ") || line.starts_with("- "));
    assert!(
        entries.any(|entry| texts.iter().all(|text| entry.contains(text))),
        "no entry has {texts:?}"
    );
}

/// The filter by ECDS, from a file with problems in its document. Envoy admits no request then.
fn never_configured(folder: &std::path::Path) -> Value {
    let envoy: Value = serde_yaml::from_str(&shipped_text("envoy/envoy.yaml")).unwrap();
    let path =
        "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0";
    let mut config = envoy.pointer(path).unwrap()["typed_config"].clone();
    config["config"]["configuration"]["value"] = "limits: 3".into();
    let kind = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
    let resource = json!({"@type": kind, "name": "by-ecds", "typed_config": config});
    let file = folder.join(format!("symptoms-{}.json", std::process::id()));
    std::fs::write(&file, json!({"resources": [resource]}).to_string()).unwrap();
    let discovery = json!({
        "config_source": {"path_config_source": {"path": file}},
        "type_urls": ["type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"],
    });
    with_filters(json!({"name": "by-ecds", "config_discovery": discovery}))
}

/// The shipped filter, with the module of a server behind the cluster `companion`.
fn with_remote_module(retries: u32) -> Value {
    let shipped: Value = serde_yaml::from_str(&shipped_text("envoy/envoy.yaml")).unwrap();
    let path =
        "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0";
    let mut filter = shipped.pointer(path).unwrap().clone();
    let uri =
        json!({"uri": "http://companion/diana.wasm", "cluster": "companion", "timeout": "1s"});
    let retries = json!({"num_retries": retries});
    filter["typed_config"]["config"]["vm_config"]["code"] =
        json!({"remote": {"http_uri": uri, "sha256": "0".repeat(64), "retry_policy": retries}});
    with_filters(filter)
}

/// Settings of a connection manager with this filter in place of ours.
fn with_filters(filter: Value) -> Value {
    let router = hcm_filter("envoy.filters.http.router", "router", "Router", json!({}));
    json!({"http_filters": [filter, router]})
}

#[test]
fn everything_is_503() {
    const RULES: &str = "
redis: {cluster: diana_redis}
limits:
  - {Url: /full, rules: [{name: full, actor: all, unit: day, rpu: 0}]}
  - {Url: /trap, rules: [{name: trap, actor: all, unit: day, rpu: 0, ban: {after: 1, within: 1m, for: 10m}}]}
  - {Url: /away, rules: [{name: away, actor: all, unit: day, rpu: 9, scope: global, on_failure: deny}]}
";
    const FORMAT: &str =
        "%RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %FILTER_STATE(wasm.diana:PLAIN)%\n";
    let section = Section::of("Everything gets 503");
    let nowhere = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "nowhere"}},
    ]}]});
    let gateway = Gateway::with(RULES).redis(free_port()).empty_cluster("nowhere");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let unconfigured = Gateway::with("limits: []").routed(Value::Null, never_configured(folder));
    let envoys = start_all(&[
        gateway.routed(nowhere, json!({})).crashing_module().logging(FORMAT),
        unconfigured.logging(FORMAT),
    ]);
    for path in ["/full", "/trap", "/trap", "/away", "/"] {
        assert_eq!(envoys[0].get(path, &[]).status, 503, "{path}");
    }
    section.shows(
        &envoys[0],
        &[
            r#"diana_rule_refused{namespace="diana",rule="full"} 1"#,
            r#"diana_rule_banned{namespace="diana",rule="trap"} 1"#,
            r#"diana_rule_unavailable{namespace="diana",rule="away"} 1"#,
        ],
    );
    // Where the bootstrap makes no labels, as on Istio.
    let plain = "wasmcustom_diana_shop_rule_full_refused{} 1";
    let curl = "curl -s http://127.0.0.1:9901/stats/prometheus";
    assert_eq!(section.run(":9901/", &[(curl, &format!("echo '{plain}'"))]).trim(), plain);
    envoys[0].kill_vm("/full");
    assert_eq!(envoys[1].get("/", &[]).status, 500);
    for (number, cause, beginning, row) in [
        (0, "the limit", "diana_refused - refused rule=full", ["`diana_refused`", "| `refused`"]),
        (0, "a ban", "diana_refused - banned rule=trap", ["`diana_refused`", "| `banned`"]),
        (
            0,
            "no Redis",
            "diana_refused - unavailable rule=away",
            ["`diana_refused`", "| `unavailable`"],
        ),
        (0, "no upstream", "no_healthy_upstream UH -", ["`no_healthy_upstream`", "| `-`"]),
        (0, "a dead VM", "wasm_fail_stream - -", ["`wasm_fail_stream`", "| `-`"]),
        (1, "no filter", " NFCF -", ["flag `NFCF`, status 500", "| `-`"]),
    ] {
        let log = || envoys[number].access_log();
        let found = || log().iter().any(|line| line.starts_with(beginning)).then_some(());
        eventually(&format!("{cause} in the access log: {:?}", log()), found);
        section.explains(&row);
    }
}

/// The causes of a refusal that the explanation and the usage show.
#[test]
fn caller_is_refused_with_quota_left() {
    const RULES: &str = "
explain: {header: x-diana-explain, token_env: DIANA_TOKEN}
admin: {path: /.diana, token_env: DIANA_TOKEN}
plans: {tiers: {by: [{header: x-plan}], of: {gold: {rpu: 9}}}}
limits:
  - Url: /wide
    rules: [{name: wide, actor: all, unit: day, rpu: 0}]
  - {Url: /wide/path, rules: [{name: narrow, actor: account, unit: day, rpu: 9}]}
  - {Url: /plan, rules: [{name: plan, actor: account, unit: day, rpu: 1, algo: W, plans: tiers}]}
  - {Url: /cost, rules: [{name: cost, actor: account, unit: day, rpu: 5, algo: W, cost: {header: x-cost, max: 5}}]}
  - {Url: /local, rules: [{name: local, actor: account, unit: day, rpu: 1, algo: W, scope: local}]}
  - {Url: /ban, rules: [{name: ban, actor: account, unit: day, rpu: 0, ban: {after: 1, within: 1m, for: 10m}}]}
";
    let envoy = Gateway::with(RULES).variable("DIANA_TOKEN", TOKEN).start_shared();
    let record = |path: &str, rule: &str, more: &[(&str, &str)]| {
        let headers = [&[("x-diana-explain", TOKEN), ("x-account-id", "ada")], more].concat();
        let all = explained(&envoy.get(path, &headers));
        all.as_array().unwrap().iter().find(|it| it["rule"] == rule).expect("a record").clone()
    };
    let refused = |record: &Value| record["decision"] == "refused";
    assert!(refused(&record("/wide/path", "wide", &[])), "and so does its `wait` of never");
    has_entry(RUNBOOK, &["`rule` is not the one that you expect"]);
    assert_eq!(record("/wide/path", "wide", &[])["wait"], "never");
    has_entry(RUNBOOK, &["`wait: \"never\"`", "`rpu: 0`"]);
    record("/plan", "plan", &[("x-plan", "golden")]);
    let unlisted = record("/plan", "plan", &[("x-plan", "golden")]);
    assert!(
        refused(&unlisted) && unlisted["plan"].is_null() && unlisted["limit"] == 1,
        "{unlisted}"
    );
    has_entry(RUNBOOK, &["`limit` is not the one that you expect", "`plan` is missing"]);
    record("/cost", "cost", &[("x-cost", "3")]);
    let dear = record("/cost", "cost", &[("x-cost", "3")]);
    assert!(refused(&dear) && dear["remaining"] == 2, "{dear}");
    has_entry(RUNBOOK, &["`remaining` above 0, less than the request's `cost`"]);
    record("/local", "local", &[]);
    assert_eq!(record("/local", "local", &[])["scope"], "local");
    assert_eq!(operate(&envoy, "GET", "/usage?rule=local&actor.account=ada").0, 409);
    has_entry(RUNBOOK, &["`scope: local`", "409"]);
    record("/ban", "ban", &[]);
    assert_eq!(record("/ban", "ban", &[])["decision"], "banned");
    has_entry(RUNBOOK, &["`decision: banned`"]);
    // Two values for one key: one bucket for all such requests.
    let twice = |more| record("/cost", "cost", &[("x-account-id", more)])["key"].clone();
    assert_eq!(twice("bob"), twice("eve"));
    has_entry(RUNBOOK, &["`key` is the same for different callers", "occurs twice"]);
}

#[test]
fn limits_reset() {
    let rules = |unit: &str| {
        Gateway::with(&format!(
            "limits: [{{Url: /, rules: [{{actor: all, unit: {unit}, rpu: 2, algo: W}}]}}]"
        ))
    };
    let envoy = rules("day").start();
    assert_eq!(envoy.statuses(3, "/", &[]), [200, 200, 503]);
    envoy.update(&rules("hour"));
    eventually("a new count", || (envoy.get("/", &[]).status == 200).then_some(()));
    let line = "these rules start with no usage";
    eventually("the line in the log", || envoy.log().contains(line).then_some(()));
    Section::of("Limits reset").explains(&["A rule without a name changed", line]);
    let dump = envoy.admin("/config_dump").unwrap().body;
    assert!(dump.contains(r#""vm_id": "diana""#), "{dump}");
    Section::of("Limits reset").explains(&["Another `vm_id`", "`config_dump`"]);
}

#[test]
fn limit_is_not_applied() {
    const RULES: &str = "
explain: {header: x-diana-explain, token_env: DIANA_TOKEN}
plans: {tiers: {by: [client_address: {}], of: {127.0.0.1: unlimited}}}
limits:
  - {Url: /other, rules: [{name: path, actor: all, unit: day, rpu: 9}]}
  - {Url: /, match: {methods: [POST]}, rules: [{name: match, actor: all, unit: day, rpu: 9}]}
  - {Url: /, rules: [
      {name: exempt, actor: all, unit: day, rpu: 9, except: {addresses: [127.0.0.0/8]}},
      {name: absent, actor: account, unit: day, rpu: 9},
      {name: plan, actor: all, unit: day, rpu: 9, plans: tiers},
      {name: replaced, actor: all, unit: day, rpu: 9},
      {name: replacing, actor: all, unit: day, rpu: 9, replaces: [replaced]},
      {name: over, actor: all, unit: day, rpu: 0, over: {mark: x-tier, value: spill}},
      {name: shadow, actor: all, unit: day, rpu: 0, shadow: true}]}
";
    let section = Section::of("A limit is not applied");
    let envoy = Gateway::with(RULES).variable("DIANA_TOKEN", TOKEN).start_shared();
    let port = format!("127.0.0.1:{}/", envoy.port);
    let replacements = [("127.0.0.1:10000/reports", &*port), ("127.0.0.1:10000/healthz", &port)];
    let replaced =
        [&replacements[..], &[(TOKEN_OF_THE_PAGE, TOKEN), ("reports", "absent")]].concat();
    let output = section.run("10000/reports", &replaced);
    assert_eq!(output.trim(), r#""rule":"absent","decision":"skipped","why":"absent""#);
    let all = explained(&envoy.get("/", &[("x-diana-explain", TOKEN)]));
    let record = |rule: &str| all.as_array().unwrap().iter().find(|it| it["rule"] == rule).unwrap();
    for why in ["path", "match", "exempt", "absent", "plan", "replaced"] {
        assert_eq!(record(why)["why"], why, "{all}");
        section.explains(&[&format!("`why: {why}`")]);
    }
    assert_eq!(record("shadow")["mode"], "shadow", "{all}");
    section.explains(&["`mode: shadow`"]);
    assert_eq!(record("over")["decision"], "over", "{all}");
    section.explains(&["`over`", "[marks]"]);
    let disabled = format!("disabled: true\n{RULES}");
    let envoy = Gateway::with(&disabled).variable("DIANA_TOKEN", TOKEN).start_shared();
    let all = explained(&envoy.get("/", &[("x-diana-explain", TOKEN)]));
    assert_eq!(all[0]["why"], "disabled", "{all}");
    section.explains(&["`why: disabled`"]);
    // The variable that the document names is not in the environment.
    let envoy = Gateway::with(&RULES.replace("DIANA_TOKEN", "ANOTHER_TOKEN")).start_shared();
    let answer = envoy.get("/", &[("x-diana-explain", TOKEN)]);
    assert_eq!(answer.header("x-diana-explain"), None);
    assert!(envoy.log().contains("ANOTHER_TOKEN"), "{}", envoy.log());
    section.explains(&["No `x-diana-explain`, and the log has a line about the token"]);
}

#[test]
fn vm_failed() {
    let section = Section::of("The VM failed");
    let rules = Gateway::with("limits: []").crashing_module();
    let envoys = start_all(&[rules.clone(), rules.without_reload()]);
    for envoy in &envoys {
        assert_eq!(envoy.get("/", &[]).status, 200);
        envoy.kill_vm("/");
        eventually("the reason", || envoy.log().contains("Uncaught RuntimeError").then_some(()));
    }
    eventually("another VM", || (envoys[0].get("/", &[]).status == 200).then_some(()));
    section.shows(&envoys[0], &["vm_reload_success: 1"]);
    section.explains(&["`Uncaught RuntimeError` in Envoy's log", "`vm_reload_success` grows"]);
    eventually("a pause before the next VM", || {
        envoys[0].kill_vm("/");
        (!section.read(&envoys[0]).contains("vm_reload_backoff: 0")).then_some(())
    });
    section.explains(&["it traps again and again", "`vm_reload_backoff` grows"]);
    assert_eq!(envoys[1].statuses(9, "/", &[]), [503; 9]);
    section.shows(&envoys[1], &["vm_reload_success: 0"]);
    section.explains(&["no `FAIL_RELOAD`", "`vm_reload_success` stays 0"]);
}

/// Without the retries of the chart, Envoy gives up, and its filter refuses every request.
#[test]
fn module_never_arrives() {
    let rules = Gateway::with("limits: []").cluster("companion", free_port());
    let envoy = rules.start();
    assert_eq!(envoy.get("/", &[]).status, 200);
    envoy.put(&rules.routed(Value::Null, with_remote_module(1)));
    eventually("refusals", || (envoy.get("/", &[]).status == 503).then_some(()));
    eventually("the reason in the access log", || {
        envoy.access_log().contains(&"503 wasm_fail_stream -".to_owned()).then_some(())
    });
    assert!(!envoy.log().contains("Uncaught RuntimeError"), "{}", envoy.log());
    let section = Section::of("The VM failed");
    section.shows(&envoy, &["remote_load_fetch_failures: 1"]);
    section.explains(&["Envoy never got the module", "`remote_load_fetch_failures` above 0"]);
    Section::of("Everything gets 503").explains(&["`wasm_fail_stream`", "never got the module"]);
}

/// Each reason of the runbook by alert that a single Redis can give, in turn, to one gateway.
#[test]
fn redis_is_slow_or_refuses() {
    const RULES: &str = "
namespace: shop
redis: {cluster: diana_redis, timeout: 1s}
limits: [{Url: /, rules: [{name: all, actor: all, unit: day, rpu: 1000000, algo: W, scope: global}]}]
";
    let section = Section::of("Redis is slow");
    let redis = Redis::start();
    let mut wire = Wire::to(redis.port);
    let envoy = Gateway::with(RULES).redis(wire.port).start();
    let fails = |reason: &str| {
        eventually(reason, || {
            assert_eq!(envoy.get("/", &[]).status, 200);
            let metric = format!("diana_fleet_failed_{reason}");
            section.read(&envoy).contains(&metric).then_some(())
        });
        has_entry(RUNBOOK, &[&format!("`{reason}`")]);
    };
    assert_eq!(envoy.get("/", &[]).status, 200);
    wire.set(Fault::Silent);
    fails("timeout");
    section.shows(&envoy, &[r#"diana_mode_gateway{namespace="shop"} 1"#, "diana_rule_degraded"]);
    section.explains(&["`timeout`", "shorter than a call"]);
    wire.set(Fault::Refused);
    fails("unreachable");
    section.explains(&["`unreachable`", "no free"]);
    wire.set(Fault::Garbage("HTTP/1.1 200 OK\r\n\r\n"));
    fails("garbage");
    wire.set(Fault::None);
    redis.follow("127.0.0.1 1");
    fails("readonly");
    redis.follow("NO ONE");
    redis.configure("maxmemory", "1");
    fails("oom");
    redis.configure("maxmemory", "0");
    redis.configure("requirepass", "sesame");
    fails("noauth");
}

/// A node of a Redis Cluster behind a gateway that is not `proxied`.
#[test]
fn redis_is_a_cluster() {
    const RULES: &str = "
namespace: shop
redis: {cluster: diana_redis, timeout: 1s}
limits: [{Url: /, rules: [{name: all, actor: all, unit: day, rpu: 9, algo: W, scope: global}]}]
";
    let redis = Redis::with(
        vec![
            "cluster-enabled yes".into(),
            // The default is 10,000 above the port, which may not exist.
            format!("cluster-port {}", free_port()),
            format!("cluster-config-file symptoms-{}.conf", free_port()),
        ],
        vec![],
    );
    let envoy = Gateway::with(RULES).redis(redis.port).start();
    assert_eq!(envoy.get("/", &[]).status, 200);
    let reason = "clusterdown";
    Section::of("Redis is slow").shows(&envoy, &[&format!("diana_fleet_failed_{reason}")]);
    has_entry(RUNBOOK, &[&format!("`{reason}`")]);
}

#[test]
fn two_gateways_disagree() {
    let section = Section::of("Two gateways disagree");
    let rules = |namespace: &str, scope: &str| {
        format!(
            "{{namespace: {namespace}, redis: {{cluster: diana_redis, timeout: 1s}}, \
             admin: {{path: /.diana, token_env: DIANA_TOKEN}}, \
             limits: [{{Url: /, rules: [{{name: hello, actor: all, unit: day, rpu: 9, algo: W, scope: {scope}}}]}}]}}"
        )
    };
    let redis = Redis::start();
    let gateway = |namespace: &str, scope: &str, port: u16| {
        Gateway::with(&rules(namespace, scope)).variable("DIANA_TOKEN", TOKEN).redis(port)
    };
    let envoys = start_all(&[
        gateway("shop", "global", redis.port),
        gateway("shop", "gateway", redis.port),
        gateway("other", "global", redis.port),
        gateway("shop", "global", free_port()),
    ]);
    envoys.iter().for_each(|envoy| assert_eq!(envoy.get("/", &[]).status, 200));
    let compare = |number: usize, what: &str| {
        let ports = format!("{} {}", envoys[0].port, envoys[number].port);
        let output = section.run(what, &[("10002 10012", &ports), (TOKEN_OF_THE_PAGE, TOKEN)]);
        output.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let usage = compare(1, "/.diana/usage");
    assert!(
        usage[0].contains(r#""scope":"global""#) && usage[1].contains(r#""scope":"gateway""#),
        "{usage:?}"
    );
    section.explains(&["`scope: gateway`", r#"`"scope":"gateway"` in the answer"#]);
    let rules = compare(2, "/.diana/rules");
    assert!(
        rules[0].contains(r#""namespace":"shop""#) && rules[1].contains(r#""namespace":"other""#),
        "{rules:?}"
    );
    section.explains(&["another `namespace`", r#"`"namespace"` in the answer"#]);
    eventually("degraded mode", || {
        (envoys[3].stat("wasmcustom.diana.shop.mode.gateway") == Some(1)).then_some(())
    });
    section.explains(&["degraded mode", "`diana_mode_gateway` above 0"]);
}

#[test]
fn gateway_is_never_ready() {
    let section = Section::of("New gateway pods never become ready");
    let refused = validate(&Gateway::with("limits: 3"));
    assert_eq!(refused.status.code(), Some(1));
    section.explains(&["The document has problems", "Envoy exits"]);
    let rules = "limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 1}]}]";
    let envoy = Gateway::with(rules).cluster("companion", free_port()).start();
    envoy.put(&Gateway::with("limits: 3"));
    section.shows(&envoy, &["update_rejected: 1"]);
    section.explains(&["`update_rejected` grows"]);
    // As in the chart: the listener waits until there is a module.
    envoy.put(&Gateway::with(rules).routed(Value::Null, with_remote_module(u32::MAX)));
    section.shows(&envoy, &["total_listeners_warming: 1"]);
    section.explains(&[
        "The module cannot be fetched",
        "`total_listeners_warming` above 0",
        "`upstream_cx_connect_fail` (away)",
    ]);
    eventually("a second attempt", || {
        (envoy.stat("cluster.companion.upstream_cx_connect_fail") > Some(1)).then_some(())
    });
    // The earlier listener is still there, with its rules.
    assert_eq!([envoy.get("/", &[]).status, envoy.get("/", &[]).status], [200, 503]);
    assert_no_trap(&envoy.log());
}
