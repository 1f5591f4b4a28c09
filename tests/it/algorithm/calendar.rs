//! Windows of the calendar, compared with jiff.

use diana_algorithm::calendar::Windows;
use diana_policy::decision::Decision;
use diana_policy::time::{DAY, Now, SECOND, Unit};
use diana_policy::{Quota, Starts, Zone};
use fastrand::Rng;
use jiff::civil::{Date, date};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneTransition};
use jiff::{Timestamp, ToSpan};

use kit::seed;
use kit::zones::{SUMMER, some_starts, zone};

const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
const HOUR: u64 = 3_600 * SECOND;

fn windows(unit: Unit, zone: Zone) -> Windows {
    anchored(unit, zone, Starts::PLAIN)
}

fn anchored(unit: Unit, zone: Zone, starts: Starts) -> Windows {
    Windows::of(&Quota { zone, starts, ..Quota::new(unit, 1) })
}

/// The second at which a day begins: the first with this local time, or the change that skips it.
fn begins(day: Date, starts: Starts, zone: &TimeZone) -> i64 {
    let time = day.at(0, 0, 0, 0) + i64::from(starts.day).seconds();
    let found = zone.to_ambiguous_timestamp(time);
    match found.offset() {
        AmbiguousOffset::Gap { .. } => {
            let day_before = found.earlier().unwrap() - 24.hours();
            zone.following(day_before).next().unwrap().timestamp().as_second()
        }
        _ => found.earlier().unwrap().as_second(),
    }
}

/// The current day. It stays current if clocks go back before its start.
fn day_at(second: i64, starts: Starts, zone: &TimeZone) -> Date {
    let day = Timestamp::from_second(second).unwrap().to_zoned(zone.clone()).date();
    let days = [day.tomorrow().unwrap(), day, day.yesterday().unwrap()];
    days.into_iter().find(|day| begins(*day, starts, zone) <= second).unwrap()
}

/// The window of a unit of whole days.
fn window(unit: Unit, second: i64, starts: Starts, zone: &TimeZone) -> (i64, i64) {
    let day = day_at(second, starts, zone);
    // The start in the month that begins on `first`: the last day if it has no such day.
    let within =
        |first: Date| first.with().day(1).build().unwrap() + i64::from(starts.month - 1).days();
    let in_month = |first: Date| within(first).min(first.last_of_month());
    let (first, end) = match unit {
        Unit::Month | Unit::Year => {
            let span = if unit == Unit::Year { 1.year() } else { 1.month() };
            let start = match unit {
                Unit::Year => day.first_of_year(),
                _ => day.first_of_month(),
            };
            match in_month(start) <= day {
                true => (in_month(start), in_month(start + span)),
                false => (in_month(start - span), in_month(start)),
            }
        }
        _ => {
            let count = i32::try_from(unit.micros() / DAY).unwrap();
            let week = if unit == Unit::Week { i64::from(starts.week) } else { 0 };
            let since = (day - (date(1970, 1, 5) + week.days())).get_days().rem_euclid(count);
            (day - since.days(), day - since.days() + count.days())
        }
    };
    (begins(first, starts, zone), begins(end, starts, zone))
}

/// Compares ends and lengths around the days on which clocks change, for any starts.
#[test]
fn windows_agree_with_jiff() {
    let mut rng = Rng::with_seed(seed::next());
    let units =
        [Unit::Day, Unit::Week, Unit::Month, Unit::Year, Unit::of(2 * DAY), Unit::of(31 * DAY)];
    let (mut odd, mut skipped) = (0, 0);
    for text in SUMMER.into_iter().chain(["UTC0", "<-0330>3:30"]) {
        let (own, other) = (zone(text), TimeZone::posix(text).unwrap());
        let (from, to) = (date(1972, 1, 1), date(2100, 12, 31));
        let [from, to] = [from, to].map(|day| begins(day, Starts::PLAIN, &other));
        for _ in 0..300 {
            let some = Timestamp::from_second(rng.i64(from..to)).unwrap();
            let second = match other.following(some).next() {
                Some(change) if rng.bool() => {
                    change.timestamp().as_second() + rng.i64(-2 * 86_400..2 * 86_400)
                }
                Some(change) if rng.bool() => change.timestamp().as_second() - rng.i64(0..2),
                _ => some.as_second(),
            };
            let starts = if rng.bool() { Starts::PLAIN } else { some_starts(&mut rng) };
            for unit in units {
                let (begins, ends) = window(unit, second, starts, &other);
                let wall = second as u64 * SECOND + rng.u64(0..SECOND);
                let all = anchored(unit, own, starts);
                let span = all.at(wall);
                let wanted = (ends as u64 * SECOND, (ends - begins) as u64 * SECOND);
                assert_eq!(
                    (span.ends, span.length),
                    wanted,
                    "{unit:?} from {starts:?} in {text} at {second}"
                );
                odd += u64::from(unit == Unit::Day && span.length != DAY);
                let is_skipped =
                    |change: TimeZoneTransition| change.timestamp().as_second() == ends;
                let before = Timestamp::from_second(ends - 1).unwrap();
                skipped += u64::from(
                    starts.day > 0 && other.following(before).next().is_some_and(is_skipped),
                );
                assert!((all.shortest()..=all.longest()).contains(&span.length));
            }
        }
    }
    assert!(odd > 200, "{odd} days with a change");
    assert!(skipped > 20, "{skipped} starts within a gap");
}

