//! Callers as hashes. A crate of its own makes them, since it is compiled for speed.

pub use diana_key::{Key, KeyHasher, Seed};
