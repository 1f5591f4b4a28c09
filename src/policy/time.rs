//! Time as plain numbers. Only the worker reads clocks.

/// A duration or an instant in microseconds. One tick is 1 µs in every store.
pub type Micros = u64;

/// One second in ticks.
pub const SECOND: Micros = 1_000_000;

/// Twenty-four hours in ticks.
pub const DAY: Micros = 86_400 * SECOND;

/// The units of durations with their lengths in ticks, shortest first.
pub const DURATIONS: [(&str, Micros); 5] =
    [("ms", 1_000), ("s", SECOND), ("m", 60 * SECOND), ("h", 3_600 * SECOND), ("d", DAY)];

/// A duration of whole milliseconds in the notation of the configuration, such as `90s`.
#[must_use]
pub fn spell(ticks: Micros) -> String {
    let fits = |(_, length): &(&str, Micros)| ticks > 0 && ticks.is_multiple_of(*length);
    match DURATIONS.into_iter().rfind(fits) {
        Some((name, length)) => format!("{}{name}", ticks / length),
        None => "0".into(),
    }
}

/// Parses a whole number of one of `units`, such as `90s`. `ms` must come before `s`.
#[must_use]
pub fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let split = |(name, length): &(&str, u64)| Some((text.strip_suffix(name)?, *length));
    let (number, length) = units.iter().find_map(split)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(length)
}

/// The instant at which all rules of a request are evaluated, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic clock. Its origin is arbitrary, and common to all workers of a host.
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

    /// The later instant on each clock, for stores that must not evaluate a request in the past.
    #[must_use]
    pub fn max(self, other: Now) -> Now {
        Now { mono: self.mono.max(other.mono), wall: self.wall.max(other.wall) }
    }
}

/// The first instant after `now` of those, `every` ticks apart, that `number` chooses: gateways that
/// start together do not call together. `every` is at least 1.
#[must_use]
pub fn turn(now: Micros, every: Micros, number: u64) -> Micros {
    let every = every.max(1);
    let since = (now % every + every - number % every) % every;
    now.saturating_add(every - since)
}

/// The unit of `rpu`.
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
    /// Seven days.
    Week,
    /// A month of the calendar, for windows only.
    Month,
    /// A year of the calendar, for windows only.
    Year,
    /// Another length in ticks, [`Unit::SHORTEST`] ..= [`Unit::LONGEST`], created by [`Unit::of`].
    Other(Micros),
}

impl Unit {
    /// Every named unit, shortest first, with its name in the configuration.
    pub const ALL: [(&'static str, Unit); 7] = [
        ("second", Unit::Second),
        ("minute", Unit::Minute),
        ("hour", Unit::Hour),
        ("day", Unit::Day),
        ("week", Unit::Week),
        ("month", Unit::Month),
        ("year", Unit::Year),
    ];

    /// Ticks of the shortest unit.
    pub const SHORTEST: Micros = SECOND;

    /// Ticks of the longest unit but [`Unit::Year`].
    pub const LONGEST: Micros = 31 * DAY;

    /// The unit with this length in ticks, a named one if possible.
    #[must_use]
    pub fn of(ticks: Micros) -> Unit {
        let is_it = |unit: Unit| !unit.varies() && unit.micros() == ticks;
        let named = Unit::ALL.into_iter().find(|(_, unit)| is_it(*unit));
        named.map_or(Unit::Other(ticks), |(_, unit)| unit)
    }

    /// Returns true if it is a unit of the calendar, whose length varies.
    #[must_use]
    pub fn varies(self) -> bool {
        matches!(self, Unit::Month | Unit::Year)
    }

    /// Length in ticks. For a month or a year, the longest one.
    #[must_use]
    pub const fn micros(self) -> Micros {
        match self {
            Unit::Second => SECOND,
            Unit::Minute => 60 * SECOND,
            Unit::Hour => 3_600 * SECOND,
            Unit::Day => DAY,
            Unit::Week => 7 * DAY,
            Unit::Month => Unit::LONGEST,
            Unit::Year => 366 * DAY,
            Unit::Other(ticks) => ticks,
        }
    }

    /// The name in the configuration, or the duration, such as `90m`.
    #[must_use]
    pub fn name(self) -> String {
        let named = Unit::ALL.into_iter().find(|(_, unit)| *unit == self);
        named.map_or_else(|| spell(self.micros()), |(name, _)| name.into())
    }
}
