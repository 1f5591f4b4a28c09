//! Rules as these tests write them down: the numbers that the oracles need beside the text that
//! the module gets.

pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;
pub const DAY: u64 = 24 * HOUR;

#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub algo: &'static str,
    /// In microseconds.
    pub unit: u64,
    pub rpu: u64,
    pub cost: u64,
    pub burst: Option<u64>,
    pub slices: Option<u64>,
    /// Minutes that local time is ahead of UTC.
    pub zone: i64,
    pub scope: &'static str,
}

impl Rule {
    pub const fn new(algo: &'static str, unit: u64, rpu: u64) -> Rule {
        Rule { algo, unit, rpu, cost: 1, burst: None, slices: None, zone: 0, scope: "local" }
    }

    pub const fn cost(self, cost: u64) -> Rule {
        Rule { cost, ..self }
    }

    pub const fn burst(self, burst: u64) -> Rule {
        Rule { burst: Some(burst), ..self }
    }

    pub const fn slices(self, slices: u64) -> Rule {
        Rule { slices: Some(slices), ..self }
    }

    pub const fn zone(self, zone: i64) -> Rule {
        Rule { zone, ..self }
    }

    pub const fn gateway(self) -> Rule {
        Rule { scope: "gateway", ..self }
    }

    /// The number of the window that `wall` lies in, counted from a Monday by local time.
    pub fn window(&self, wall: u64) -> i64 {
        self.since_monday(wall).div_euclid(self.unit as i64)
    }

    /// Microseconds until that window ends.
    pub fn left(&self, wall: u64) -> u64 {
        self.unit - self.since_monday(wall).rem_euclid(self.unit as i64) as u64
    }

    fn since_monday(&self, wall: u64) -> i64 {
        wall as i64 + self.zone * MINUTE as i64 - 4 * DAY as i64
    }

    /// Requests that fit into a unit.
    pub fn per_unit(&self) -> u64 {
        self.rpu / self.cost
    }

    /// The plugin configuration with this rule alone, for each value of `x-device-id`.
    pub fn config(&self) -> String {
        let unit = match self.unit {
            SECOND => "second".into(),
            MINUTE => "minute".into(),
            HOUR => "hour".into(),
            DAY => "day".into(),
            other => format!("{}s", other / SECOND),
        };
        let sign = if self.zone < 0 { '-' } else { '+' };
        let zone = self.zone.unsigned_abs();
        let burst = self.burst.map(|burst| format!(", burst: {burst}")).unwrap_or_default();
        let slices = self.slices.map(|slices| format!(", slices: {slices}")).unwrap_or_default();
        format!(
            "time_zone: \"{sign}{:02}:{:02}\"\n\
             limits:\n\
             - Url: /\n  \
               rules: [{{actor: device, unit: {unit}, rpu: {}, algo: {}, scope: {}, \
                        cost: {}{burst}{slices}}}]\n",
            zone / 60,
            zone % 60,
            self.rpu,
            self.algo,
            self.scope,
            self.cost,
        )
    }
}
