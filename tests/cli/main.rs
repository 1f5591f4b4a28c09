//! Runs the command `diana` as an operator does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that finds something else has failed"
)]

mod advice;
mod check;
mod command;
#[path = "../it/support/documents.rs"]
mod documents;
mod explain;
mod replay;
mod schema;
mod serve;
mod sessions;
mod suggest;
mod zones;
