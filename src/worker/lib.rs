//! What every adapter of Diana to a host needs and that is not the host: what a worker does when its host calls it.
//!
//! An adapter has one [`Worker`] for each of the host's threads, a [`Root`] for each configuration of the plugin there, and a
//! [`Stream`] for each request, and says by [`host::Host`] what the host can do.
//!
//! A waiting request belongs to the whole worker ([`Worker`]): after a change of the configuration the old root may not
//! be called any more, and listeners with rules of their own have roots of their own. So held requests are in one queue
//! (`hold.rs`), and the tick of any root serves all of them. At most 32 requests are resumed in one call, since some
//! hundreds exhaust the host's stack. No code sets a timer where it begins to wait: at the end of each call that may
//! have made something wait, `Worker::settle` sets the timer of the latest root. Calls to Redis leave from that root
//! only, since it lives longest. A root that ends hands all this on to another. To wait for something new, add its time
//! to `Instance::next`.
//!
//! An instance ends when neither a root nor a stream has it and all its charges are settled. An instance with a
//! successor in its namespace gives everything back two seconds after its last request, since Envoy lets a listener
//! drain for many minutes.

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
