//! Where rules come from that replace those of the gateway's own configuration.

use std::rc::Rc;

use super::redis::Redis;
use super::{Accepted, Admin, Explain};
use crate::time::Micros;

/// A configuration centre, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The host's name for it.
    pub cluster: String,
    /// The host that is asked for.
    pub authority: String,
    /// The path with its query.
    pub path: String,
    /// `GET` or `POST`.
    pub method: &'static str,
    /// Headers of the request, names in lower case.
    pub headers: Vec<(String, Header)>,
    /// The body of the request.
    pub body: String,
    /// Ticks between two requests.
    pub every: Micros,
    /// Ticks that an answer may take.
    pub timeout: Micros,
    /// A JSON pointer to the document in the answer; without one it is the answer.
    pub value: Option<String>,
    /// Whether the document is encoded.
    pub base64: bool,
    /// The longest answer that is read, in bytes.
    pub max_size: usize,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// This text.
    Text(String),
    /// The text of a variable of the VM's environment.
    Variable(String),
}

/// What the gateway says itself and no remote document can change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// How many live callers each rule's table is made for.
    pub keys: usize,
    /// Whether refusals are logged.
    pub log_refused: bool,
    /// What accepted requests report.
    pub accepted: Accepted,
    /// How an operator asks what was decided about a request.
    pub explain: Option<Explain>,
    /// A header of requests that names the rules in shadow which would have refused them.
    pub mark: Option<Rc<str>>,
    /// Where an operator looks at callers, and lifts what they used.
    pub admin: Option<Admin>,
    /// The Redis in which all gateways count together.
    pub redis: Option<Redis>,
}
