//! Access logs: their requests in order of arrival.

mod lines;
mod order;
mod progress;
mod source;

pub use order::AccessLog;
pub use source::LogSummary;
