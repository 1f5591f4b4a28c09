//! A listener: the filters of envoy.yaml with the test's rules, and its routes.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::redis::with_socket_in;
use super::{Gateway, crash, loopback, shipped};

/// The default format of the access log.
pub(super) const ACCESS_LOG: &str =
    "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %FILTER_STATE(wasm.diana:PLAIN)%\n";

/// An HTTP filter of Envoy, by its name, the short name of its type, and its configuration.
pub fn hcm_filter(name: &str, package: &str, message: &str, mut config: Value) -> Value {
    config["@type"] =
        format!("type.googleapis.com/envoy.extensions.filters.http.{package}.v3.{message}").into();
    json!({"name": name, "typed_config": config})
}

impl Gateway {
    /// The listener. Its port is 0, so the kernel chooses one.
    pub fn listener(&self, folder: &Path) -> Value {
        let mut filters = Vec::new();
        if let Some((configuration, shares_vm)) = &self.earlier {
            let root = format!("{}-earlier", self.name);
            let vm = if *shares_vm { &self.name } else { &root };
            let mut earlier = self.filter(configuration, &root, vm);
            earlier["name"] = json!(root);
            filters.push(earlier);
        }
        filters.extend(self.before.iter().cloned());
        let mut filter = self.filter(&self.configuration, &self.name, &self.name);
        if self.has_crashing_module {
            let path = "/typed_config/config/vm_config/code/local/filename";
            *filter.pointer_mut(path).unwrap() = json!(crash::write(folder));
        }
        filters.push(filter);
        filters.extend(self.behind_ours.iter().cloned());
        filters.push(hcm_filter("envoy.filters.http.router", "router", "Router", json!({})));
        let mut manager = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": self.name,
            "stream_idle_timeout": self.idle_timeout,
            "use_remote_address": true,
            // Otherwise Envoy replaces the request id of an external client.
            "preserve_external_request_id": true,
            "xff_num_trusted_hops": self.trusted_hops,
            "access_log": self.access_log.map(|line| [self.access_log(folder, line)]),
            "http_filters": filters,
            "route_config": self.routes(),
        });
        for (name, value) in self.settings.as_object().unwrap() {
            manager[name] = value.clone();
        }
        let mut chain = json!({"filters": [{"name": "http", "typed_config": manager}]});
        if !self.transport_socket.is_null() {
            chain["transport_socket"] = self.transport_socket.clone();
        }
        let mut listener = json!({
            "name": self.name,
            "address": loopback(),
            "per_connection_buffer_limit_bytes": self.buffer,
            "filter_chains": [chain],
        });
        if self.has_socket {
            let pipe = json!({"path": socket_of(folder, &self.name)});
            listener["additional_addresses"] = json!([{"address": {"pipe": pipe}}]);
        }
        if self.has_proxy_protocol {
            let kind = "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol";
            listener["listener_filters"] =
                json!([{"name": "proxy_protocol", "typed_config": {"@type": kind}}]);
        }
        // The rules may name the socket.
        with_socket_in(folder, &[listener]).remove(0)
    }

    /// A filter of the module.
    fn filter(&self, configuration: &Value, root: &str, vm: &str) -> Value {
        if shipped::is_native() {
            return shipped::native_filter(configuration, root);
        }
        let mut filter = shipped::filter(configuration);
        let config = &mut filter["typed_config"]["config"];
        if !self.reloads {
            config["failure_policy"] = json!("UNSPECIFIED");
        }
        config["root_id"] = json!(root);
        config["vm_config"]["vm_id"] = json!(vm);
        config["vm_config"]["environment_variables"] = json!({"key_values": self.environment});
        filter
    }

    fn routes(&self) -> Value {
        if !self.route_config.is_null() {
            return self.route_config.clone();
        }
        let mut all = json!({"match": {"prefix": "/"}});
        if self.route.is_null() {
            all["direct_response"] =
                json!({"status": 200, "body": {"inline_string": "upstream\n"}});
        } else {
            all["route"] = self.route.clone();
        }
        json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [all]}]})
    }

    fn access_log(&self, folder: &Path, line: &str) -> Value {
        json!({"name": "file", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": access_log_of(folder, &self.name),
            "log_format": {"text_format_source": {"inline_string": line}},
        }})
    }
}

/// The Unix domain socket of a gateway.
pub fn socket_of(folder: &Path, gateway: &str) -> PathBuf {
    folder.join(format!("{gateway}.sock"))
}

/// The file of a gateway's access log.
pub fn access_log_of(folder: &Path, gateway: &str) -> PathBuf {
    folder.join(format!("logs/{gateway}.access.log"))
}
