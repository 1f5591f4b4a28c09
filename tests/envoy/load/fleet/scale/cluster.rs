//! A Redis Cluster: three primaries with one replica each.

use std::fs;
use std::path::PathBuf;

use super::Servers;
use super::faults::Replicated;
use super::nodes::{Nodes, is_primary, node, ok, replicas, text, with_tls};
use crate::harness::{Certificates, PASSWORD, Redis, Reply, eventually, free_port};

const PRIMARIES: usize = 3;
const SLOTS: usize = 16_384;

/// Six nodes. The first three are the initial primaries.
pub struct Cluster {
    pub nodes: Nodes,
    /// The ports for gateways and other nodes.
    ports: Vec<u16>,
    folder: PathBuf,
    /// The slot that is being migrated, and its destination.
    moving: Option<(String, usize)>,
}

impl Servers for Cluster {
    const FILE: &'static str = "cluster";

    fn ports(&self) -> Vec<u16> {
        self.ports[..PRIMARIES].to_vec()
    }
}

impl Cluster {
    #[track_caller]
    pub fn start(tls: Option<&Certificates>) -> Cluster {
        let buses: Vec<u16> = (0..2 * PRIMARIES).map(|_| free_port()).collect();
        let name = format!("cluster-{}-{}", std::process::id(), buses[0]);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let settings = |bus: &u16| {
            [
                format!("dir {}", folder.display()),
                "cluster-enabled yes".into(),
                format!("cluster-port {bus}"),
                format!("cluster-config-file {bus}.conf"),
                "cluster-node-timeout 2000".into(),
                "cluster-require-full-coverage no".into(),
            ]
        };
        let (nodes, ports): (Vec<Redis>, _) = buses
            .iter()
            .map(|bus| {
                let secure = tls.map(|certificates| (certificates, free_port()));
                let more = secure.map(|(certificates, port)| with_tls(certificates, port));
                // Nodes report to gateways only ports of the kind, with or without TLS, that they
                // use among themselves.
                let more = more.map(|lines| {
                    [lines, vec!["tls-cluster yes".into(), "tls-replication yes".into()]].concat()
                });
                let node = node([settings(bus).to_vec(), more.unwrap_or_default()].concat());
                let port = secure.map_or(node.port, |(_, port)| port);
                (node, port)
            })
            .unzip();
        let cluster = Cluster { nodes: Nodes::new(nodes), ports, folder, moving: None };
        cluster.join(&buses);
        cluster
    }

    #[track_caller]
    fn join(&self, buses: &[u16]) {
        for (number, node) in self.nodes.all().iter().enumerate() {
            ok(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            if number < PRIMARIES {
                let (first, end) = (number * SLOTS / PRIMARIES, (number + 1) * SLOTS / PRIMARIES);
                let (first, last) = (first.to_string(), (end - 1).to_string());
                ok(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
            let (port, bus) = (self.ports[number].to_string(), buses[number].to_string());
            ok(&self.nodes.all()[0], &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        self.eventually_all("the nodes to know each other", |node| {
            text(node, &["CLUSTER", "INFO"]).contains("cluster_known_nodes:6")
        });
        for (number, node) in self.nodes.all()[PRIMARIES..].iter().enumerate() {
            ok(node, &["CLUSTER", "REPLICATE", &id(&self.nodes.all()[number])]);
        }
        self.wait_until_complete();
    }

    /// Waits until each primary has a replica that could take over, and all nodes know the location
    /// of the keys.
    #[track_caller]
    pub fn wait_until_complete(&self) {
        self.eventually_all("the cluster to be whole", |node| {
            let is_complete = text(node, &["CLUSTER", "INFO"]).contains("cluster_state:ok");
            let known = text(node, &["CLUSTER", "NODES"]);
            let primaries = known.lines().filter(|line| line.contains("master - ")).count();
            let is_followed = !is_primary(node) || replicas(node) == 1;
            is_complete && is_followed && primaries == PRIMARIES
        });
    }

    #[track_caller]
    fn eventually_all(&self, what: &str, is: impl Fn(&Redis) -> bool) {
        eventually(what, || self.nodes.all().iter().all(&is).then_some(()));
    }
}

impl Replicated for Cluster {
    #[track_caller]
    fn apply_fault(&mut self, how: impl FnOnce(&mut Redis)) {
        self.heals();
        self.nodes.apply_fault(self.nodes.holder(), how);
    }

    #[track_caller]
    fn has_taken_over(&self) {
        let primaries = || self.nodes.rest().filter(|node| is_primary(node)).count();
        eventually("a replica to take over", || (primaries() == PRIMARIES).then_some(()));
    }

    #[track_caller]
    fn heals(&mut self) {
        self.nodes.revive();
        self.wait_until_complete();
    }
}

/// Planned changes of the primary with the tested caller.
impl Cluster {
    /// A replica takes over as planned.
    #[track_caller]
    pub fn fail_over(&self) {
        let port = self.ports[self.nodes.holder()];
        let follows = |node: &&Redis| {
            text(node, &["INFO", "replication"]).contains(&format!("master_port:{port}\r"))
        };
        let replica = self.nodes.rest().find(follows).expect("a replica");
        ok(replica, &["CLUSTER", "FAILOVER"]);
        eventually("the replica to take over", || is_primary(replica).then_some(()));
    }

    /// Begins to migrate a slot: keys that are not at the destination yet do not exist there.
    #[track_caller]
    pub fn begin_to_move(&mut self) {
        let from = self.nodes.holder();
        let is_other = |number: &usize| *number != from && is_primary(&self.nodes.all()[*number]);
        let to = (0..2 * PRIMARIES).find(is_other).expect("another primary");
        let [old, new] = [from, to].map(|number| &self.nodes.all()[number]);
        let key = self.nodes.caller();
        let Reply::Integer(slot) = old.command(&["CLUSTER", "KEYSLOT", key]) else {
            panic!("{key}")
        };
        let slot = slot.to_string();
        ok(new, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(old)]);
        ok(old, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(new)]);
        while let Reply::Array(keys) = old.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"])
            && !keys.is_empty()
        {
            let port = self.ports[to].to_string();
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000"];
            words.extend(["AUTH2", "admin", PASSWORD, "KEYS"]);
            words.extend(keys.iter().map(|key| match key {
                Reply::Bulk(key) => key.as_str(),
                other => panic!("{other:?}"),
            }));
            // Some may have expired.
            assert!(["OK", "NOKEY"].contains(&text(old, &words).as_str()));
        }
        self.moving = Some((slot, to));
    }

    #[track_caller]
    pub fn has_moved(&mut self) {
        let (slot, to) = self.moving.take().expect("a slot that moves");
        let new = &self.nodes.all()[to];
        let others =
            self.nodes.all().iter().filter(|node| is_primary(node) && node.port != new.port);
        for node in [new].into_iter().chain(others) {
            ok(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &id(new)]);
        }
    }
}

fn id(node: &Redis) -> String {
    text(node, &["CLUSTER", "MYID"])
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
