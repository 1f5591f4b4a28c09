//! The rules of fleets, and how large their worlds are.

use diana_config::Reader;
use diana_policy::Policy;
use diana_policy::time::{Micros, SECOND};

/// The timeout of a call.
pub const TIMEOUT: Micros = SECOND / 50;

/// A rule of a fleet.
pub struct Case {
    pub policy: Policy,
    pub limit: u64,
    /// The permits that an admitted request reserves, and may use.
    pub reserve: u64,
    pub used: &'static [u64],
    /// Whether requests count until they end.
    pub is_in_flight: bool,
    /// How long before the end of a minute the world begins, if that is near.
    pub before_edge: Option<Micros>,
}

/// The events that are possible in a world.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub gateways: usize,
    pub requests: usize,
    /// How often time passes.
    pub waits: usize,
    /// Messages that are lost, doubled or late.
    pub faults: usize,
    /// Gateways that end, begin or stand still, and data that Redis loses.
    pub changes: usize,
    /// How often a gateway is cut off from Redis.
    pub cuts: usize,
}

impl Size {
    pub fn of([gateways, requests, waits, faults, changes, cuts]: [usize; 6]) -> Size {
        Size { gateways, requests, waits, faults, changes, cuts }
    }
}

/// The rule with this name, for a number of gateways.
pub fn case(name: &str, gateways: usize) -> Case {
    let day = |limit, rule: &str| {
        Case::new(gateways, limit, &format!("unit: day, rpu: {limit}, algo: {rule}"))
    };
    let settled = "window, cost: {response: {header: x-used}, reserve: 1, max: 2}";
    match name {
        "tight window" => day(2, "window"),
        "wide window" => day(8, "window"),
        "wide sliding window" => day(8, "sliding window"),
        "tight bucket" => day(2, "token bucket"),
        "wide bucket" => day(8, "token bucket"),
        "settled window" => Case { used: &[0, 2], ..day(14, settled) },
        "end of a window" => Case {
            before_edge: Some(3 * TIMEOUT / 2),
            ..Case::new(gateways, 2, "unit: minute, rpu: 2, algo: window")
        },
        "in flight" => {
            Case { is_in_flight: true, used: &[1], ..Case::new(gateways, 4, "in_flight: 4") }
        }
        _ => panic!("no rule `{name}`"),
    }
}

impl Case {
    fn new(gateways: usize, limit: u64, rule: &str) -> Case {
        let text = format!(
            "namespace: fleet\nkeys: 16\n\
             redis: {{cluster: redis, timeout: {}ms, gateways: {gateways}}}\n\
             limits: [{{Url: /, rules: [{{name: r, actor: account, {rule}, scope: global}}]}}]",
            TIMEOUT / 1000
        );
        let policy = Reader::default().policy(text.as_bytes()).expect("a document");
        Case { policy, limit, reserve: 1, used: &[], is_in_flight: false, before_edge: None }
    }

    /// Whether there is room for another request of each gateway in the end, so that the charges of Redis follow from
    /// the permits that remain.
    pub fn has_room(&self) -> bool {
        self.limit > 2
    }

    /// The share of one of some gateways.
    pub fn share(&self, gateways: usize) -> u64 {
        self.limit.div_ceil(gateways as u64)
    }
}
