//! Time zones with summer time.

use diana_policy::{Starts, Zone};
use fastrand::Rng;

/// Their rules: northern and southern ones, changes of half an hour and of two, at midnight and on
/// other days than the rule names, days by their number, summer time behind standard time, and some
/// fictional ones.
pub const SUMMER: [&str; 14] = [
    "CET-1CEST,M3.5.0,M10.5.0/3",
    "EST5EDT,M3.2.0,M11.1.0",
    "GMT0BST,M3.5.0/1,M10.5.0",
    "NST3:30NDT,M3.2.0,M11.1.0",
    "AEST-10AEDT,M10.1.0,M4.1.0/3",
    "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    "<-04>4<-03>,M9.1.6/24,M4.1.6/24",
    "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
    "EET-2EEST,M3.4.4/50,M10.4.4/50",
    "<+00>0<+02>-2,M3.5.0/1,M10.5.0/3",
    "IST-1GMT0,M10.5.0,M3.5.0/1",
    "ABC-3DEF,J60/0,J300/26",
    "ABC+3DEF,59/-1,299/0:30",
    "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45",
];

/// Parses a zone of a configuration.
pub fn zone(text: &str) -> Zone {
    let document = format!(
        "{{limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1}}]}}], time_zone: '{text}'}}"
    );
    let policy = diana_config::Reader::default().policy(document.as_bytes());
    let policy = policy.unwrap_or_else(|problems| panic!("{problems}"));
    policy.limits[0].rules[0].quota.zone
}

/// Any starts, often those within a clock change.
pub fn some_starts(rng: &mut Rng) -> Starts {
    let day = match rng.u8(0..4) {
        0 => 0,
        1 => 60 * rng.u32(60..210),
        _ => 60 * rng.u32(0..1440),
    };
    let month = if rng.bool() { rng.u8(28..=31) } else { rng.u8(1..=31) };
    Starts { day, week: rng.u8(0..7), month: if rng.u8(0..4) == 0 { 1 } else { month } }
}
