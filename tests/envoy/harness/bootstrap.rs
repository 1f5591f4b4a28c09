//! The Envoy configuration of a test: one listener, the filter of envoy.yaml with the test's rules,
//! and a route that responds with 200.

mod listener;
mod proxied;
mod redis;

use std::ffi::OsString;
use std::path::Path;

use kit::process_clock::{self, Wall, to_mid_hour};
use serde_json::{Value, json};

use super::upstream::Upstream;
use super::{crash, shipped};
pub use listener::{access_log_of, hcm_filter, socket_of};
use redis::ToRedis;
pub(super) use redis::with_socket_in;

/// The name of a gateway in a separate Envoy, the same as that of the root in envoy.yaml.
const OWN: &str = "diana";

/// The configuration of a gateway.
#[derive(Clone)]
pub struct Gateway {
    /// The name of the listener. In a shared Envoy also that of the VM and the root.
    pub(super) name: String,
    configuration: Value,
    workers: u32,
    before: Vec<Value>,
    /// The configuration of an earlier filter of the module, and whether it is in the same VM.
    earlier: Option<(Value, bool)>,
    behind_ours: Vec<Value>,
    trusted_hops: u32,
    transport_socket: Value,
    buffer: Value,
    route: Value,
    route_config: Value,
    settings: Value,
    idle_timeout: &'static str,
    has_crashing_module: bool,
    reloads: bool,
    has_faulty_library: bool,
    has_precise_timers: bool,
    access_log: Option<&'static str>,
    gives_memory_back: bool,
    clusters: Vec<Value>,
    secrets: Vec<Value>,
    environment: Value,
    redis: Option<ToRedis>,
    drain: Option<u32>,
    has_socket: bool,
    has_proxy_protocol: bool,
}

impl Gateway {
    /// With these rules, as the text of the plugin configuration.
    pub fn with(rules: &str) -> Self {
        Self::configured("StringValue", rules.into())
    }

    /// With these rules, as a `Struct` instead of text.
    pub fn with_struct(rules: Value) -> Self {
        Self::configured("Struct", rules)
    }

    fn configured(message: &str, value: Value) -> Self {
        let kind = format!("type.googleapis.com/google.protobuf.{message}");
        Self {
            name: OWN.into(),
            configuration: json!({"@type": kind, "value": value}),
            workers: 1,
            before: Vec::new(),
            earlier: None,
            behind_ours: Vec::new(),
            trusted_hops: 0,
            transport_socket: Value::Null,
            buffer: Value::Null,
            route: Value::Null,
            route_config: Value::Null,
            settings: json!({}),
            idle_timeout: "30s",
            has_crashing_module: false,
            reloads: true,
            has_faulty_library: false,
            has_precise_timers: false,
            access_log: Some(listener::ACCESS_LOG),
            gives_memory_back: false,
            clusters: Vec::new(),
            secrets: Vec::new(),
            environment: json!({}),
            redis: None,
            drain: None,
            has_socket: false,
            has_proxy_protocol: false,
        }
    }

    /// With this number of workers instead of one.
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// After another HTTP filter, which comes after an earlier filter of the module.
    pub fn behind(mut self, filter: Value) -> Self {
        self.before.push(filter);
        self
    }

    /// After another filter of the module, in the same VM or in its own.
    pub fn behind_module(mut self, other: &Gateway, shares_vm: bool) -> Self {
        self.earlier = Some((other.configuration.clone(), shares_vm));
        self
    }

    /// Before another HTTP filter.
    pub fn ahead_of(mut self, filter: Value) -> Self {
        self.behind_ours.push(filter);
        self
    }

    /// Trusts one hop of `x-forwarded-for`, so that a test can choose its address.
    pub fn trust_forwarded_for(mut self) -> Self {
        self.trusted_hops = 1;
        self
    }

    /// Also on a Unix domain socket, [`Envoy::socket`](super::Envoy::socket).
    pub fn on_a_socket(mut self) -> Self {
        self.has_socket = true;
        self
    }

    /// On a listener that requires the PROXY protocol.
    pub fn of_proxy_protocol(mut self) -> Self {
        self.has_proxy_protocol = true;
        self
    }

    /// With a transport socket on its listener, such as TLS.
    pub fn transport_socket(mut self, socket: Value) -> Self {
        self.transport_socket = socket;
        self
    }

    /// With a service as upstream, instead of a direct response.
    pub fn before(mut self, upstream: &Upstream) -> Self {
        self.route = json!({"cluster": upstream.cluster()});
        self.cluster(&upstream.cluster(), upstream.port)
    }

