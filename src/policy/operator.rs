//! Access for operators.

use std::rc::Rc;

/// The endpoint where operators read and reset callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// The prefix of its paths, without a trailing `/`.
    pub path: String,
    /// The environment variable of the VM with the token.
    pub token_env: String,
}

/// The explanation of decisions for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explain {
    /// The header, in lower case. In a request it carries the token, in a response the explanation.
    pub header: Rc<str>,
    /// The environment variable of the VM with the token.
    pub token_env: String,
}
