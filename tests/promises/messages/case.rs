//! The rules of fleets, and how large their worlds are.

use diana_config::Reader;
use diana_policy::Policy;
use diana_policy::time::{Micros, SECOND};

/// A rule of a fleet.
pub struct Case {
    pub policy: Policy,
    /// Of a call.
    pub timeout: Micros,
    pub limit: u64,
    /// Workers of each gateway.
    pub workers: usize,
    /// Whether the first worker stands still at first.
    pub stands_still: bool,
    /// Calls that are pending at first.
    pub calls: usize,
    /// Requests that come together.
    pub flood: usize,
    /// The permits that an admitted request reserves, and may use.
    pub reserve: u64,
    pub used: &'static [u64],
    /// Whether requests count until they end.
    pub is_in_flight: bool,
    /// How long before the end of a minute the world begins, if that is near.
    pub before_edge: Option<Micros>,
    /// The limit of another rule, for all callers of a gateway. Zero without one.
    pub beside: u64,
    /// Whether all permits have been used before.
    pub is_spent: bool,
    /// Whether the caller gets another plan, which allows as much.
    pub has_plans: bool,
    /// Whether a gateway leases permits of the caller.
    pub is_busy: bool,
    /// Whether the host of a gateway that is cut off refuses calls, and those that it has made still have replies.
    pub refuses: bool,
    /// Whether configurations change, and nothing else.
    pub reloads: bool,
    /// Whether requests are decided before Redis is asked.
    pub asks_after: bool,
    /// Whether a timer that has fired does so again only after another event: where a call may be pending for long.
    pub ticks_once: bool,
}

/// The timeout, unless Redis is far away.
const TIMEOUT: Micros = SECOND / 50;
const FAR: Micros = SECOND;

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
        let rule = format!("unit: day, rpu: {limit}, algo: {rule}");
        Case::new(gateways, TIMEOUT, limit, &rule)
    };
    // No call is late until the next report.
    let after = |limit, algo: &str| {
        let rule = format!("unit: day, rpu: {limit}, algo: {algo}, ask: after");
        Case { asks_after: true, ..Case::new(gateways, 2 * TIMEOUT, limit, &rule) }
    };
    let beside = |limit, beside: u64, scope: &str| {
        let more = format!("actor: all, unit: day, rpu: {beside}, algo: window, scope: {scope}");
        let rule =
            format!("unit: day, rpu: {limit}, algo: window, scope: global}}, {{name: b, {more}");
        Case { beside, ticks_once: true, ..Case::with(gateways, TIMEOUT, limit, &rule) }
    };
    let settled = "window, cost: {response: {header: x-used}, reserve: 1, max: 2}";
    match name {
        "tight window" => day(2, "window"),
        "wide window" => day(8, "window"),
        "wide window, calls refused" => Case { refuses: true, ..day(8, "window") },
        "wide window, beside a local rule" => beside(8, 2, "local"),
        "wide window, beside another rule" => beside(8, 2, "gateway"),
        "tight window, beside a local rule" => beside(1, 4, "local"),
        "tight window, beside another rule" => beside(1, 4, "gateway"),
        "wide sliding window" => day(8, "sliding window"),
        "tight bucket" => day(2, "token bucket"),
        "wide bucket" => day(8, "token bucket"),
        "settled window" => Case { used: &[0, 2], ..day(14, settled) },
        "settled window, reloaded" => Case { used: &[0], reloads: true, ..day(14, settled) },
        "tight settled window" => Case { used: &[1, 2], ticks_once: true, ..day(2, settled) },
        "settled window, one gateway" => {
            Case { used: &[0, 2], ticks_once: true, ..day(14, settled) }
        }
        "end of a window" => Case {
            before_edge: Some(3 * TIMEOUT / 2),
            ..Case::new(gateways, TIMEOUT, 2, "unit: minute, rpu: 2, algo: window")
        },
        "end of a spent window" => Case {
            is_spent: true,
            ticks_once: true,
            before_edge: Some(3 * TIMEOUT / 2),
            ..Case::new(gateways, TIMEOUT, 1, "unit: minute, rpu: 1, algo: window")
        },
        "leased end of a window" => Case {
            flood: 4,
            is_busy: true,
            ticks_once: true,
            before_edge: Some(super::world::BUSY_FOR + TIMEOUT / 4),
            ..Case::new(gateways, TIMEOUT, 64, "unit: minute, rpu: 64, algo: window")
        },
        "in flight" => Case {
            is_in_flight: true,
            used: &[1],
            ..Case::new(gateways, TIMEOUT, 4, "in_flight: 4")
        },
        "flood at one gateway" => Case { flood: 24, ..day(24, "window") },
        "leased window" => Case { flood: 12, is_busy: true, ..day(64, "window") },
        "leased window of two plans" => Case {
            flood: 12,
            is_busy: true,
            has_plans: true,
            ticks_once: true,
            ..day(64, "window, plans: {by: [{header: x-plan}], of: {other: {rpu: 65}}}")
        },
        "far window" => Case::new(gateways, FAR, 8, "unit: day, rpu: 8, algo: window"),
        "far window, two calls" => {
            Case { calls: 2, ..Case::new(gateways, FAR, 8, "unit: day, rpu: 8, algo: window") }
        }
        "far window, two workers" => Case {
            workers: 2,
            stands_still: true,
            ..Case::new(gateways, FAR, 8, "unit: day, rpu: 8, algo: window")
        },
        "window, two workers" => Case { workers: 2, ..day(8, "window") },
        "bucket, two workers" => Case { workers: 2, ..day(8, "token bucket") },
        "settled window, two workers" => {
            Case { used: &[0, 2], workers: 2, ticks_once: true, ..day(14, settled) }
        }
        "window, ask after, two workers" => Case { workers: 2, ..after(2, "window") },
        "bucket, ask after, two workers" => Case { workers: 2, ..after(2, "token bucket") },
        "tight window, ask after" => after(2, "window"),
        "wide window, ask after" => after(8, "window"),
        "tight sliding window, ask after" => after(2, "sliding window"),
        "tight bucket, ask after" => after(2, "token bucket"),
        "wide bucket, ask after" => after(8, "token bucket"),
        _ => panic!("no rule `{name}`"),
    }
}

