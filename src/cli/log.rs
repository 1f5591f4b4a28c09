//! Access logs: the requests of their lines, in the order in which they came.

mod lines;
mod order;
mod progress;
mod source;

pub use order::Log;
pub use source::Seen;