/// Equal to some windows within a few years, except for a clock change.
#[test]
fn window_bounds_are_tight() {
    for zone in SUMMER.map(zone).into_iter().chain([Zone::UTC, Zone::ahead(-7200)]) {
        let change = u64::from(zone.shift()) * SECOND;
        for unit in [Unit::Day, Unit::Week, Unit::Month, Unit::Year] {
            let (all, mut wall, mut lengths) =
                (windows(unit, zone), 1_700_000_000 * SECOND, vec![]);
            while wall < 1_900_000_000 * SECOND {
                let span = all.at(wall);
                lengths.push(span.length);
                wall = span.ends;
            }
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            let [shortest, longest] = [all.shortest(), all.longest()];
            let is_near = (shortest..=shortest + change).contains(least)
                && (longest - change..=longest).contains(most);
            assert!(is_near, "{unit:?} in {zone:?}: {least}, {most} in {shortest}..={longest}");
        }
    }
}

/// Windows have no gaps and no overlaps.
#[test]
fn windows_have_no_gaps_and_no_overlaps() {
    let mut rng = Rng::with_seed(seed::next());
    for text in SUMMER {
        for unit in [Unit::Day, Unit::Week, Unit::Month, Unit::Year, Unit::of(3 * DAY)] {
            let starts = some_starts(&mut rng);
            let all = anchored(unit, zone(text), starts);
            let mut span = all.at(1_700_000_000 * SECOND);
            for _ in 0..800 {
                let next = all.at(span.ends);
                let context = format!("{unit:?} from {starts:?} in {text}");
                assert_eq!(next.ends - next.length, span.ends, "{context}");
                assert_eq!(all.at(next.ends - 1), next);
                assert_eq!(all.at(span.ends - 1), span);
                span = next;
            }
        }
    }
}

#[test]
fn day_has_23_or_25_hours_when_clocks_change() {
    let at = |unit, wall: u64| windows(unit, zone(BERLIN)).at(wall * SECOND);
    // Noon on Sunday, 29 March, and on Sunday, 25 October 2026.
    let (spring, autumn) = (1_774_778_400, 1_792_926_000);
    assert_eq!(at(Unit::Day, spring).length, 23 * HOUR);
    assert_eq!(at(Unit::Day, autumn).length, 25 * HOUR);
    assert_eq!(at(Unit::Day, autumn + 86_400).length, 24 * HOUR);
    assert_eq!(at(Unit::Week, spring).length, 7 * DAY - HOUR);
    assert_eq!(at(Unit::Week, autumn).length, 7 * DAY + HOUR);
    assert_eq!(at(Unit::Month, spring).length, 31 * DAY - HOUR);
    // Shorter units, and those that are not whole days, use standard time.
    assert_eq!(at(Unit::Hour, spring).length, HOUR);
    assert_eq!(at(Unit::of(36 * HOUR), spring).length, 36 * HOUR);
    let by_standard = windows(Unit::of(7 * HOUR), Zone::ahead(3_600)).at(spring * SECOND);
    assert_eq!(at(Unit::of(7 * HOUR), spring), by_standard);
}

