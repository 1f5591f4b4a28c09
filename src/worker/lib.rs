//! The part of an adapter that does not depend on the host: the behaviour of a worker when its host
//! calls.
//!
//! An adapter has one [`Worker`] per thread of the host, a [`Root`] for each configuration of the
//! plugin in that thread, and a [`Stream`] for each request. It implements [`host::Host`], by which
//! the worker only asks. What happens to streams is returned ([`Step`]): the adapter does it when the
//! call is over.
//!
//! A waiting request belongs to the whole worker ([`Worker`]): after a configuration change the
//! host may not call the old root any more, and listeners with different rules have different
//! roots. So all held requests are in one queue (`hold.rs`), and the tick of any root serves all of
//! them. At most 32 requests are resumed in one call, since some hundreds exhaust the host's stack.
//! Code that makes a request wait does not set a timer. At the end of each call that may have made
//! one wait, `Worker::schedule` sets the timer of the latest root. Only that root makes calls to
//! Redis, since it lives longest. A root that ends transfers its work to another root. To wait for
//! something new, add its time to `Instance::next`, or to `Worker::next` if it belongs to no
//! instance.
//!
//! An instance ends when no root or stream has a reference to it, and all its charges are settled
//! or handed to a later instance. An instance with a successor in its namespace returns its leases
//! two seconds after its last request, since Envoy may drain a listener for many minutes.

mod admin;
mod changes;
mod clock;
pub mod hold;
pub mod host;
mod instance;
mod operator;
mod redis;
pub mod remote;
mod reply;
mod resume;
mod root;
mod state;
mod step;
mod stream;
mod timer;
mod without_document;
mod worker;

pub use instance::Instance;
pub use root::{Root, default_namespace};
pub use step::{Effects, HostStream, Next, Step, Steps, is_marked};
pub use stream::Stream;
pub use worker::Worker;
