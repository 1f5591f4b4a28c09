//! Independent Redis servers.

use super::Servers;
use super::nodes::{Nodes, node};
use crate::harness::{PASSWORD, Redis};

pub struct Shards {
    pub nodes: Nodes,
}

impl Servers for Shards {
    const FILE: &'static str = "shards";

    fn ports(&self) -> Vec<u16> {
        self.nodes.all().iter().map(|node| node.port).collect()
    }
}

impl Shards {
    pub fn start() -> Shards {
        Shards::of(|| node(vec![]))
    }

    /// Without users: the password grants all permissions.
    pub fn without_users() -> Shards {
        Shards::of(|| Redis::with_password(PASSWORD))
    }

    /// Applies a fault to the shard with the tested caller.
    #[track_caller]
    pub fn apply_fault(&mut self, how: impl FnOnce(&mut Redis)) {
        self.nodes.revive();
        self.nodes.apply_fault(self.nodes.holder(), how);
    }

    fn of(node: impl Fn() -> Redis) -> Shards {
        Shards { nodes: Nodes::new(vec![node(), node()]) }
    }
}
