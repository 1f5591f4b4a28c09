//! Which callers are hot.

use std::rc::Rc;

use crate::time::Micros;

/// What a rule says about hot keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hot {
    /// A caller is hot who comes more often than this, 1 ..= 10⁹,
    pub over: u64,
    /// in this time, in ticks: one second to one hour. Windows are up to a fifth longer.
    pub per: Micros,
    /// The request header that marks its requests, in lower case.
    pub header: Option<Rc<str>>,
    /// How many of them the log lists, 1 ..= 100.
    pub top: usize,
    /// Whether the log calls them by their names, and not by hashes.
    pub reveal: bool,
}
