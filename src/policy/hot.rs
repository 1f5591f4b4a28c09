//! Detection of hot callers.

use std::rc::Rc;

use crate::time::Micros;

/// Configuration of a rule's hot keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hot {
    /// A caller with more requests than this in `per` is hot, 1 ..= 10⁹.
    pub over: u64,
    /// The period in ticks, one second to one hour. Windows are up to a fifth longer.
    pub per: Micros,
    /// The request header that marks its requests, in lower case.
    pub header: Option<Rc<str>>,
    /// The number of hot callers in a log line, 1 ..= 100.
    pub top: usize,
    /// Whether the log contains their names instead of hashes.
    pub reveal: bool,
}
