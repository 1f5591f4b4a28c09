//! Gateways that reach Redis through Envoy's own proxy of it, as a file of envoy/redis/ says.

use std::ffi::OsString;

use serde_json::Value;

use super::redis::ToRedis;
use super::{Gateway, shipped};

impl Gateway {
    /// With the way to Redis of a file of envoy/redis/, in whose text something is replaced; `rules` makes the rules of
    /// what the file tells the filter of Redis.
    #[track_caller]
    pub fn as_in(file: &str, replaced: &[(&str, &str)], rules: impl Fn(&Value) -> String) -> Self {
        let shipped::Proxied { listeners, clusters, redis } = shipped::proxied(file, replaced);
        let mut gateway = Self::with(&rules(&redis));
        gateway.redis = Some(ToRedis { clusters, listeners, in_file: vec![] });
        gateway
    }

    /// With the clusters of Redis in a file that may change, see [`super::super::envoy::Process::put_clusters`].
    pub fn with_clusters_in_a_file(mut self) -> Self {
        let to_redis = self.redis.as_mut().expect("a way to Redis");
        let is_redis = |cluster: &Value| {
            let name = cluster["name"].as_str();
            name.is_some_and(|name| name.starts_with("redis") && name != "redis_proxy")
        };
        to_redis.in_file = to_redis.clusters.extract_if(.., |cluster| is_redis(cluster)).collect();
        self
    }

    /// The clusters in `cds.json`: all but those of Redis, unless they may change.
    pub fn clusters_in_file(&self) -> Vec<Value> {
        let of_redis = self.redis.iter().flat_map(|to_redis| &to_redis.in_file);
        self.clusters.iter().chain(of_redis).cloned().collect()
    }

    /// What Envoy logs in with.
    pub(super) fn password(&self) -> Option<(&'static str, OsString)> {
        self.redis.as_ref().map(|_| ("DIANA_REDIS_PASSWORD", shipped::PASSWORD.into()))
    }
}
