//! The parts of the shipped configuration that tests use, so that they test what users get.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

/// The password of every Redis with authentication.
pub const PASSWORD: &str = "sesame";

/// Where a cluster has the port of its endpoint.
const PORT: &str =
    "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";

/// The project's root. The path of the module in envoy.yaml is relative to it.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The finished module.
pub fn module() -> PathBuf {
    let path = root().join("target/diana.wasm");
    assert!(path.is_file(), "target/diana.wasm is missing: run `make build`");
    path
}

/// Returns true if the tests run the library in Envoy's own process instead of the wasm module, by `DIANA_HOST=native`.
pub fn is_native() -> bool {
    static IS_NATIVE: OnceLock<bool> = OnceLock::new();
    *IS_NATIVE.get_or_init(|| match std::env::var("DIANA_HOST").as_deref() {
        Err(_) | Ok("wasm") => false,
        Ok("native") => {
            library();
            true
        }
        Ok(other) => panic!("DIANA_HOST is `{other}`, allowed: `wasm`, `native`"),
    })
}

/// The folder with the library, which depends on the processor for which Envoy was built.
pub fn libraries() -> PathBuf {
    root().join(std::env::var_os("DIANA_LIBRARIES").unwrap_or_else(|| "target".into()))
}

/// The finished library.
pub fn library() -> PathBuf {
    let path = libraries().join("libdiana.so");
    assert!(path.is_file(), "{} is missing: run `make native`", path.display());
    path
}

/// The filter as a library, with this name and configuration.
pub fn native_filter(configuration: &Value, name: &str) -> Value {
    json!({"name": "diana", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
        "dynamic_module_config": {"name": "diana", "do_not_close": true, "metrics_namespace": "diana"},
        "filter_name": name,
        "filter_config": configuration,
    }})
}

/// envoy/envoy.yaml.
pub fn bootstrap() -> Value {
    read("envoy/envoy.yaml")
}

fn read(path: &str) -> Value {
    serde_yaml::from_str(&text(path)).unwrap()
}

/// A file of the project.
pub fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The wasm filter of envoy.yaml, with another plugin configuration.
pub fn filter(configuration: &Value) -> Value {
    let mut bootstrap = bootstrap();
    let filters = bootstrap
        .pointer_mut(
            "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters",
        )
        .expect("envoy.yaml has HTTP filters");
    let mut filter = filters.get_mut(0).expect("the first of them is the filter").take();
    let place = filter.pointer_mut("/typed_config/config/configuration");
    *place.expect("it is configured") = configuration.clone();
    filter
}

/// The Redis cluster of envoy/fleet.yaml, at a port of loopback.
pub fn redis(port: u16) -> Value {
    let mut fleet = read("envoy/fleet.yaml");
    let clusters = fleet["static_resources"]["clusters"].as_array_mut().unwrap();
    let found = clusters.iter_mut().find(|cluster| cluster["name"] == "diana_redis");
    let mut redis = found.expect("fleet.yaml has `diana_redis` among its clusters").take();
    *redis.pointer_mut(PORT).expect("Redis has an address") = port.into();
    redis
}

/// The listener of envoy/native-fleet.yaml that leads to the cluster `redis`.
pub fn pipe_listener() -> Value {
    of_native_fleet("listeners")
}

/// That cluster, at a port of loopback.
pub fn redis_of_pipe(port: u16) -> Value {
    let mut cluster = of_native_fleet("clusters");
    *cluster.pointer_mut(PORT).expect("Redis has an address") = port.into();
    cluster
}

fn of_native_fleet(kind: &str) -> Value {
    let mut fleet = read("envoy/native-fleet.yaml");
    let all = fleet["static_resources"][kind].as_array_mut().unwrap();
    let found = all.iter_mut().find(|resource| resource["name"] == "redis");
    found.expect("native-fleet.yaml has `redis`").take()
}

/// The connection to Redis in a file of envoy/redis/.
pub struct Proxied {
    pub listeners: Vec<Value>,
    pub clusters: Vec<Value>,
    /// The block `redis` of the filter.
    pub redis: Value,
}

/// The connection in a file, after replacements in its text.
#[track_caller]
pub fn proxied(file: &str, replaced: &[(&str, &str)]) -> Proxied {
    let mut text = text(&format!("envoy/redis/{file}.yaml"));
    for (old, new) in replaced {
        assert!(text.contains(old), "{file}.yaml has no `{old}`");
        text = text.replace(old, new);
    }
    let mut file: Value = serde_yaml::from_str(&text).unwrap();
    let filter =
        "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0";
    let rules = file.pointer(&format!("{filter}/typed_config/config/configuration/value"));
    let rules = rules.and_then(Value::as_str).expect("the filter has a text");
    let redis = serde_yaml::from_str::<Value>(rules).unwrap()["redis"].take();
    let mut all_but = |kind: &str, name: &str| -> Vec<Value> {
        let Value::Array(mut all) = file["static_resources"][kind].take() else { panic!("{kind}") };
        all.retain(|resource| resource["name"] != name);
        all
    };
    let listeners = all_but("listeners", "gateway");
    Proxied { listeners, clusters: all_but("clusters", "config_centre"), redis }
}

