//! What Envoy counts and measures.

use serde_json::Value;

use super::envoy::Envoy;

/// A histogram, as Envoy merged it last.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Rising bins: where each begins and ends, and how many values lie in it.
    bins: Vec<(f64, f64, u64)>,
}

impl Histogram {
    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.above(f64::NEG_INFINITY)
    }

    /// How many values lie above a bound. Two digits of it count.
    pub fn above(&self, bound: f64) -> u64 {
        self.bins.iter().filter(|(least, ..)| *least >= bound).map(|(.., count)| count).sum()
    }

    /// What no value lies above.
    pub fn most(&self) -> f64 {
        self.bins.last().map_or(0.0, |(_, most, _)| *most)
    }

    /// What came after an earlier state.
    pub fn since(&self, before: &Histogram) -> Histogram {
        let known = |least| before.bins.iter().find(|(found, ..)| *found == least);
        let new = |(least, most, count): &(f64, f64, u64)| {
            let count = count - known(*least).map_or(0, |(.., count)| *count);
            (count > 0).then_some((*least, *most, count))
        };
        Histogram { bins: self.bins.iter().filter_map(new).collect() }
    }
}

impl Envoy {
    /// The value of a counter or gauge, if there is one of this name.
    pub fn stat(&self, name: &str) -> Option<u64> {
        self.stats(&exactly(name))?.pop().map(|(_, value)| value)
    }

    /// The sum of the counters whose names begin so.
    pub fn sum(&self, beginning: &str) -> u64 {
        let all = self.stats(&format!("^{}", escaped(beginning))).unwrap_or_default();
        all.iter().map(|(_, value)| value).sum()
    }

    /// Counters and gauges whose names match.
    fn stats(&self, regex: &str) -> Option<Vec<(String, u64)>> {
        let text = self.admin(&format!("/stats?filter={regex}"))?.body;
        let pairs = text.lines().filter_map(|line| line.split_once(": "));
        Some(pairs.filter_map(|(name, value)| Some((name.into(), value.parse().ok()?))).collect())
    }

    /// A histogram that counts from the start of Envoy.
    pub fn histogram(&self, name: &str) -> Option<Histogram> {
        let path =
            format!("/stats?filter={}&histogram_buckets=detailed&format=json", exactly(name));
        let answer: Value = serde_json::from_str(&self.admin(&path)?.body).ok()?;
        let bins = answer.pointer("/stats/0/histograms/details/0/totals")?.as_array()?;
        let bin = |bin: &Value| {
            let least = bin["lower_bound"].as_f64()?;
            Some((least, least + bin["width"].as_f64()?, bin["count"].as_u64()?))
        };
        Some(Histogram { bins: bins.iter().map(bin).collect::<Option<_>>()? })
    }
}

fn exactly(name: &str) -> String {
    format!("^{}$", escaped(name))
}

fn escaped(name: &str) -> String {
    name.replace('.', "\\.")
}
