//! The line in the log about hot callers.

use diana_policy::Hot;
use diana_policy::time::spell;

/// The hot callers of one rule, from time to time.
#[derive(Debug)]
pub struct HotCallers<'a> {
    /// The rule's name.
    pub rule: &'a str,
    /// Whether each worker counts for itself, and not the gateway.
    pub is_local: bool,
    /// Who is hot.
    pub hot: &'a Hot,
    /// How many they are, and the first of them.
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
