//! What every adapter of Diana to a host needs and that is not the host.

pub mod hold;
pub mod remote;
