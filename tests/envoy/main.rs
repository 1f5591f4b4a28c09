//! Real Envoy processes with the finished module, over HTTP on loopback.
//!
//! `make test STAGES=envoy` first builds the module and gets Envoy. By hand: `DIANA_ENVOY=<path of
//! an envoy> cargo test --test envoy`.

#![allow(clippy::disallowed_methods, reason = "real processes run on real clocks")]

mod harness;

mod access_log;
mod actors;
mod addresses;
mod bans;
mod calendar;
mod chain;
mod configuration;
mod cors;
mod costs;
mod exceptions;
mod fleet;
mod holding;
mod hostile;
mod hot;
mod in_flight;
mod load;
mod matching;
mod metrics;
mod models;
mod operator;
mod panics;
mod parity;
mod paths;
mod peer;
mod plans;
mod presence;
mod process;
mod recipe_page;
mod recipes;
mod redis_connection;
mod remote;
mod repeated_headers;
mod replay;
mod reports;
mod responses;
mod route;
mod rpc;
mod secrets;
mod settings;
mod settling;
mod switches;
mod symptoms;
mod trap;
mod types_of_metadata;
mod updates;
