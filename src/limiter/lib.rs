//! One decision, from the request to its report; settling; and queries of operators.
//!
//! [`Limiter`] has five parts. `Matcher` finds the rules that apply to a request and its caller
//! under each of them. `Rules` checks, charges and settles. `Fleet` asks the authority of the fleet
//! and remembers pending requests. `Reporter` makes the verdict. `Upkeep` is due between requests.
//! The files in the order of one decision: `limiter`, `matcher`, `plans`, `rules`, `check`,
//! `commit`, `fleet` with `pending`, `verdict`, `permit`. `compile` builds all parts from a policy;
//! `operator` answers operators.

mod check;
mod commit;
mod compile;
mod entry_watch;
mod fleet;
mod limiter;
mod matcher;
mod operator;
mod pending;
mod permit;
mod plans;
mod replaces;
mod report;
mod rules;
mod source_watch;
mod upkeep;
mod verdict;

pub mod sizing;

pub use compile::Unbuildable;
pub use limiter::Limiter;
pub use operator::{CallerQuery, Inquired, OrderResult, Seen};
pub use pending::{Ready, ReadyRequest, Waiter};
pub use report::explanation::{Explained, Why, seconds};
pub use report::jitter::Jitter;
pub use report::metrics;
pub use report::protocol::{Protocol, is_grpc};
pub use report::{LocalReply, Outcome, Record, Refusal, Report};
pub use verdict::{Held, QueueLine, Verdict};

pub use diana_store::refusal::{Reason, Refused};
pub use diana_store::usage::{Order, OrderError};
