//! The Envoy configuration of a test: one listener, the filter of envoy.yaml with the test's rules,
//! and a route that answers 200.

use std::path::Path;

use serde_json::{Value, json};

use super::shipped;

/// A gateway as a test wants it.
#[derive(Clone)]
pub struct Gateway {
    configuration: Value,
    workers: u32,
    before: Vec<Value>,
    trusted_hops: u32,
    transport_socket: Value,
}

/// An HTTP filter of Envoy by its name, its type's short name, and its configuration.
pub fn hcm_filter(name: &str, package: &str, message: &str, mut config: Value) -> Value {
    config["@type"] =
        format!("type.googleapis.com/envoy.extensions.filters.http.{package}.v3.{message}").into();
    json!({"name": name, "typed_config": config})
}

impl Gateway {
    /// With these rules, as the text of the plugin configuration.
    pub fn with(rules: &str) -> Self {
        Self::configured("StringValue", rules.into())
    }

    /// With these rules, not as text but as Envoy's own kind of JSON object.
    pub fn with_struct(rules: Value) -> Self {
        Self::configured("Struct", rules)
    }

    fn configured(message: &str, value: Value) -> Self {
        let kind = format!("type.googleapis.com/google.protobuf.{message}");
        Self {
            configuration: json!({"@type": kind, "value": value}),
            workers: 1,
            before: Vec::new(),
            trusted_hops: 0,
            transport_socket: Value::Null,
        }
    }

    /// With so many worker threads instead of one.
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// Behind another HTTP filter.
    pub fn behind(mut self, filter: Value) -> Self {
        self.before.push(filter);
        self
    }

    /// Believes one hop of `x-forwarded-for`, so that a test can choose its address.
    pub fn trust_forwarded_for(mut self) -> Self {
        self.trusted_hops = 1;
        self
    }

    /// With TLS or the like on its listener.
    pub fn transport_socket(mut self, socket: Value) -> Self {
        self.transport_socket = socket;
        self
    }

    /// The number of worker threads.
    pub fn worker_count(&self) -> u32 {
        self.workers
    }

    /// The listener; on port 0 the kernel chooses.
    pub fn listener(&self, folder: &Path) -> Value {
        let mut filters = self.before.clone();
        filters.push(shipped::filter(&self.configuration));
        filters.push(hcm_filter("envoy.filters.http.router", "router", "Router", json!({})));
        let manager = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "gateway",
            "stream_idle_timeout": "30s",
            "use_remote_address": true,
            "xff_num_trusted_hops": self.trusted_hops,
            "access_log": [access_log(folder)],
            "http_filters": filters,
            "route_config": routes(),
        });
        let mut chain = json!({"filters": [{"name": "http", "typed_config": manager}]});
        if !self.transport_socket.is_null() {
            chain["transport_socket"] = self.transport_socket.clone();
        }
        json!({"name": "gateway", "address": loopback(), "filter_chains": [chain]})
    }

    /// The bootstrap whose listener comes from the file `lds.json` and may change.
    pub fn dynamic(&self, folder: &Path) -> Value {
        let file = json!({"path_config_source": {"path": folder.join("lds.json")}});
        json!({
            "node": {"id": "test", "cluster": "test"},
            "dynamic_resources": {"lds_config": file},
            "stats_config": shipped::stats_config(),
            "admin": {"address": loopback()},
        })
    }

    /// The content of `lds.json`.
    pub fn listeners(&self, folder: &Path) -> Value {
        let mut listener = self.listener(folder);
        listener["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener".into();
        json!({"resources": [listener]})
    }

    /// The bootstrap with the listener in it.
    pub fn fixed(&self, folder: &Path) -> Value {
        json!({
            "static_resources": {"listeners": [self.listener(folder)]},
            "admin": {"address": loopback()},
        })
    }
}

fn loopback() -> Value {
    json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}})
}

fn routes() -> Value {
    let answer = json!({"status": 200, "body": {"inline_string": "upstream\n"}});
    let all = json!({"match": {"prefix": "/"}, "direct_response": answer});
    json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [all]}]})
}

fn access_log(folder: &Path) -> Value {
    let line = "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %FILTER_STATE(wasm.diana:PLAIN)%\n";
    json!({"name": "file", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
        "path": folder.join("access.log"),
        "log_format": {"text_format_source": {"inline_string": line}},
    }})
}
