//! `time_zone`: an offset, or a rule as POSIX writes it in `TZ`.

use crate::node::Node;
use diana_core::policy::{Change, ChangeDay, Summer, Zone};

const ALLOWED: &str = "an offset such as \"+08:00\", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as \
                       \"CET-1CEST,M3.5.0,M10.5.0/3\"";
const NAMES: &str = "names of time zones are not available in this release: write the rule, which is the last line of \
                     the zone's file in `zoneinfo`";

/// Seconds of 14 hours.
const FARTHEST: i32 = 14 * HOUR;
/// Seconds of 12 hours, by which clocks change at most.
const LARGEST: u32 = 12 * HOUR.unsigned_abs();
const HOUR: i32 = 3_600;

/// When clocks change where a rule does not say it.
const TWO: i32 = 2 * HOUR;

/// What a rule lacks, or has too much: the rest of a sentence.
const NAME: &str = "needs names of three letters or more, or in `<>`";
const OFFSET: &str =
    "needs an offset behind its name, such as `-1` east of Greenwich and `5:30` west of it";
const SIGN: &str = "has the sign of an offset from UTC the other way round than is usual: write \"+08:00\" for one to the \
                    east, as POSIX has it `UTC-8`";
const FAR: &str = "is more than 14 hours away from UTC";
const CHANGES: &str = "has to say when summer time begins and ends, such as `,M3.5.0,M10.5.0/3`";
const DAY: &str = "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a \
                   number (0 … 365)";
const TIME: &str = "has a time of change beyond 167 hours";
const SHIFT: &str = "changes clocks by more than 12 hours";
const NEVER: &str = "begins and ends summer time at the same instant";
const MORE: &str = "goes on behind its end";

/// Where a day begins.
#[derive(Debug, Default)]
pub struct TimeZone {
    /// As numbers.
    pub zone: Zone,
    /// As it is written, if it is a rule.
    pub rule: Option<String>,
}

/// Reads `time_zone`.
pub fn read(node: &Node<'_>) -> TimeZone {
    let Some(text) = node.text(ALLOWED) else { return TimeZone::default() };
    if let Some(seconds) = offset(text) {
        if seconds.abs() > FARTHEST {
            node.reject(ALLOWED);
        }
        return TimeZone { zone: Zone::ahead(seconds), rule: None };
    }
    match rule(text) {
        Ok(zone) => return TimeZone { zone, rule: Some(text.into()) },
        Err(_) if is_name(text) => node.reject(&format!("{ALLOWED}; {NAMES}")),
        Err(why) if text.contains(|one: char| one.is_ascii_alphabetic() || one == '<') => {
            node.reject(&format!("{ALLOWED}; as a rule it {why}"));
        }
        Err(_) => node.reject(ALLOWED),
    }
    TimeZone::default()
}

/// Whether something that is no rule looks like `Europe/Berlin`.
fn is_name(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default();
    let is_letter = |one: char| one.is_ascii_alphabetic();
    first.starts_with(is_letter) && (first.contains('/') || first.chars().all(is_letter))
}

/// Seconds that `+08:00` is ahead of UTC.
fn offset(text: &str) -> Option<i32> {
    if text == "Z" || text == "UTC" {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let two = |part: &str| {
        let is_two = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_two { part.parse::<i32>().ok() } else { None }
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

/// `std offset [dst [offset] , start [/time] , end [/time]]`.
fn rule(text: &str) -> Result<Zone, &'static str> {
    let mut rest = Rest(text);
    rest.name()?;
    let standard = rest.ahead()?;
    if standard != 0 && ["UTC", "GMT"].iter().any(|name| text.starts_with(name)) {
        return Err(SIGN);
    }
    if rest.0.is_empty() {
        return Ok(Zone::ahead(standard));
    }
    rest.name()?;
    let has_offset = !rest.0.is_empty() && !rest.0.starts_with(',');
    let ahead = if has_offset { rest.ahead()? } else { near(standard + HOUR)? };
    let (begins, ends) = (rest.change()?, rest.change()?);
    let zone = Zone { standard, summer: Some(Summer { ahead, begins, ends }) };
    if !rest.0.is_empty() {
        Err(MORE)
    } else if zone.shift() > LARGEST {
        Err(SHIFT)
    } else if begins.day == ends.day && begins.at - standard == ends.at - ahead {
        Err(NEVER)
    } else {
        Ok(zone)
    }
}

fn near(ahead: i32) -> Result<i32, &'static str> {
    if ahead.abs() > FARTHEST { Err(FAR) } else { Ok(ahead) }
}

/// What is still to be read of a rule.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    fn name(&mut self) -> Result<(), &'static str> {
        let is_quoted = self.take('<');
        let is_other = |one: char| match one {
            '0'..='9' | '+' | '-' => !is_quoted,
            _ => !one.is_ascii_alphabetic(),
        };
        let length = self.0.find(is_other).unwrap_or(self.0.len());
        self.0 = self.0.get(length..).unwrap_or_default();
        let is_whole = !is_quoted || self.take('>');
        if length >= 3 && is_whole { Ok(()) } else { Err(NAME) }
    }

    /// An offset, which is how far UTC is ahead.
    fn ahead(&mut self) -> Result<i32, &'static str> {
        near(-self.clock(24).ok_or(OFFSET)?)
    }

    fn change(&mut self) -> Result<Change, &'static str> {
        if !self.take(',') {
            return Err(CHANGES);
        }
        let day = self.day().ok_or(DAY)?;
        let at = if self.take('/') { self.clock(167).ok_or(TIME)? } else { TWO };
        Ok(Change { day, at })
    }

    fn day(&mut self) -> Option<ChangeDay> {
        if self.take('J') {
            return Some(ChangeDay::Common(self.number(1, 365)?));
        }
        if !self.take('M') {
            return Some(ChangeDay::Since(self.number(0, 365)?));
        }
        let month = self.number(1, 12)?;
        let nth = self.take('.').then(|| self.number(1, 5))??;
        let weekday = self.take('.').then(|| self.number(0, 6))??;
        let [month, nth, weekday] = [month, nth, weekday].map(|number| number as u8);
        Some(ChangeDay::Weekday { month, nth, weekday })
    }

    /// `[+-]hh[:mm[:ss]]` in seconds.
    fn clock(&mut self, hours: u16) -> Option<i32> {
        let sign = if self.take('-') { -1 } else { 1 };
        _ = sign > 0 && self.take('+');
        let mut seconds = HOUR * i32::from(self.number(0, hours)?);
        for length in [60, 1] {
            if !self.take(':') {
                break;
            }
            seconds += length * i32::from(self.number(0, 59)?);
        }
        Some(sign * seconds)
    }

    fn number(&mut self, least: u16, most: u16) -> Option<u16> {
        let is_other = |one: char| !one.is_ascii_digit();
        let (digits, rest) =
            self.0.split_at_checked(self.0.find(is_other).unwrap_or(self.0.len()))?;
        self.0 = rest;
        digits.parse().ok().filter(|number| (least..=most).contains(number))
    }

    fn take(&mut self, first: char) -> bool {
        let rest = self.0.strip_prefix(first);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}