/// The users of envoy/redis/users.conf, one line each, with the password [`PASSWORD`].
pub fn users() -> Vec<String> {
    let text = text("envoy/redis/users.conf");
    let lines = text.lines().filter(|line| line.starts_with("user "));
    lines.map(|line| line.replace(">PASSWORD", &format!(">{PASSWORD}"))).collect()
}

/// A file of envoy/llm/.
pub struct Model {
    pub rules: String,
    /// The rules of the guard before all other filters, if there is one.
    pub guard: Option<String>,
    /// The filters before Diana.
    pub before: Vec<Value>,
    /// The filters between Diana and the router.
    pub filters: Vec<Value>,
    pub route_config: Value,
    /// The buffer limit of its listener.
    pub buffer: Value,
}

/// A file of envoy/llm/, with routes to this cluster.
pub fn model(file: &str, cluster: &str) -> Model {
    let text = text(&format!("envoy/llm/{file}.yaml"));
    let text = text.replace("cluster: model,", &format!("cluster: {cluster},"));
    let mut example: Value = serde_yaml::from_str(&text).unwrap();
    let listener = example.pointer_mut("/static_resources/listeners/0").expect("a listener");
    let buffer = listener["per_connection_buffer_limit_bytes"].take();
    let manager = listener.pointer_mut("/filter_chains/0/filters/0/typed_config");
    let manager = manager.expect("a connection manager");
    let Value::Array(mut filters) = manager["http_filters"].take() else { panic!("no filters") };
    let rules = |filter: &Value| {
        let rules = filter.pointer("/typed_config/config/configuration/value");
        rules.and_then(Value::as_str).expect("it has rules").to_owned()
    };
    filters.pop();
    let guard = (filters[0]["name"] == "diana-guard").then(|| rules(&filters.remove(0)));
    let ours = filters.iter().position(|filter| filter["name"] == "diana").expect("Diana");
    let behind = filters.split_off(ours + 1);
    let rules = rules(&filters.pop().expect("Diana"));
    let route_config = manager["route_config"].take();
    Model { rules, guard, before: filters, filters: behind, route_config, buffer }
}

/// The filters before Diana in envoy/login-body.yaml, its rules, and the buffer limit of its listener.
pub fn login_body() -> (Vec<Value>, String, Value) {
    let mut example = read("envoy/login-body.yaml");
    let listener = example.pointer_mut("/static_resources/listeners/0").expect("a listener");
    let buffer = listener["per_connection_buffer_limit_bytes"].take();
    let filters = listener.pointer_mut("/filter_chains/0/filters/0/typed_config/http_filters");
    let Some(Value::Array(mut filters)) = filters.map(Value::take) else { panic!("no filters") };
    let is_diana = |filter: &Value| filter["name"] == "diana";
    let place = filters.iter().position(is_diana).expect("it has Diana");
    let rules = filters[place].pointer("/typed_config/config/configuration/value");
    let rules = rules.and_then(Value::as_str).expect("it has rules").to_owned();
    filters.truncate(place);
    (filters, rules, buffer)
}

/// The routes of envoy/envoy.yaml to the cluster `upstream`.
pub fn routes() -> Value {
    let path = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/route_config";
    bootstrap().pointer_mut(path).expect("envoy.yaml has routes").take()
}

/// The rules of envoy/hot.yaml, its routes to the clusters `upstream` and `hot`, and its settings of
/// the connection manager against forged marks.
pub fn hot() -> (String, Value, Value) {
    let mut example = read("envoy/hot.yaml");
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let mut manager = example.pointer_mut(manager).expect("hot.yaml has a listener").take();
    let rules = manager.pointer("/http_filters/0/typed_config/config/configuration/value");
    let rules = rules.and_then(Value::as_str).expect("hot.yaml has rules").to_owned();
    let early = "early_header_mutation_extensions";
    (rules, manager["route_config"].take(), json!({early: manager[early]}))
}

/// The `cors` filter of envoy/cors.yaml, the rules of the filter after it, and the routes.
pub fn cors() -> (Value, String, Value) {
    let mut example = read("envoy/cors.yaml");
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let mut manager = example.pointer_mut(manager).expect("cors.yaml has a listener").take();
    let rules = manager.pointer("/http_filters/1/typed_config/config/configuration/value");
    let rules = rules.and_then(Value::as_str).expect("cors.yaml has rules").to_owned();
    (manager["http_filters"][0].take(), rules, manager["route_config"].take())
}

/// The regular expressions that convert metric names to labels.
pub fn stats_config() -> Value {
    bootstrap()["stats_config"].take()
}
