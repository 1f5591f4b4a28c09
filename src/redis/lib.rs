//! One limit for the whole fleet: usage counted in Redis.
//!
//! `store.rs` is a [`Store`](diana_store::Store) like the others. It decides at once while it has a lease or remembers a
//! refusal, and otherwise Redis is asked and the worker pauses the request. `client.rs` gathers the questions of
//! requests, and background operations of stores and bans (`handle.rs`), into batches; while one batch is out, the next
//! gathers.
//!
//! A batch is one call of the host with one `EVALSHA` of `protocol/script/*.lua` for each part of Redis (`part.rs`: keys
//! of one hash tag). Each part answers and fails separately. The script charges each request for all of its rules or for
//! none, on the clock of Redis. A request with rules in several parts is charged tentatively in each; rules whose
//! charges cannot be taken back are charged in a second batch. Leases and tentative charges are counted by terms (`terms.lua`): a lease
//! for 500 to 1,000 ms, of which it is spent for 50 ms at most; a tentative charge for 100 to 200 ms. `keys.lua` bounds
//! how many callers of a rule have a value of their own.
//!
//! Settlements go in numbered batches, each of which the script takes once, even if it is sent again (`ledger.rs`). An
//! limiter that ends leaves the rest to its successor, under the same numbers (`client/inherit.rs`). A place in flight
//! counts for one to two seconds after it is granted. After the worker has reported all places of the caller, it counts
//! until the worker dies (`ledger/places.rs`).
//!
//! `health.rs` is one record in shared data by which all workers know which parts of Redis are reliable, with a circuit
//! breaker for each (`breaker.rs`): one failure opens it for all workers, one worker at a time probes, and two good
//! answers close it. While a part is unavailable the gateway counts alone, by its share of the limit minus the permits
//! it has admitted (`store/share.rs`).
//!
//! Calls leave from the callback of a root context, since the answer goes to the context that called. If that root ends
//! first, the question is asked again, and Redis is not blamed. `client/offset.rs` converts an instant of the clock of
//! Redis to this gateway's clock.

mod breaker;
pub mod client;
pub mod handle;
mod health;
pub mod ledger;
pub mod part;
pub mod pending;
pub mod protocol;
pub mod store;
pub mod target;
