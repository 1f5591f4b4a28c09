//! What fleets are played.

use diana_core::time::Micros;
use fastrand::Rng;

use super::ACQUAINTED;

/// What a fleet is like.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub gateways: usize,
    /// Of each gateway.
    pub workers: usize,
    /// Until then each has a caller of its own every now and then, and nothing goes wrong.
    pub acquainted: Micros,
    pub parts: usize,
    /// Permits a day of the rule by account, and of that by device, a second of a leaky bucket; the algorithm of each.
    pub rpu: [u64; 2],
    pub algo: [&'static str; 2],
    /// What a request takes at most.
    pub most: u64,
    pub accounts: usize,
    pub devices: usize,
    /// Of a thousand calls, those that get lost there or back; and of a thousand milliseconds, those in which a
    /// part goes away or comes back, and in which a client leaves.
    pub lost: u64,
    pub moves: u64,
    pub leaves: u64,
    /// A part that goes away then, and stays away.
    pub goes: Option<(usize, Micros)>,
}

impl Plan {
    /// What a gateway goes by.
    pub fn configuration(&self, parts: usize) -> String {
        let rule = |actor: &str, place: usize| {
            let (rpu, algo) = (self.rpu[place], self.algo[place]);
            let unit = if algo == "LB" { "second" } else { "day" };
            let cost = match self.most {
                1 => "1".into(),
                most => format!("{{header: x-cost, max: {most}}}"),
            };
            format!(
                "{{actor: {actor}, unit: {unit}, rpu: {rpu}, algo: {algo}, scope: global, cost: {cost}}}"
            )
        };
        format!(
            "actors: {{account: [{{header: x-account-id}}], device: [{{header: x-device-id}}]}}\n\
             redis: {{cluster: redis, timeout: {}ms, proxied: true, parts: {}}}\n\
             limits: [{{Url: /, rules: [{}, {}]}}]\n",
            // Before anybody knows the script or the secret a request takes several trips.
            if self.acquainted > 0 { 30 } else { 200 },
            parts,
            rule("account", 0),
            rule("device", 1)
        )
    }
}

/// A fleet, two of whose algorithms are chosen from these.
pub fn random(rng: &mut Rng, algorithms: &[&'static str]) -> Plan {
    let mut algo = || algorithms[rng.usize(0..algorithms.len())];
    let algo = [algo(), algo()];
    let rpu = [rng.u64(3..60), rng.u64(3..60)];
    Plan {
        most: if rng.bool() { 1 } else { rng.u64(1..=rpu[0].min(rpu[1])) },
        seed: rng.u64(..),
        gateways: rng.usize(1..=3),
        workers: rng.usize(1..=2),
        acquainted: if rng.bool() { 0 } else { ACQUAINTED },
        parts: 1 << rng.u8(1..=5),
        rpu,
        algo,
        accounts: rng.usize(1..8),
        devices: rng.usize(1..8),
        lost: 0,
        moves: 0,
        leaves: 0,
        goes: None,
    }
}
