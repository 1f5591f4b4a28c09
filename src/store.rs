//! Where usage is counted.

pub mod local;
mod slab;
