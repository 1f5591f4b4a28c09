//! Plain values.

mod address;
mod cookies;
mod json;
mod keys;
mod pointer;
mod ring;
