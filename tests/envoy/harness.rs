//! Starts Envoy for a test, sends requests to it, and stops it.

mod bootstrap;
mod certificates;
mod changes;
mod client;
mod clock;
mod config_server;
mod crash;
mod envoy;
mod http2;
mod open_load;
mod port;
mod redis;
mod resp;
mod response;
mod shipped;
mod stats;
mod upstream;
mod wait;
mod wire;

pub use bootstrap::{Gateway, hcm_filter};
pub use certificates::Certificates;
pub use client::{Client, exchange, request};
pub use clock::Clock;
pub use config_server::{ConfigServer, ServerResponse};
pub use envoy::{Envoy, assert_no_trap, start_all, validate};
pub use http2::{Http2, Outcome};
pub use open_load::{Hit, OpenLoad};
pub use port::free as free_port;
pub use redis::Redis;
pub use resp::{Reply, call, pipeline};
pub use response::Response;
pub use shipped::{PASSWORD, is_native, text as shipped_text, users};
pub use upstream::{Arrival, Upstream};
pub use wait::eventually;
pub use wire::{Fault, Wire};
