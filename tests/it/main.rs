//! Native tests of the crates, without a host.

mod algorithm;
mod config;
mod features;
mod limiter;
mod policy;
mod project;
mod redis;
mod request;
mod store;
mod support;
mod worker;
