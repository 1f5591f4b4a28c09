//! Gateways with a Redis, which they reach as envoy/fleet.yaml says.

use serde_json::{Value, json};

use super::{Gateway, shipped};

impl Gateway {
    /// With a cluster `diana_redis` that leads to the Redis on a port of loopback.
    pub fn redis(mut self, port: u16) -> Self {
        self.bridge = Some(shipped::bridge(port));
        self
    }

    /// Hands the bodies of its own callers to Redis, and gives it half a second.
    pub fn into_redis(mut self) -> Self {
        self.route = json!({"cluster": "diana_redis", "timeout": "0.5s"});
        self
    }

    pub(super) fn add_bridge(&self, bootstrap: &mut Value) {
        let Some(bridge) = &self.bridge else { return };
        bootstrap["bootstrap_extensions"] = bridge.extensions.clone();
        let resources = &mut bootstrap["static_resources"];
        resources["listeners"] = json!([bridge.listener]);
        resources["clusters"].as_array_mut().unwrap().extend(bridge.clusters.clone());
        bootstrap["stats_flush_interval"] = "0.2s".into();
    }
}