    /// With these routes, and these settings of the connection manager.
    pub fn routed(mut self, routes: Value, settings: Value) -> Self {
        (self.route_config, self.settings) = (routes, settings);
        self
    }

    /// As in envoy/hot.yaml, with these services for ordinary and for hot keys, and with modified
    /// rules.
    pub fn as_in_hot_yaml(rules: impl Fn(String) -> String, services: [&Upstream; 2]) -> Self {
        let (shipped, routes, settings) = shipped::hot();
        let gateway = Self::with(&rules(shipped)).routed(routes, settings);
        let [upstream, hot] = services.map(|service| service.port);
        gateway.cluster("upstream", upstream).cluster("hot", hot)
    }

    /// With the routes of envoy/envoy.yaml to a service.
    pub fn routed_as_shipped(self, upstream: &Upstream) -> Self {
        self.routed(shipped::routes(), json!({})).cluster("upstream", upstream.port)
    }

    /// With a change of its routes.
    pub fn reroute(mut self, change: impl FnOnce(&mut Vec<Value>)) -> Self {
        let routes = self.route_config.pointer_mut("/virtual_hosts/0/routes");
        change(routes.and_then(Value::as_array_mut).expect("it has routes"));
        self
    }

    /// As in envoy/cors.yaml, with a service as upstream, and with modified rules. Also returns the
    /// `cors` filter, which is not yet in the gateway.
    pub fn as_in_cors_yaml(rules: impl Fn(String) -> String, upstream: &Upstream) -> (Self, Value) {
        let (cors, shipped, route_config) = shipped::cors();
        let mut gateway = Self::with(&rules(shipped)).cluster("upstream", upstream.port);
        gateway.route_config = route_config;
        (gateway, cors)
    }

    /// As in envoy/login-body.yaml, with a service as upstream.
    pub fn as_in_login_body_yaml(service: &Upstream) -> Self {
        let (filters, rules, buffer) = shipped::login_body();
        let mut gateway = Self::with(&rules).before(service);
        (gateway.before, gateway.buffer) = (filters, buffer);
        gateway
    }

    /// As in a file of envoy/llm/, with a service as upstream, and with remaining permits in
    /// responses.
    pub fn as_in_llm(file: &str, model: &Upstream) -> Self {
        let shipped = shipped::model(file, &model.cluster());
        let mut gateway = Self::with(&format!("accepted: {{headers: true}}\n{}", shipped.rules));
        (gateway.behind_ours, gateway.route_config) = (shipped.filters, shipped.route_config);
        (gateway.before, gateway.buffer) = (shipped.before, shipped.buffer);
        if let Some(rules) = shipped.guard {
            gateway = gateway.behind_module(&Self::with(&rules), true);
        }
        gateway.cluster(&model.cluster(), model.port)
    }

