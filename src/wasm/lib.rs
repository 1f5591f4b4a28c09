//! The adapter to Envoy. No other crate uses `proxy_wasm`.

#![allow(missing_docs, reason = "what is exported is the host's interface")]

mod calls;
mod ending;
mod http;
mod pairs;
mod plugin;
mod raw;
mod request;
mod shared;
mod stats;
mod step;
mod vm;

use proxy_wasm::types::LogLevel;

proxy_wasm::main! {{
    // Also installs the hook that logs a panic before the VM dies.
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|id| Box::new(plugin::Plugin::new(id)));
}}
