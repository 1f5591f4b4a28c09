//! What an operator may see and do.

use std::rc::Rc;

/// How an operator asks why a request was decided about as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explain {
    /// The header of a request that bears the token, in lower case, and that of the response which explains.
    pub header: Rc<str>,
    /// The variable of the VM's environment that holds the token.
    pub token_env: String,
}
