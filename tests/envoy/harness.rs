//! Starts Envoy for a test, talks to it, and stops it.

mod bootstrap;
mod client;
mod envoy;
mod load;
mod response;
mod shipped;
mod wait;

pub use bootstrap::{Gateway, hcm_filter};
pub use client::{Client, exchange, request};
pub use envoy::{Envoy, assert_no_trap, validate};
pub use load::{Load, Shot, alone};
pub use response::Response;
pub use wait::eventually;
