//! Gateways with a Redis, connected as in envoy/fleet.yaml, or as in its former version.

use std::path::Path;

use serde_json::{Value, json};

use super::{Gateway, hcm_filter, shipped};

/// The cluster that the filter calls.
const CLUSTER: &str = "diana_redis";

/// The socket of Envoy's Redis proxy in the files of envoy/redis/.
const SOCKET: &str = "target/redis.sock";

/// The parts of an Envoy configuration that connect to Redis.
#[derive(Clone)]
pub(super) struct ToRedis {
    pub clusters: Vec<Value>,
    /// Further listeners that some connections need.
    pub listeners: Vec<Value>,
    /// Clusters that a test may change while Envoy runs.
    pub in_file: Vec<Value>,
}

impl Gateway {
    /// With a cluster `diana_redis` for the Redis on a port of loopback.
    pub fn redis(mut self, port: u16) -> Self {
        let clusters = vec![shipped::redis(port)];
        self.redis = Some(ToRedis { clusters, listeners: vec![], in_file: vec![] });
        self
    }

    /// As in envoy/native-fleet.yaml: the native module connects to a listener, which leads to the Redis on a port of loopback.
    pub fn redis_by_pipe(mut self, port: u16) -> Self {
        let (clusters, listeners) =
            (vec![shipped::redis_of_pipe(port)], vec![shipped::pipe_listener()]);
        self.redis = Some(ToRedis { clusters, listeners, in_file: vec![] });
        self
    }

    /// Through a listener without a port, with a route to Redis: four blocks instead of one. Users
    /// may still have this configuration.
    pub fn redis_by_listener(self, port: u16) -> Self {
        let mut redis = shipped::redis(port);
        redis["name"] = "redis".into();
        let settings = redis.as_object_mut().expect("a cluster");
        settings.retain(|name, _| {
            !["upstream_config", "typed_extension_protocol_options"].contains(&name.as_str())
        });
        let here = json!({"envoy_internal_address": {"server_listener_name": CLUSTER}});
        let endpoint = json!({"lb_endpoints": [{"endpoint": {"address": here}}]});
        let calls = json!({
            "name": CLUSTER,
            "load_assignment": {"cluster_name": CLUSTER, "endpoints": [endpoint]},
        });
        let (clusters, listeners) = (vec![calls, redis], vec![bridge()]);
        Self { redis: Some(ToRedis { clusters, listeners, in_file: vec![] }), ..self }
    }

    /// Changes the cluster of Redis itself.
    pub fn redis_with(mut self, change: impl Fn(&mut Value)) -> Self {
        let redis = self.redis.as_mut().and_then(|to_redis| to_redis.clusters.last_mut());
        change(redis.expect("there is a Redis"));
        self
    }

    /// Forwards the bodies of requests to Redis, with a timeout of half a second.
    pub fn into_redis(mut self) -> Self {
        self.route = json!({"cluster": CLUSTER, "timeout": "0.5s"});
        self
    }

    pub(super) fn add_redis(&self, bootstrap: &mut Value, folder: &Path) {
        let Some(ToRedis { clusters, listeners, .. }) = &self.redis else { return };
        let resources = &mut bootstrap["static_resources"];
        resources["clusters"].as_array_mut().unwrap().extend(with_socket_in(folder, clusters));
        if !listeners.is_empty() {
            resources["listeners"] = with_socket_in(folder, listeners).into();
            let kind = "type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener";
            bootstrap["bootstrap_extensions"] = json!([
                {"name": "envoy.bootstrap.internal_listener", "typed_config": {"@type": kind}}
            ]);
        }
        bootstrap["stats_flush_interval"] = "0.2s".into();
    }
}

/// The values with a separate socket for each Envoy.
pub fn with_socket_in(folder: &Path, all: &[Value]) -> Vec<Value> {
    let socket = folder.join("redis.sock");
    let text = json!(all).to_string().replace(SOCKET, socket.to_str().unwrap());
    serde_json::from_str(&text).unwrap()
}

/// A listener that sends the body of a POST unchanged to the cluster `redis`.
fn bridge() -> Value {
    let connect = json!({"upgrade_type": "CONNECT", "connect_config": {"allow_post": true}});
    let route = json!({"cluster": "redis", "timeout": "2s", "upgrade_configs": [connect]});
    let all = json!({
        "name": "redis", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": route}],
    });
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": CLUSTER,
        "generate_request_id": false,
        "upgrade_configs": [{"upgrade_type": "CONNECT"}],
        "http_filters": [hcm_filter("envoy.filters.http.router", "router", "Router", json!({}))],
        "route_config": {"virtual_hosts": [all]},
    });
    let filter =
        json!({"name": "envoy.filters.network.http_connection_manager", "typed_config": manager});
    json!({"name": CLUSTER, "internal_listener": {}, "filter_chains": [{"filters": [filter]}]})
}
