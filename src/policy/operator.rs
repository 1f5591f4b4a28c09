//! What an operator may see and do.

use std::rc::Rc;

/// Where an operator looks at callers, and lifts what they used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// The path that its requests begin with, without a `/` at its end.
    pub path: String,
    /// The variable of the VM's environment that holds the token.
    pub token_env: String,
}

/// How an operator asks why a request was decided about as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explain {
    /// The header of a request that bears the token, in lower case, and that of the response which explains.
    pub header: Rc<str>,
    /// The variable of the VM's environment that holds the token.
    pub token_env: String,
}
