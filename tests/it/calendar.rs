//! Windows of the calendar, compared with jiff.

use diana_algorithm::calendar::Windows;
use diana_policy::time::{DAY, SECOND, Unit};
use diana_policy::{Quota, Zone};
use fastrand::Rng;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use kit::seed;
use kit::zones::{SUMMER, zone};

const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
const HOUR: u64 = 3_600 * SECOND;

fn windows(unit: Unit, zone: Zone) -> Windows {
    Windows::of(&Quota { zone, ..Quota::new(unit, 1) })
}

/// The second at which a day begins.
fn begins(day: Date, zone: &TimeZone) -> i64 {
    let noon = day.at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap();
    noon.start_of_day().unwrap().timestamp().as_second()
}

/// The current day. It stays current if clocks go back before its midnight.
fn day_at(second: i64, zone: &TimeZone) -> Date {
    let day = Timestamp::from_second(second).unwrap().to_zoned(zone.clone()).date();
    let next = day.tomorrow().unwrap();
    if begins(next, zone) <= second { next } else { day }
}

/// The window of a unit of whole days.
fn window(unit: Unit, second: i64, zone: &TimeZone) -> (i64, i64) {
    let day = day_at(second, zone);
    let (first, end) = if unit == Unit::Month {
        (day.first_of_month(), day.first_of_month() + 1.month())
    } else {
        let count = i32::try_from(unit.micros() / DAY).unwrap();
        let since = (day - date(1970, 1, 5)).get_days().rem_euclid(count);
        (day - since.days(), day - since.days() + count.days())
    };
    (begins(first, zone), begins(end, zone))
}

/// Compares ends and lengths around the days on which clocks change.
#[test]
fn windows_agree_with_jiff() {
    let mut rng = Rng::with_seed(seed::next());
    let units = [Unit::Day, Unit::Week, Unit::Month, Unit::of(2 * DAY), Unit::of(31 * DAY)];
    let mut odd = 0;
    for text in SUMMER {
        let (own, other) = (zone(text), TimeZone::posix(text).unwrap());
        let (from, to) = (date(1971, 1, 1), date(2100, 12, 31));
        let [from, to] = [from, to].map(|day| begins(day, &other));
        for _ in 0..300 {
            let some = Timestamp::from_second(rng.i64(from..to)).unwrap();
            let second = match other.following(some).next() {
                Some(change) if rng.bool() => {
                    change.timestamp().as_second() + rng.i64(-2 * 86_400..2 * 86_400)
                }
                Some(change) if rng.bool() => change.timestamp().as_second() - rng.i64(0..2),
                _ => some.as_second(),
            };
            for unit in units {
                let (begins, ends) = window(unit, second, &other);
                let wall = second as u64 * SECOND + rng.u64(0..SECOND);
                let span = windows(unit, own).at(wall);
                let wanted = (ends as u64 * SECOND, (ends - begins) as u64 * SECOND);
                assert_eq!((span.ends, span.length), wanted, "{unit:?} in {text} at {second}");
                odd += u64::from(unit == Unit::Day && span.length != DAY);
                let all = windows(unit, own);
                assert!((all.shortest()..=all.longest()).contains(&span.length));
            }
        }
    }
    assert!(odd > 200, "{odd} days with a change");
}

/// Equal to some windows within a few years, except for a clock change.
#[test]
fn window_bounds_are_tight() {
    for zone in SUMMER.map(zone).into_iter().chain([Zone::UTC, Zone::ahead(-7200)]) {
        let change = u64::from(zone.shift()) * SECOND;
        for unit in [Unit::Day, Unit::Week, Unit::Month] {
            let (all, mut wall, mut lengths) =
                (windows(unit, zone), 1_700_000_000 * SECOND, vec![]);
            while wall < 1_840_000_000 * SECOND {
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
    for text in SUMMER {
        for unit in [Unit::Day, Unit::Week, Unit::Month, Unit::of(3 * DAY)] {
            let all = windows(unit, zone(text));
            let mut span = all.at(1_700_000_000 * SECOND);
            for _ in 0..800 {
                let next = all.at(span.ends);
                assert_eq!(next.ends - next.length, span.ends, "{unit:?} in {text}");
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
fn year_has_its_months() {
    for (year, february) in [(2023, 28), (2024, 29), (2100, 28), (2000, 29)] {
        let first = date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp();
        let mut wall = first.as_second() as u64 * SECOND;
        for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
            let span = windows(Unit::Month, Zone::UTC).at(wall);
            assert_eq!((span.ends, span.length), (wall + days * DAY, days * DAY), "{year}");
            wall = span.ends;
        }
    }
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
        for unit in [Unit::Day, Unit::Month, Unit::of(3 * DAY)] {
            let all = windows(unit, zone(text));
            for _ in 0..50 {
                // The clock of a machine without a battery begins at its start.
                let wall = match rng.bool() {
                    true => rng.u64(0..10 * DAY),
                    false => rng.u64(1_600_000_000..1_900_000_000) * SECOND,
                };
                let told = all.edges(wall);
                let there = (wall + rng.u64(0..46 * HOUR)).saturating_sub(23 * HOUR);
                let span = all.at(there);
                if unit != Unit::Day || zone(text).shift() <= 3_600 {
                    let ends = span.ends.cast_signed();
                    let begins = ends - span.length.cast_signed();
                    let is_from_data = told.windows(2).any(|one| *one == [begins, ends]);
                    assert!(is_from_data, "{told:?} at {wall}, {span:?} at {there}");
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
        for unit in [Unit::Second, Unit::Day, Unit::Week, Unit::Month] {
            for _ in 0..100 {
                let wall = rng.u64(..) >> rng.u8(0..64);
                let span = windows(unit, zone(text)).at(wall);
                assert!(span.ends > wall || wall > u64::MAX - 32 * DAY, "{span:?} at {wall}");
                assert!(!windows(unit, zone(text)).edges(wall).is_empty());
            }
        }
    }
}
