//! Counters and gauges of Envoy.

use super::envoy::Process;
use super::shipped;

impl Process {
    /// The value of a counter or gauge. `None` if it does not exist.
    pub fn stat(&self, name: &str) -> Option<u64> {
        self.stats(&exactly(name))?.pop().map(|(_, value)| value)
    }

    /// The value of a counter or gauge of the filter in a namespace.
    pub fn metric_of(&self, namespace: &str, name: &str) -> Option<u64> {
        if !shipped::is_native() {
            return self.stat(&format!("wasmcustom.diana.{namespace}.{name}"));
        }
        match name.strip_prefix("rule.").and_then(|name| name.split_once('.')) {
            Some((rule, what)) => {
                let what = what.replace('.', "_");
                self.stat(&format!("diana.rule_{what}.namespace.{namespace}.rule.{rule}"))
            }
            None => self.stat(&format!("diana.{}.namespace.{namespace}", name.replace('.', "_"))),
        }
    }

    /// The sum of the counters with this prefix.
    pub fn sum(&self, beginning: &str) -> u64 {
        let all = self.stats(&format!("^{}", escaped(beginning))).unwrap_or_default();
        all.iter().map(|(_, value)| value).sum()
    }

    /// Counters and gauges with a name that matches.
    pub(super) fn stats(&self, regex: &str) -> Option<Vec<(String, u64)>> {
        let text = self.admin(&format!("/stats?filter={regex}"))?.body;
        let pairs = text.lines().filter_map(|line| line.split_once(": "));
        Some(pairs.filter_map(|(name, value)| Some((name.into(), value.parse().ok()?))).collect())
    }
}

fn exactly(name: &str) -> String {
    format!("^{}$", escaped(name))
}

fn escaped(name: &str) -> String {
    name.replace('.', "\\.")
}
