//! One decision, from the request to its report; settling; and queries of operators.
//!
//! [`Limiter`] has five parts. `Matcher` finds the rules that apply to a request and its caller
//! under each of them. `Rules` checks, charges and settles. `Fleet` asks the authority of the fleet
//! and remembers pending requests. `Reporter` makes the verdict. `Upkeep` is due between requests.
//! The files in the order of one decision: `limiter`, `matcher`, `plans`, `rules`, `rule`, `check`,
//! `commit`, `fleet` with `pending`, `verdict`, `permit`. `compile` builds all parts from a policy;
//! `operator` carries out an `order` of operators.
//!
//! A limiter without a proxy:
//!
//! ```
//! # use std::{borrow::Cow, net::IpAddr, rc::Rc};
//! # use diana_policy::port::{Clock, Property, Pseudo, Request, SharedData, Values};
//! # use diana_policy::{key::Seed, time::{Now, SECOND}};
//! use diana_config::Reader;
//! use diana_limiter::{Limiter, Verdict};
//! #
//! # struct NoData;
//! # impl SharedData for NoData {
//! #     fn get(&self, _: &str) -> Option<(Vec<u8>, u32)> { None }
//! #     fn swap(&self, _: &str, _: &[u8], _: Option<u32>) -> bool { false }
//! # }
//!
//! /// A request of an account.
//! struct Get(&'static str);
//!
//! impl Request for Get {
//! #     fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
//! #         (which == Pseudo::Path).then_some(Cow::Borrowed(b"/reports"))
//! #     }
//!     fn header(&self, name: &str) -> Values<'_> {
//!         if name == "x-account-id" { Values::One(self.0.as_bytes()) } else { Values::None }
//!     }
//! #     fn client(&self) -> Option<IpAddr> { None }
//! #     fn route(&self) -> Option<Cow<'_, [u8]>> { None }
//! #     fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> { None }
//! }
//! #
//! # struct At(Now);
//! #
//! # impl Clock for At {
//! #     fn now(&self) -> Now { self.0 }
//! # }
//!
//! let rules = b"limits: [{Url: /, rules: [{actor: account, unit: minute, rpu: 1, scope: local}]}]";
//! let policy = Reader::default().policy(rules).unwrap();
//! let mut limiter = Limiter::standalone(policy, Seed { k0: 1, k1: 2 }, Rc::new(NoData)).unwrap();
//! let clock = At(Now { mono: SECOND, wall: SECOND });
//! let mut admits = |account| matches!(limiter.decide(&Get(account), 1, &clock), Verdict::Admit(..));
//! assert_eq!(["ann", "ann", "bob"].map(admits), [true, false, true]);
//! ```

mod check;
mod commit;
mod compile;
mod entry_watch;
mod fleet;
mod limiter;
mod matcher;
mod operator;
mod order;
mod pending;
mod permit;
mod plans;
mod replaces;
mod report;
mod rule;
mod rules;
mod source_watch;
mod upkeep;
mod verdict;

pub mod sizing;

pub use check::Waiter;
pub use compile::Unbuildable;
pub use limiter::Limiter;
pub use order::{CallerQuery, Inquired, OrderResult, Seen};
pub use pending::{Ready, ReadyRequest};
pub use permit::QueueLine;
pub use report::explanation::{Explained, Why, seconds};
pub use report::jitter::Jitter;
pub use report::metrics;
pub use report::protocol::{Protocol, is_grpc};
pub use report::{LocalReply, Outcome, Record, Refusal, Report};
pub use verdict::{Held, Verdict};

pub use diana_store::refusal::{Reason, Refused};
pub use diana_store::usage::{Order, OrderError};