#[test]
fn fixed_windows_begin_on_a_local_monday() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..2_000 {
        let ticks = match rng.u8(0..6) {
            0 => 7 * SECOND,
            1 => 90 * 60 * SECOND,
            2 => 31 * DAY,
            3 => 7 * DAY,
            _ => rng.u64(Unit::SHORTEST..=Unit::LONGEST),
        };
        let ahead = rng.i32(-56..=56) * 900;
        let monday = 4 * i128::from(DAY) - i128::from(ahead) * i128::from(SECOND);
        let wall = match rng.u8(0..4) {
            0 => rng.u64(0..2 * Unit::LONGEST),
            _ => rng.u64(0..4_000_000_000 * SECOND),
        };
        let (length, since) = (i128::from(ticks), i128::from(wall) - monday);
        let ends = monday + (since.div_euclid(length) + 1) * length;
        let span = windows(Unit::of(ticks), Zone::ahead(ahead)).at(wall);
        assert_eq!((i128::from(span.ends), span.length), (ends, ticks), "{ticks} at {wall}");
    }
}

/// Clocks with large errors compute the same windows.
#[test]
fn window_edges_agree_for_clocks_hours_apart() {
    let mut rng = Rng::with_seed(seed::next());
    for text in SUMMER {
        for unit in [Unit::Day, Unit::Month, Unit::Year, Unit::of(3 * DAY)] {
            let all = anchored(unit, zone(text), some_starts(&mut rng));
            for _ in 0..50 {
                // The clock of a machine without a battery begins at its start.
                let wall = match rng.bool() {
                    true => rng.u64(0..10 * DAY),
                    false => rng.u64(1_600_000_000..1_900_000_000) * SECOND,
                };
                let edges = all.edges(wall);
                let there = (wall + rng.u64(0..46 * HOUR)).saturating_sub(23 * HOUR);
                let span = all.at(there);
                if unit != Unit::Day || zone(text).shift() <= 3_600 {
                    let ends = span.ends.cast_signed();
                    let begins = ends - span.length.cast_signed();
                    let is_from_data = edges.windows(2).any(|one| *one == [begins, ends]);
                    assert!(is_from_data, "{edges:?} at {wall}, {span:?} at {there}");
                }
            }
        }
    }
    assert_eq!(windows(Unit::Hour, Zone::UTC).edges(7).len(), 1);
}

/// For any time, there is no panic, and a window does not end in the past.
#[test]
fn any_clock_value_has_a_window() {
    let mut rng = Rng::with_seed(seed::next());
    for text in SUMMER {
        for unit in [Unit::Second, Unit::Day, Unit::Week, Unit::Month, Unit::Year] {
            for _ in 0..100 {
                let wall = rng.u64(..) >> rng.u8(0..64);
                let all = anchored(unit, zone(text), some_starts(&mut rng));
                let span = all.at(wall);
                assert!(span.ends > wall || wall > u64::MAX - 367 * DAY, "{span:?} at {wall}");
                assert!(!all.edges(wall).is_empty());
            }
        }
    }
}

/// A window in progress ends as planned: until then no more than `rpu` permits are admitted, and then the next window ends
/// as the new starts say.
#[test]
fn changed_start_frees_nothing_before_the_window_ends() {
    let mut rng = Rng::with_seed(seed::next());
    let mut early = 0;
    for _ in 0..400 {
        let unit = [Unit::Day, Unit::Week, Unit::Month, Unit::Year][rng.usize(0..4)];
        let zone = zone(SUMMER[rng.usize(0..SUMMER.len())]);
        let (rpu, mut state, mut wall) = (rng.u64(1..6), vec![0; 3], 1_750_000_000 * SECOND);
        // The end of the window in progress, and its usage.
        let (mut ends, mut used) = (0, 0);
        for _ in 0..60 {
            let quota = Quota { zone, starts: some_starts(&mut rng), ..Quota::new(unit, rpu) };
            if wall >= ends {
                (ends, used) = (Windows::of(&quota).at(wall).ends, 0);
            }
            early += u64::from(Windows::of(&quota).at(wall).ends != ends);
            let algorithm = (diana_algorithm::fixed_window::ENTRY.build)(&quota).unwrap();
            let now = Now { mono: wall, wall };
            let mut next = state.clone();
            let wanted = if used < rpu { Decision::NOW } else { Decision::retry(ends - wall) };
            assert_eq!(algorithm.step(&state, now, 0, 1, &mut next), wanted, "{quota:?} at {wall}");
            if used < rpu {
                (state, used) = (next, used + 1);
            }
            wall = match rng.u8(0..4) {
                0 => ends,
                1 => wall + rng.u64(0..unit.micros() / 4),
                _ => wall + rng.u64(0..SECOND),
            };
        }
    }
    assert!(early > 1_000, "{early} changes within a window");
}
