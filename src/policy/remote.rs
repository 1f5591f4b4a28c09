//! The source of rules that replace those of the gateway's configuration.

use std::rc::Rc;

use super::redis::Redis;
use super::{Accepted, Admin, Explain, ModuleKind, OnFault};
use crate::time::Micros;

/// A configuration server and the request for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The host's name for it.
    pub cluster: String,
    /// The authority of the request.
    pub authority: String,
    /// The path with its query.
    pub path: String,
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Request headers, names in lower case.
    pub headers: Vec<(String, RemoteHeader)>,
    /// The request body.
    pub body: String,
    /// Ticks between two requests.
    pub every: Micros,
    /// Timeout of a request in ticks.
    pub timeout: Micros,
    /// A JSON pointer to the document in the response. `None` if the response is the document.
    pub value: Option<String>,
    /// Whether the document is encoded in base64.
    pub base64: bool,
    /// Maximum size of a response in bytes.
    pub max_size: usize,
}

/// The value of a request header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteHeader {
    /// A fixed text.
    Text(String),
    /// The value of an environment variable of the VM.
    Variable(String),
}

/// The number of live callers for which each rule's table is sized, unless it is configured.
pub const DEFAULT_KEYS: usize = 100_000;

/// The maximum number of callers in the table of a rule.
pub const MOST_KEYS: usize = 10_000_000;

/// Settings of the gateway that a remote document cannot change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The number of live callers for which each rule's table is sized.
    pub keys: usize,
    /// Whether refusals are logged.
    pub log_refused: bool,
    /// Reports of accepted requests.
    pub accepted: Accepted,
    /// The explanation of decisions for operators.
    pub explain: Option<Explain>,
    /// The request header that names rules in shadow mode that would have refused the request.
    pub mark: Option<Rc<str>>,
    /// The endpoint where operators read and reset callers.
    pub admin: Option<Admin>,
    /// The Redis that all gateways share.
    pub redis: Option<Redis>,
    /// The form of the module.
    pub module: ModuleKind,
    /// What happens to a request after a fault of the module.
    pub on_fault: OnFault,
}

impl Default for Own {
    fn default() -> Own {
        Own {
            keys: DEFAULT_KEYS,
            log_refused: false,
            accepted: Accepted::default(),
            explain: None,
            mark: None,
            admin: None,
            redis: None,
            module: ModuleKind::default(),
            on_fault: OnFault::default(),
        }
    }
}
