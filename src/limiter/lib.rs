//! One decision, from the request to its report; settling; and questions of operators.

mod admit;
mod banned;
pub mod bans;
mod check;
mod commit;
mod compile;
mod explain;
mod hot;
mod limiter;
mod matcher;
mod on_reply;
mod operator;
mod pending;
mod plans;
mod refuse;
mod reply;
mod report;
mod round;
mod settle;
pub mod sizing;
mod upkeep;
mod verdict;

pub use compile::Unbuildable;
pub use limiter::Limiter;
pub use operator::{Cannot, Inquired, Order, Seen};
pub use pending::Resumed;
pub use report::explained::{Explained, Why, seconds};
pub use report::metrics;
pub use report::protocol::{Protocol, RefusalReply};
pub use report::state::{read_key, spell_key};
pub use report::{Outcome, Record, Refusal, Report};
pub use verdict::{Held, QueueLine, Verdict};
