//! Settlements that remain when a client ends.

use super::Client;
use crate::outbox::Outbox;

impl Client {
    /// Takes over the settlements of a client that has ended. Returns false if it used another
    /// database, seed or number of shards.
    pub fn inherit(&self, outbox: &mut Outbox, other: &Client, left: &mut Outbox) -> bool {
        let way = |it: &Client| (it.endpoint.cluster.clone(), it.endpoint.login.db);
        let is_alike =
            way(self) == way(other) && self.seed == other.seed && self.tags == other.tags;
        if is_alike {
            outbox.ledgers.inherit(&mut left.ledgers);
        }
        is_alike
    }
}
