//! Why a trip came to nothing.

use std::fmt;

/// The reason for which a gateway cannot rely upon Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Redis wants a password.
    NoAuth,
    /// It is not this one, or the user is not known.
    WrongPass,
    /// It wants none.
    Open,
    /// It has no such database.
    NoDatabase,
    /// It does not let us in, for another reason. Its words are not kept: it may quote the password.
    Login,
    /// The user may not do this.
    NoPerm,
    /// This is a node of a cluster, and the keys live elsewhere.
    Moved,
    /// A cluster keeps the keys in several places.
    CrossSlot,
    /// The cluster does not serve all of its slots.
    ClusterDown,
    /// The slot is on its way to another node, and the keys are in both.
    TryAgain,
    /// The proxy has no node for the keys: none is known, or none is healthy.
    NoHost,
    /// The proxy got nothing from the node, or an answer that it keeps to itself.
    Upstream,
    /// This is a replica.
    ReadOnly,
    /// No replica follows it, without which it may not write.
    NoReplicas,
    /// Its memory is full, and it may not evict.
    OutOfMemory,
    /// It has not seen the script since its start.
    NoScript,
    /// It reads its data after a start.
    Loading,
    /// Another script keeps it busy.
    Busy,
    /// Anything else that Redis complains about, in its words.
    Other(String),
    /// The bytes are no answer of Redis.
    Garbage,
    /// No answer came in time.
    Timeout,
    /// It cannot be reached.
    Unreachable,
    /// The connection broke off.
    Reset,
}

/// Words by which replies are told, mostly codes that they begin with, and the names of the failures in metrics.
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
    // Said without a code to strangers who send much at once, and, before version 7.2, of what the
    // user executing the script can't do.
    ("unauthenticated", Failure::NoAuth, "noauth"),
    ("can't", Failure::NoPerm, "noperm"),
];

/// What Envoy's proxy says in place of Redis, and the names of those failures in metrics.
const PROXY: &[(&str, Failure, &str)] = &[
    ("no upstream host", Failure::NoHost, "nohost"),
    ("upstream failure", Failure::Upstream, "upstream"),
    ("upstream protocol error", Failure::Upstream, "upstream"),
];

/// What is said to logins, also by old versions.
const LOGINS: &[(&str, Failure)] = &[
    ("without any password", Failure::Open),
    ("no password is set", Failure::Open),
    ("DB index is out of range", Failure::NoDatabase),
];

/// From here on a message quotes what it is about.
const QUOTES: &str = ", with args";

/// Most characters of a message that are kept.
const LONGEST: usize = 200;

impl Failure {
    pub(super) fn of(message: &[u8]) -> Failure {
        // Before version 7 Redis says first which script had trouble.
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

    /// What a message about a command means that logs in.
    pub(super) fn of_login(message: &[u8]) -> Failure {
        match Failure::of(message) {
            Failure::Other(text) => {
                let known = LOGINS.iter().find(|(words, _)| text.contains(words));
                known.map_or(Failure::Login, |(_, failure)| failure.clone())
            }
            failure => failure,
        }
    }

    /// Its name in metrics.
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
            Failure::NoAuth => "Redis wants a password (NOAUTH)",
            Failure::WrongPass => "Redis does not take this user and password (WRONGPASS)",
            Failure::Open => "Redis wants no password, and was sent one",
            Failure::NoDatabase => "Redis has no database of this number",
            Failure::Login => "Redis does not take AUTH or SELECT as it was sent",
            Failure::NoPerm => "the user may not run the script or use its keys (NOPERM)",
            Failure::Moved => "this is a node of a cluster, not a primary or a proxy (MOVED)",
            Failure::CrossSlot => "the cluster keeps a namespace in several places (CROSSSLOT)",
            Failure::ClusterDown => "the cluster does not serve all of its slots (CLUSTERDOWN)",
            Failure::TryAgain => "the cluster moves the keys to another node (TRYAGAIN)",
            Failure::NoHost => {
                "the proxy has no route for the keys, or no primary (no upstream host)"
            }
            Failure::Upstream => "the proxy gets no answer from the node (upstream failure)",
            Failure::ReadOnly => "this is a replica, not a primary (READONLY)",
            Failure::NoReplicas => "no replica follows this primary, or too late (NOREPLICAS)",
            Failure::OutOfMemory => "Redis has no memory left (OOM)",
            Failure::NoScript => "Redis does not know the script (NOSCRIPT)",
            Failure::Loading => "Redis is still reading its data (LOADING)",
            Failure::Busy => "another script keeps Redis busy (BUSY)",
            Failure::Other(message) => message,
            Failure::Garbage => "the answer does not come from Redis",
            Failure::Timeout => "no answer came in time",
            Failure::Unreachable => "it cannot be reached",
            Failure::Reset => "the connection broke off",
        })
    }
}