    /// With another `stream_idle_timeout`.
    pub fn idle_timeout(mut self, timeout: &'static str) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// With a module that crashes on a request with many headers.
    pub fn crashing_module(mut self) -> Self {
        self.has_crashing_module = true;
        self
    }

    /// With Envoy's default for a VM that failed: it is never replaced.
    pub fn without_reload(mut self) -> Self {
        self.reloads = false;
        self
    }

    /// With a native module that panics where a test wants it.
    pub fn faulty_library(mut self) -> Self {
        self.has_faulty_library = true;
        self
    }

    /// Without an access log.
    pub fn without_access_log(mut self) -> Self {
        self.access_log = None;
        self
    }

    /// With an access log of this format.
    pub fn logging(mut self, format: &'static str) -> Self {
        self.access_log = Some(format);
        self
    }

    /// Releases unused memory to the system, so that the memory of the process is meaningful.
    pub fn give_memory_back(mut self) -> Self {
        self.gives_memory_back = true;
        self
    }

    /// With precise timers, independent of the kernel's tick of up to 4 ms.
    pub fn precise_timers(mut self) -> Self {
        self.has_precise_timers = true;
        self
    }

    /// With a listener that drains for this number of seconds after its replacement.
    pub fn drains_for(mut self, seconds: u32) -> Self {
        self.drain = Some(seconds);
        self
    }

    /// The drain time of a listener in seconds.
    pub fn drain_time(&self) -> Option<u32> {
        self.drain
    }

    /// Additional variables for Envoy's environment.
    pub fn environment(&self, folder: &Path) -> Vec<(String, OsString)> {
        let mut variables: Vec<(String, OsString)> = Vec::new();
        variables.extend(self.password().map(|(name, value)| (name.into(), value)));
        if self.has_precise_timers {
            variables.push(("EVENT_PRECISE_TIMER".into(), "1".into()));
        }
        if self.has_faulty_library {
            let folder = shipped::libraries().join("faults").into_os_string();
            variables.push(("ENVOY_DYNAMIC_MODULES_SEARCH_PATH".into(), folder));
        }
        if shipped::is_native() {
            let own = self.environment.as_object().expect("a mapping").iter();
            variables.extend(
                own.map(|(name, value)| (name.clone(), value.as_str().expect("a text").into())),
            );
        }
        process_clock::set(folder, Wall::Ahead(to_mid_hour()));
        let clock = process_clock::environment(folder).into_iter();
        variables.extend(clock.map(|(name, value)| (name.into(), value)));
        variables
    }

    /// With a cluster of one endpoint, a port on loopback.
    pub fn cluster(mut self, name: &str, port: u16) -> Self {
        let address = json!({"socket_address": {"address": "127.0.0.1", "port_value": port}});
        let endpoint = json!({"lb_endpoints": [{"endpoint": {"address": address}}]});
        let any = 1_000_000;
        self.clusters.push(json!({
            "name": name,
            "load_assignment": {"cluster_name": name, "endpoints": [endpoint]},
            "circuit_breakers": {"thresholds": [{
                "max_connections": any, "max_pending_requests": any, "max_requests": any,
            }]},
        }));
        self
    }

    /// With a static secret of this name.
    pub fn secret(mut self, name: &str, value: &str) -> Self {
        self.secrets.push(secret(name, value));
        self
    }

    /// With trailers from the latest cluster, which HTTP/1.1 disables by default.
    pub fn of_trailers(mut self) -> Self {
        self.set_upstream_protocol(json!({"enable_trailers": true}), json!({}));
        self
    }

    /// With streams of the latest cluster that end after 150 ms.
    pub fn of_brief_streams(mut self) -> Self {
        self.set_upstream_protocol(json!({}), json!({"max_stream_duration": "0.15s"}));
        self
    }

    /// Without room for requests to the latest cluster.
    pub fn of_no_requests(mut self) -> Self {
        self.latest_cluster()["circuit_breakers"] = json!({"thresholds": [{
            "max_connections": 0, "max_pending_requests": 0, "max_requests": 0,
        }]});
        self
    }

    fn set_upstream_protocol(&mut self, http: Value, common: Value) {
        let options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
        self.latest_cluster()["typed_extension_protocol_options"] = json!({
            options: {
                "@type": format!("type.googleapis.com/{options}"),
                "common_http_protocol_options": common,
                "explicit_http_config": {"http_protocol_options": http},
            },
        });
    }

    fn latest_cluster(&mut self) -> &mut Value {
        self.clusters.last_mut().expect("a cluster")
    }

    /// With a cluster without endpoints.
    pub fn empty_cluster(mut self, name: &str) -> Self {
        self.clusters.push(json!({"name": name}));
        self
    }

    /// With a variable in the environment of the filter's VM.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment[name] = value.into();
        self
    }

    /// The number of worker threads.
    pub fn worker_count(&self) -> u32 {
        self.workers
    }

    /// The bootstrap with listeners from `lds.json`, and some clusters from `cds.json`. Both may
    /// change.
    pub fn dynamic(&self, folder: &Path) -> Value {
        let file = |name| json!({"path_config_source": {"path": folder.join(name)}});
        let release = json!({"bytes_to_release": 1 << 30, "memory_release_interval": "0.2s"});
        let mut bootstrap = json!({
            "node": {"id": "test", "cluster": "test"},
            "memory_allocator_manager": self.gives_memory_back.then_some(release),
            "static_resources": {"clusters": [], "secrets": self.secrets},
            "dynamic_resources": {"lds_config": file("lds.json"), "cds_config": file("cds.json")},
            "stats_config": shipped::stats_config(),
            // Lets tests change the runtime.
            "layered_runtime": {"layers": [{"name": "admin", "admin_layer": {}}]},
            "admin": {"address": loopback()},
        });
        self.add_redis(&mut bootstrap, folder);
        bootstrap
    }

    /// The bootstrap with a static listener.
    pub fn fixed(&self, folder: &Path) -> Value {
        json!({
            "static_resources": {"listeners": [self.listener(folder)], "clusters": self.clusters},
            "admin": {"address": loopback()},
        })
    }
}

/// A generic secret of Envoy.
pub fn secret(name: &str, value: &str) -> Value {
    json!({"name": name, "generic_secret": {"secret": {"inline_string": value}}})
}

fn loopback() -> Value {
    json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}})
}
