//! The log line about hot callers.

use diana_policy::Hot;
use diana_policy::time::spell;

/// The hot callers of one rule.
#[derive(Debug)]
pub struct HotCallers<'a> {
    /// The rule's name.
    pub rule: &'a str,
    /// Whether each worker counts separately, instead of the gateway.
    pub is_local: bool,
    /// The configuration of hot keys.
    pub hot: &'a Hot,
    /// The number of hot callers, and the hottest ones.
    pub list: String,
}

impl HotCallers<'_> {
    /// The line.
    #[must_use]
    pub fn line(&self) -> String {
        let HotCallers { rule, hot, list, .. } = self;
        let scope = if self.is_local { "local" } else { "gateway" };
        let (over, per) = (hot.over, spell(hot.per));
        format!("hot rule={rule} scope={scope} over={over} per={per} {list}")
    }
}
