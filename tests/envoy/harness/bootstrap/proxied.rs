//! Gateways that reach Redis through Envoy's Redis proxy, with the files of envoy/redis/.

use std::ffi::OsString;

use serde_json::Value;

use super::redis::ToRedis;
use super::{Gateway, shipped};

impl Gateway {
    /// With the connection to Redis of a file of envoy/redis/, after replacements in its text.
    /// `rules` generates the rules from the file's block `redis`.
    #[track_caller]
    pub fn as_in(file: &str, replaced: &[(&str, &str)], rules: impl Fn(&Value) -> String) -> Self {
        let shipped::Proxied { listeners, clusters, redis } = shipped::proxied(file, replaced);
        let mut gateway = Self::with(&rules(&redis));
        gateway.redis = Some(ToRedis { clusters, listeners, in_file: vec![] });
        gateway
    }

    /// With the clusters of Redis in a file that may change, see
    /// [`super::super::envoy::Process::put_clusters`].
    pub fn with_clusters_in_a_file(mut self) -> Self {
        let to_redis = self.redis.as_mut().expect("a way to Redis");
        let is_redis = |cluster: &Value| {
            let name = cluster["name"].as_str();
            name.is_some_and(|name| name.starts_with("redis") && name != "redis_proxy")
        };
        to_redis.in_file = to_redis.clusters.extract_if(.., |cluster| is_redis(cluster)).collect();
        self
    }

    /// The clusters in `cds.json`: those of Redis only if they may change.
    pub fn clusters_in_file(&self) -> Vec<Value> {
        let of_redis = self.redis.iter().flat_map(|to_redis| &to_redis.in_file);
        self.clusters.iter().chain(of_redis).cloned().collect()
    }

    /// Envoy's password for Redis.
    pub(super) fn password(&self) -> Option<(&'static str, OsString)> {
        self.redis.as_ref().map(|_| ("DIANA_REDIS_PASSWORD", shipped::PASSWORD.into()))
    }
}