impl Case {
    fn new(gateways: usize, timeout: Micros, limit: u64, rule: &str) -> Case {
        Case::with(gateways, timeout, limit, &format!("{rule}, scope: global"))
    }

    fn with(gateways: usize, timeout: Micros, limit: u64, rule: &str) -> Case {
        let text = format!(
            "namespace: fleet\nkeys: 16\n\
             redis: {{cluster: redis, timeout: {}ms, gateways: {gateways}}}\n\
             limits: [{{Url: /, rules: [{{name: r, actor: account, {rule}}}]}}]",
            timeout / 1000
        );
        Case {
            policy: Reader::default().policy(text.as_bytes()).expect("a document"),
            timeout,
            limit,
            workers: 1,
            stands_still: false,
            calls: 0,
            flood: 1,
            reserve: 1,
            used: &[],
            is_in_flight: false,
            before_edge: None,
            beside: 0,
            is_spent: false,
            has_plans: false,
            is_busy: false,
            refuses: false,
            reloads: false,
            asks_after: false,
            ticks_once: timeout >= FAR,
        }
    }

    /// Whether there is room for another request of each gateway in the end, so that the charges of Redis follow from
    /// the permits that remain.
    pub fn has_room(&self) -> bool {
        self.limit > (self.flood as u64).max(4) || self.is_in_flight
    }

    /// Whether Redis is so far away that a reply may come while others fail.
    pub fn is_far(&self) -> bool {
        self.timeout >= FAR
    }

    /// Whether all that Redis grants is charged at once, and for a day.
    pub fn is_exact(&self) -> bool {
        self.is_plain() && self.used.is_empty() && !self.is_busy && self.beside == 0
    }

    /// Whether each request is decided by Redis, or by the share of its gateway.
    pub fn is_plain(&self) -> bool {
        !self.is_in_flight && self.before_edge.is_none() && !self.asks_after
    }

    /// The share of one of some gateways.
    pub fn share(&self, gateways: usize) -> u64 {
        self.limit.div_ceil(gateways as u64)
    }
}
