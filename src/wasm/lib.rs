//! The adapter to Envoy: the only part that names the ABI of proxy-wasm.

#![allow(missing_docs, reason = "what is exported is the host's interface")]

mod abi;
mod calls;
mod contexts;
mod ending;
mod exports;
mod http;
mod one_thread;
mod pairs;
mod plugin;
mod refused;
mod request;
mod shared;
mod stats;
mod system;
mod vm;
