//! The adapter to Envoy: the only part that names `proxy_wasm`.

mod abi;
mod clock;
mod host;
mod http;
mod pairs;
mod root;
mod stats;

use proxy_wasm::types::LogLevel;

proxy_wasm::main! {{
    // Also installs the hook that logs a panic before the VM dies.
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(root::Root::default()));
}}
