//! Nodes of a Redis with several servers.

use crate::harness::{Certificates, PASSWORD, Redis, Reply, eventually, users};

/// A node with the users of envoy/redis/users.conf, and an administrator for tests.
pub fn node(settings: Vec<String>) -> Redis {
    let own = [
        format!("user admin on >{PASSWORD} ~* &* +@all"),
        "masteruser replica".into(),
        format!("masterauth {PASSWORD}"),
        // Otherwise a replica waits five seconds for its first copy.
        "repl-diskless-sync-delay 0".into(),
    ];
    let all = users().into_iter().chain(own).chain(settings);
    Redis::with(all.collect(), vec!["AUTH", "admin", PASSWORD])
}

/// Nodes, of which one may be faulty.
pub struct Nodes {
    all: Vec<Redis>,
    faulty: Option<usize>,
    caller: String,
}

impl Nodes {
    pub fn new(all: Vec<Redis>) -> Nodes {
        Nodes { all, faulty: None, caller: String::new() }
    }

    pub fn all(&self) -> &[Redis] {
        &self.all
    }

    /// Finds the only counted caller.
    #[track_caller]
    pub fn find_caller(&mut self) {
        let keys = |node: &Redis| match node.command(&["KEYS", "diana:{*}:*:*"]) {
            Reply::Array(keys) => keys,
            other => panic!("{other:?}"),
        };
        let found: Vec<Reply> = self.all.iter().flat_map(keys).collect();
        let Some(Reply::Bulk(key)) = found.first() else { panic!("nobody is counted") };
        self.caller.clone_from(key);
    }

    /// The key of that caller.
    pub fn caller(&self) -> &str {
        &self.caller
    }

    /// The primary with that caller.
    #[track_caller]
    pub fn holder(&self) -> usize {
        let has = |node: &Redis| {
            is_primary(node) && node.command(&["EXISTS", &self.caller]) == Reply::Integer(1)
        };
        eventually("the caller to be counted", || self.all.iter().position(has))
    }

    /// The available nodes.
    pub fn rest(&self) -> impl Iterator<Item = &Redis> {
        let is_struck = |number| self.faulty == Some(number);
        self.all
            .iter()
            .enumerate()
            .filter(move |(number, _)| !is_struck(*number))
            .map(|(_, node)| node)
    }

    pub fn apply_fault(&mut self, number: usize, how: impl FnOnce(&mut Redis)) {
        how(&mut self.all[number]);
        self.faulty = Some(number);
    }

    /// Changes the gateways' password on all nodes, and closes these connections.
    #[track_caller]
    pub fn change_password(&self, password: &str, connections: [&str; 2]) {
        for node in &self.all {
            ok(node, &["ACL", "SETUSER", "diana", "resetpass", &format!(">{password}")]);
            node.command(&[&["CLIENT", "KILL"], &connections[..]].concat());
        }
    }

    pub fn revive(&mut self) {
        if let Some(number) = self.faulty.take() {
            self.all[number].revive();
        }
    }
}

/// The configuration of a node that also listens with TLS.
pub fn with_tls(certificates: &Certificates, port: u16) -> Vec<String> {
    let file = |name: &str| certificates.folder().join(name).display().to_string();
    vec![
        format!("tls-port {port}"),
        format!("tls-cert-file {}", file("redis.pem")),
        format!("tls-key-file {}", file("redis.key")),
        format!("tls-ca-cert-file {}", file("ca.pem")),
        "tls-auth-clients no".into(),
    ]
}

/// A node's reply as text.
#[track_caller]
pub fn text(node: &Redis, words: &[&str]) -> String {
    match node.command(words) {
        Reply::Bulk(text) | Reply::Simple(text) => text,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[track_caller]
pub fn ok(node: &Redis, words: &[&str]) {
    assert_eq!(text(node, words), "OK", "{words:?}");
}

pub fn is_primary(node: &Redis) -> bool {
    text(node, &["INFO", "replication"]).contains("role:master")
}

/// The number of replicas that are in sync with a node.
pub fn replicas(node: &Redis) -> usize {
    text(node, &["INFO", "replication"]).matches("state=online").count()
}
