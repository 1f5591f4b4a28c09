//! Three nodes, of which one is the primary, and three sentinels that promote another one if it
//! fails.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::faults::Replicated;
use super::nodes::{Nodes, node, replicas, with_tls};
use super::{Fleet, Servers};
use crate::harness::{Certificates, Envoy, PASSWORD, Redis, Reply, call, eventually, free_port};

const SIZE: usize = 3;

pub struct Sentinels {
    pub nodes: Nodes,
    /// The nodes' ports for gateways.
    doors: Vec<u16>,
    /// The ports of the sentinels.
    ports: Vec<u16>,
    processes: Vec<Child>,
    /// The primary before the last fault.
    was: Option<usize>,
    folder: PathBuf,
}

impl Servers for Sentinels {
    const FILE: &'static str = "sentinel";

    fn ports(&self) -> Vec<u16> {
        self.doors.clone()
    }
}

impl Sentinels {
    #[track_caller]
    pub fn start(tls: Option<&Certificates>) -> Sentinels {
        let mut nodes: Vec<Redis> = Vec::new();
        let mut doors = Vec::new();
        for _ in 0..SIZE {
            let follow = nodes.first().map(|first| format!("replicaof 127.0.0.1 {}", first.port));
            let door = tls.map(|certificates| (free_port(), certificates));
            let secure = door.map(|(port, certificates)| with_tls(certificates, port));
            // As long as gateways still use the old primary, it must not count in parallel with the
            // new one.
            let alone = "min-replicas-to-write 1".to_owned();
            let settings = follow.into_iter().chain([alone]);
            nodes.push(node(settings.chain(secure.unwrap_or_default()).collect()));
            doors.push(door.map_or(nodes[nodes.len() - 1].port, |(port, _)| port));
        }
        let ports: Vec<u16> = (0..SIZE).map(|_| free_port()).collect();
        let name = format!("sentinels-{}-{}", std::process::id(), ports[0]);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let processes = vec![];
        let mut all =
            Sentinels { nodes: Nodes::new(nodes), doors, ports, processes, folder, was: None };
        for port in all.ports.clone() {
            let process = all.sentinel(port);
            all.processes.push(process);
        }
        all.wait_until_complete();
        all
    }

    /// A sentinel stores its state in its configuration.
    fn sentinel(&self, port: u16) -> Child {
        let file = self.folder.join(format!("{port}.conf"));
        let primary = self.nodes.all()[0].port;
        let lines = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {primary} 2\n\
             sentinel auth-user main sentinel\nsentinel auth-pass main {PASSWORD}\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 2000\n"
        );
        fs::write(&file, lines).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap()
    }

    /// The reply of the first sentinel.
    pub fn ask(&self, words: &[&str]) -> Option<Reply> {
        call(self.ports[0], &[words]).ok()?.pop()
    }

    /// The number of the node that is the primary.
    #[track_caller]
    pub fn primary(&self) -> usize {
        let found = self.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"]);
        let Some(Reply::Array(address)) = found else { panic!("{found:?}") };
        let is_it = |node: &Redis| address[1] == Reply::Bulk(node.port.to_string());
        self.nodes.all().iter().position(is_it).expect("a node")
    }

    /// Promotes another node as planned.
    #[track_caller]
    pub fn fail_over(&mut self) {
        self.heals();
        self.was = Some(self.primary());
        assert_eq!(self.ask(&["SENTINEL", "FAILOVER", "main"]), Some(Reply::Simple("OK".into())));
    }

    /// Waits until the primary has two replicas, and all sentinels would agree on another one.
    #[track_caller]
    pub fn wait_until_complete(&self) {
        eventually("all nodes to follow, and the sentinels to know it", || {
            let agree = |port: &u16| {
                let ask = |words: &[&str]| call(*port, &[words]).ok()?.pop();
                let quorum = ask(&["SENTINEL", "CKQUORUM", "main"])?;
                let usable = matches!(quorum, Reply::Simple(said) if said.starts_with("OK 3"));
                let Reply::Array(replicas) = ask(&["SENTINEL", "REPLICAS", "main"])? else {
                    return None;
                };
                (usable && replicas.len() == SIZE - 1).then_some(())
            };
            self.ports.iter().all(|port| agree(port).is_some()).then_some(())?;
            (replicas(&self.nodes.all()[self.primary()]) == SIZE - 1).then_some(())
        });
    }
}

impl Replicated for Sentinels {
    #[track_caller]
    fn apply_fault(&mut self, how: impl FnOnce(&mut Redis)) {
        self.heals();
        let primary = self.primary();
        self.nodes.apply_fault(primary, how);
        self.was = Some(primary);
    }

    #[track_caller]
    fn has_taken_over(&self) {
        eventually("another primary", || {
            let primary = self.primary();
            (Some(primary) != self.was && replicas(&self.nodes.all()[primary]) > 0).then_some(())
        });
    }

    /// Proxies query the roles of all nodes four times a second.
    #[track_caller]
    fn wait_until_known(fleet: &Fleet<Sentinels>) {
        let since = Instant::now();
        eventually("all proxies to know one primary", || {
            let knows = |envoy: &Envoy| {
                envoy.stat("cluster.redis.membership_healthy").filter(|it| *it == 1)
            };
            fleet.envoys.iter().all(|envoy| knows(envoy).is_some()).then_some(())
        });
        println!("known after {:?}", since.elapsed());
    }

    #[track_caller]
    fn heals(&mut self) {
        self.nodes.revive();
        self.wait_until_complete();
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
