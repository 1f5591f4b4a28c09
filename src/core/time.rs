//! Time as plain numbers. Nothing here, and nothing in the core, reads a clock.

/// A duration or an instant in microseconds. One tick is 1 µs in every store.
pub type Micros = u64;

/// One second in ticks.
pub const SECOND: Micros = 1_000_000;

/// The units that durations are written in, with their lengths in ticks, shortest first.
pub const DURATIONS: [(&str, Micros); 4] =
    [("ms", 1_000), ("s", SECOND), ("m", 60 * SECOND), ("h", 3_600 * SECOND)];

/// A duration of whole milliseconds as it is written in a configuration, such as `90s`.
#[must_use]
pub fn spell(ticks: Micros) -> String {
    let fits = |(_, length): &(&str, Micros)| ticks > 0 && ticks.is_multiple_of(*length);
    match DURATIONS.into_iter().rfind(fits) {
        Some((name, length)) => format!("{}{name}", ticks / length),
        None => "0".into(),
    }
}

/// The one instant at which all rules of a request are judged, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic clock; its origin is arbitrary but common to all workers of a host.
    pub mono: Micros,
    /// Wall clock since the Unix epoch, UTC. May step in either direction.
    pub wall: Micros,
}

impl Now {
    /// Both clocks, `ticks` later.
    #[must_use]
    pub fn later(self, ticks: Micros) -> Now {
        Now { mono: self.mono.saturating_add(ticks), wall: self.wall.saturating_add(ticks) }
    }

    /// The later of the two on each clock, for stores that must not judge the past.
    #[must_use]
    pub fn max(self, other: Now) -> Now {
        Now { mono: self.mono.max(other.mono), wall: self.wall.max(other.wall) }
    }
}

/// The unit that `rpu` counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// One second.
    Second,
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
}

impl Unit {
    /// Every unit, shortest first, with the name that the configuration uses.
    pub const ALL: [(&'static str, Unit); 4] = [
        ("second", Unit::Second),
        ("minute", Unit::Minute),
        ("hour", Unit::Hour),
        ("day", Unit::Day),
    ];

    /// Length in ticks.
    #[must_use]
    pub const fn micros(self) -> Micros {
        match self {
            Unit::Second => SECOND,
            Unit::Minute => 60 * SECOND,
            Unit::Hour => 3_600 * SECOND,
            Unit::Day => 86_400 * SECOND,
        }
    }

    /// The name that the configuration uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
        }
    }
}
