//! One limit for the whole fleet: usage counted in Redis.
//!
//! `store.rs` is a [`Store`](diana_store::Store) like the others. It decides at once while it has a
//! lease or remembers a refusal. Otherwise Redis decides, and the worker pauses the request.
//! `client.rs` gathers the questions of requests, and background operations of stores and bans
//! (`outbox.rs`), into batches. At most four batches are pending at a time.
//!
//! A batch is one call of the host with one `EVALSHA` of `protocol/script/*.lua` for each shard
//! (`shard.rs`: the keys of one hash tag). Each shard replies and fails separately. The script
//! charges each request for all of its rules or for none, on the clock of Redis. A request with
//! rules in several shards is charged tentatively in each. Rules with charges that cannot be
//! cancelled are charged in a second batch. Leases and tentative charges are counted by terms
//! (`terms.lua`): a lease for 500 to 1,000 ms, of which it is spent for 50 ms at most; a tentative
//! charge for 100 to 200 ms. `keys.lua` bounds how many callers of a rule have a value of their
//! own.
//!
//! Settlements go in numbered batches, each of which the script applies once, even if it is sent
//! again (`ledger.rs`). A limiter that ends leaves the rest to its successor, under the same
//! numbers. An in-flight slot counts for one to two seconds after it is
//! granted. Once the worker has confirmed it, it counts until the worker frees it or dies
//! (`ledger/slots.rs`).
//!
//! A call without a reply is sent again once within its timeout, and the first reply counts. It has
//! a number, under which the script stores its answer, so that it is decided once.
//!
//! `health.rs` is one record in shared data by which all workers know the unavailable shards, with
//! a circuit breaker for each (`breaker.rs`): one call whose attempts failed opens it for all
//! workers, and one worker at a time probes. After a successful probe, a reply with decided
//! questions closes it. While a shard is unavailable, the gateway enforces its share of the limit
//! minus the permits it has admitted (`store/share.rs`).
//!
//! One worker of each gateway sends a heartbeat each second, by which Redis counts the gateways.
//! The record has their number, which falls only after Redis has reported fewer for a while.
//!
//! Calls are made in a callback of a root context, since the host delivers the reply to the calling
//! context. If that root ends first, the request is decided again, and the breaker stays closed.
//! `client/offset.rs` converts an instant of the clock of Redis to this gateway's clock.

pub mod backend;
pub mod bans;
mod breaker;
pub mod client;
mod health;
pub mod ledger;
pub mod outbox;
pub mod protocol;
pub mod results;
pub mod shard;
pub mod store;
