//! What every adapter of Diana to a host needs and that is not the host: what a worker does when its host calls it.
//!
//! An adapter has one [`Worker`] for each of the host's threads, a [`Root`] for each configuration of the plugin there, and a
//! [`Stream`] for each request, and says by [`host::Host`] what the host can do.

mod admin;
mod clock;
pub mod hold;
pub mod host;
mod instance;
mod news;
mod operator;
pub mod remote;
mod reply;
mod root;
mod seed;
mod stream;
mod timer;
mod waiting;
mod worker;

pub use instance::Instance;
pub use reply::AdminReply;
pub use root::Root;
pub use stream::Stream;
pub use waiting::Field;
pub use worker::Worker;
