//! Failures of calls to Redis.

use std::fmt;

/// The reason why Redis is unavailable for a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Redis requires a password.
    NoAuth,
    /// The password is wrong, or the user is unknown.
    WrongPass,
    /// Redis requires no password, but one was sent.
    Open,
    /// The database does not exist.
    NoDatabase,
    /// The login failed for another reason. The message is dropped, since it may quote the
    /// password.
    Login,
    /// The user lacks permissions.
    NoPerm,
    /// This is a node of a cluster, and another node has the keys.
    Moved,
    /// The keys belong to several slots of a cluster.
    CrossSlot,
    /// The cluster does not serve all of its slots.
    ClusterDown,
    /// The slot is moving to another node, and the keys are split between both.
    TryAgain,
    /// The proxy has no node for the keys, or no healthy one.
    NoHost,
    /// The proxy got no reply from the node, or one that it does not forward.
    Upstream,
    /// This is a replica.
    ReadOnly,
    /// The node has no replica, and requires one for writes.
    NoReplicas,
    /// The memory is full, and eviction is disabled.
    OutOfMemory,
    /// Redis does not have the script since its start.
    NoScript,
    /// Redis is loading its data after a start.
    Loading,
    /// Another script blocks Redis.
    Busy,
    /// Another error, with Redis's message.
    Other(String),
    /// The bytes are not a reply of Redis.
    Garbage,
    /// No reply in time.
    Timeout,
    /// Redis cannot be reached.
    Unreachable,
    /// The connection was closed.
    Reset,
}

/// Words that identify error replies, mostly the codes at their beginning, with the names of the
/// failures in metrics.
const CODES: &[(&str, Failure, &str)] = &[
    ("NOAUTH", Failure::NoAuth, "noauth"),
    ("WRONGPASS", Failure::WrongPass, "wrongpass"),
    ("NOPERM", Failure::NoPerm, "noperm"),
    ("MOVED", Failure::Moved, "moved"),
    ("CROSSSLOT", Failure::CrossSlot, "crossslot"),
    ("CLUSTERDOWN", Failure::ClusterDown, "clusterdown"),
    ("TRYAGAIN", Failure::TryAgain, "tryagain"),
    ("READONLY", Failure::ReadOnly, "readonly"),
    ("NOREPLICAS", Failure::NoReplicas, "noreplicas"),
    ("OOM", Failure::OutOfMemory, "oom"),
    ("NOSCRIPT", Failure::NoScript, "noscript"),
    ("LOADING", Failure::Loading, "loading"),
    ("BUSY", Failure::Busy, "busy"),
    // Errors without a code: for unauthenticated clients that send much data at once, and, before
    // version 7.2, for missing permissions of the user.
    ("unauthenticated", Failure::NoAuth, "noauth"),
    ("can't", Failure::NoPerm, "noperm"),
];

/// Errors of Envoy's redis_proxy, with the names of the failures in metrics.
const PROXY: &[(&str, Failure, &str)] = &[
    ("no upstream host", Failure::NoHost, "nohost"),
    ("upstream failure", Failure::Upstream, "upstream"),
    ("upstream protocol error", Failure::Upstream, "upstream"),
];

/// Errors of logins, also in old versions.
const LOGINS: &[(&str, Failure)] = &[
    ("without any password", Failure::Open),
    ("no password is set", Failure::Open),
    ("DB index is out of range", Failure::NoDatabase),
];

/// The rest of a message quotes the command.
const QUOTES: &str = ", with args";

/// The maximum length of a stored message, in characters.
const LONGEST: usize = 200;

impl Failure {
    pub(super) fn of(message: &[u8]) -> Failure {
        // Before version 7, errors begin with the name of the script.
        for word in message.split(|byte| *byte == b' ') {
            let word = word.strip_prefix(b"-").unwrap_or(word);
            if let Some((_, failure, _)) = CODES.iter().find(|(code, ..)| code.as_bytes() == word) {
                return failure.clone();
            }
        }
        let by_proxy = |(words, ..): &&(&str, _, _)| message == words.as_bytes();
        if let Some((_, failure, _)) = PROXY.iter().find(by_proxy) {
            return failure.clone();
        }
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let text = String::from_utf8_lossy(message);
        let text = text.split(QUOTES).next().unwrap_or_default();
        Failure::Other(text.chars().take(LONGEST).map(plain).collect())
    }

    /// Classifies an error of a login command.
    pub(super) fn of_login(message: &[u8]) -> Failure {
        match Failure::of(message) {
            Failure::Other(text) => {
                let known = LOGINS.iter().find(|(words, _)| text.contains(words));
                known.map_or(Failure::Login, |(_, failure)| failure.clone())
            }
            failure => failure,
        }
    }

    /// Returns true if it is unknown whether the call reached Redis, so that another attempt may
    /// succeed. In all other cases Redis or the proxy has refused it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(
            self,
            Failure::Timeout
                | Failure::Unreachable
                | Failure::Reset
                | Failure::Garbage
                | Failure::Upstream
        )
    }

    /// The name in metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let known = CODES.iter().chain(PROXY).find(|(_, failure, _)| failure == self);
        match (known, self) {
            (Some((.., name)), _) => name,
            (None, Failure::Garbage) => "garbage",
            (None, Failure::Timeout) => "timeout",
            (None, Failure::Unreachable) => "unreachable",
            (None, Failure::Reset) => "reset",
            (None, _) => "other",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::NoAuth => "Redis requires a password (NOAUTH)",
            Failure::WrongPass => "Redis rejects this user or password (WRONGPASS)",
            Failure::Open => "Redis requires no password, but one was sent: remove `password_env`",
            Failure::NoDatabase => "Redis has no database with the number in `db`",
            Failure::Login => "Redis rejects the command AUTH or SELECT",
            Failure::NoPerm => "the user lacks the right to run the script or to use its keys (NOPERM)",
            Failure::Moved => "the endpoint is a node of a Redis Cluster, not a primary or a proxy (MOVED)",
            Failure::CrossSlot => "the endpoint is a Redis Cluster, which stores the keys of one call in several slots (CROSSSLOT)",
            Failure::ClusterDown => "the Redis Cluster does not serve all of its slots (CLUSTERDOWN)",
            Failure::TryAgain => "the Redis Cluster is moving the keys to another node (TRYAGAIN)",
            Failure::NoHost => {
                "the proxy has no route for the keys, or no primary (no upstream host)"
            }
            Failure::Upstream => "the proxy gets no reply from the node (upstream failure)",
            Failure::ReadOnly => "the endpoint is a replica, not a primary (READONLY)",
            Failure::NoReplicas => "fewer replicas than `min-replicas-to-write` follow the primary (NOREPLICAS)",
            Failure::OutOfMemory => "Redis has no memory left (OOM)",
            Failure::NoScript => "Redis does not know the script (NOSCRIPT)",
            Failure::Loading => "Redis is loading its data (LOADING)",
            Failure::Busy => "another script keeps Redis busy (BUSY)",
            Failure::Other(message) => message,
            Failure::Garbage => "the reply is not from Redis",
            Failure::Timeout => "no reply within `timeout`",
            Failure::Unreachable => "Envoy cannot connect to it",
            Failure::Reset => "the connection was closed before the reply",
        })
    }
}
