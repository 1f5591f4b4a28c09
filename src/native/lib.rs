//! The adapter to Envoy as a dynamic module, `libdiana.so`. It runs the same worker as the wasm adapter, in Envoy's own process.
//!
//! Its state is one value (`module.rs`), to which the hooks lead by the configuration or the filter that Envoy passes.
//!
//! Each worker thread of Envoy has a cell (`cell.rs`): a mutex around a [`diana_worker::Worker`] and its roots. The hooks of
//! streams lock the cell of their worker, and nobody else does, except for the thread of this module (`timers.rs`), which owns
//! time: it runs the timers of a worker whose requests do not wait. Where requests wait, it commits an event to one of them,
//! since only the worker's own thread may continue or answer requests. Configurations are built on Envoy's main thread, for all
//! workers at once.
//!
//! Calls to Redis leave by connections of this module to a listener of Envoy, from a thread of their own (`pipe.rs`), or by Envoy's
//! main thread (`calls.rs`), which may be busy.
//!
//! While a cell is locked, the module asks Envoy and changes nothing but forged headers. The worker returns steps, which are taken
//! after that (`response.rs`), and without a reference to the filter, since Envoy may call further hooks within.
//!
//! A panic ends at its hook (`hooks.rs`, `faults.rs`). The mutex is then poisoned, so its worker is rebuilt.

mod abi;
mod calls;
mod cell;
mod clock;
mod config;
mod configurations;
mod data;
mod ending;
#[cfg(feature = "explored")]
pub mod explored;
mod faults;
mod filter;
mod hooks;
mod host;
#[cfg(feature = "faults")]
mod injected;
mod metrics;
mod module;
mod password;
mod pipe;
mod property;
mod request;
mod response;
mod switches;
mod timers;
