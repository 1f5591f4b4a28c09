//! Units, durations and time zones.

use super::super::{policy, rule, with_rule};
use diana_policy::Zone;
use diana_policy::time::{SECOND, Unit};

#[test]
fn durations() {
    let texts = ["0", "'0'", "0ms", "0h", "1ms", "007ms", "20000ms", "20s", "5s"];
    let ticks = [0, 0, 0, 0, 1_000, 7_000, 20_000_000, 20_000_000, 5_000_000];
    for (text, ticks) in texts.into_iter().zip(ticks) {
        let rule = rule(&with_rule(&format!("max_delay: {text}")));
        assert_eq!(rule.quota.max_delay, Some(ticks), "{text}");
    }
}

#[test]
fn time_zones() {
    for (text, seconds) in [
        ("Z", 0),
        ("UTC", 0),
        ("'+00:00'", 0),
        ("+08:00", 28_800),
        ("\"-14:00\"", -50_400),
        ("+14:00", 50_400),
        ("-03:30", -12_600),
    ] {
        let text = format!(
            "{{limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1}}]}}], time_zone: {text}}}"
        );
        assert_eq!(policy(&text).limits[0].rules[0].quota.zone, Zone::ahead(seconds), "{text}");
    }
}

#[test]
fn time_zones_with_summer_time() {
    for (text, standard, summer) in [
        ("JST-9", 32_400, None),
        ("<+0330>-3:30", 12_600, None),
        ("UTC0", 0, None),
        ("ABC1:02:03", -3_723, None),
        ("CET-1CEST,M3.5.0,M10.5.0/3", 3_600, Some(7_200)),
        ("<-02>2<-01>+1,M3.5.0/-1,J300/26:30:15", -7_200, Some(-3_600)),
        ("IST-1GMT0,0/+167,365", 3_600, Some(0)),
    ] {
        let zone = kit::zones::zone(text);
        let ahead = zone.summer.map(|summer| summer.ahead);
        assert_eq!((zone.standard, ahead), (standard, summer), "{text}");
    }
}

#[test]
fn units() {
    for (text, unit, name) in [
        ("second", Unit::Second, "second"),
        ("60s", Unit::Minute, "minute"),
        ("60000ms", Unit::Minute, "minute"),
        ("60m", Unit::Hour, "hour"),
        ("24h", Unit::Day, "day"),
        ("1d", Unit::Day, "day"),
        ("7d", Unit::Week, "week"),
        ("168h", Unit::Week, "week"),
        ("week", Unit::Week, "week"),
        ("month", Unit::Month, "month"),
        ("1s", Unit::Second, "second"),
        ("7s", Unit::Other(7 * SECOND), "7s"),
        ("1500ms", Unit::Other(1_500_000), "1500ms"),
        ("90m", Unit::Other(5_400 * SECOND), "90m"),
        ("48h", Unit::Other(172_800 * SECOND), "2d"),
        ("31d", Unit::Other(31 * 86_400 * SECOND), "31d"),
    ] {
        let entry =
            format!("limits: [{{Url: /, rules: [{{actor: all, unit: {text}, rpu: 9, algo: W}}]}}]");
        let rule = &policy(&entry).limits[0].rules[0];
        assert_eq!(
            (rule.quota.unit, &*rule.name),
            (unit, &*format!("root-all-{name}-w")),
            "{text}"
        );
    }
}
