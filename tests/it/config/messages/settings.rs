use insta::assert_snapshot;

/// What is said about settings beside `limits`.
fn of(settings: &str) -> String {
    super::super::messages(&format!("limits: []\n{settings}"))
}

#[test]
fn time_zone() {
    assert_snapshot!(of("time_zone: Asia/Shanghai"), @r#"time_zone: found `Asia/Shanghai`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3"; names of time zones are not available in this release: write the rule, which is the last line of the zone's file in `zoneinfo`"#);
    assert_snapshot!(of("time_zone: '+8'"), @r#"time_zone: found `+8`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3""#);
    assert_snapshot!(of("time_zone: +8"), @r#"time_zone: found `8`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3""#);
    assert_snapshot!(of("time_zone: '+14:01'"), @r#"time_zone: found `+14:01`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3""#);
    for offset in ["+008:00", "+8:000", "++8:00", "+08:-1", "08:00"] {
        assert!(of(&format!("time_zone: '{offset}'")).contains(offset), "{offset} is none");
    }
    assert_snapshot!(of("time_zone: '+08:60'"), @r#"time_zone: found `+08:60`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3""#);
    assert_snapshot!(of("time_zone: '+0é:00'"), @r#"time_zone: found `+0é:00`, allowed: an offset such as "+08:00", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as "CET-1CEST,M3.5.0,M10.5.0/3""#);
}

#[test]
fn rules_of_time_zones() {
    for (rule, why) in [
        ("CE-1", "needs names of three letters or more, or in `<>`"),
        ("<+3>-3", "needs names of three letters or more, or in `<>`"),
        ("<+03-3", "needs names of three letters or more, or in `<>`"),
        ("CET-1,M3.5.0,M10.5.0", "needs names of three letters or more, or in `<>`"),
        (
            "CET-x",
            "needs an offset behind its name, such as `-1` east of Greenwich and `5:30` west of it",
        ),
        (
            "CET-1:60",
            "needs an offset behind its name, such as `-1` east of Greenwich and `5:30` west of it",
        ),
        ("ABC14:01", "is more than 14 hours away from UTC"),
        ("ABC-14DEF,M3.5.0,M10.5.0", "is more than 14 hours away from UTC"),
        (
            "UTC+8",
            "has the sign of an offset from UTC the other way round than is usual: write \"+08:00\" for one to the east, as POSIX has it `UTC-8`",
        ),
        ("CET-1CEST", "has to say when summer time begins and ends, such as `,M3.5.0,M10.5.0/3`"),
        (
            "CET-1CEST,M3.5.0",
            "has to say when summer time begins and ends, such as `,M3.5.0,M10.5.0/3`",
        ),
        (
            "CET-1CEST,M13.5.0,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,M3.0.0,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,M3.6.0,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,M3.5.7,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,M3.5,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,J0,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,J366,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,366,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,x,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        (
            "CET-1CEST,,M10.5.0",
            "has a day of change that is none of `Mmonth.week.day` (1 … 12, 1 … 5, 0 … 6), `Jday` (1 … 365) and a number (0 … 365)",
        ),
        ("CET-1CEST,M3.5.0/168,M10.5.0", "has a time of change beyond 167 hours"),
        ("CET-1CEST,M3.5.0/x,M10.5.0", "has a time of change beyond 167 hours"),
        ("ABC6DEF-7,M3.5.0,M10.5.0", "changes clocks by more than 12 hours"),
        ("ABC-1DEF,J10/2,J10/3", "begins and ends summer time at the same instant"),
        ("CET-1CEST,M3.5.0,M10.5.0/3 ", "goes on behind its end"),
        ("CET-1CEST,M3.5.0,M10.5.0,J1", "goes on behind its end"),
    ] {
        let allowed = "an offset such as \"+08:00\", -14:00 … +14:00, or Z, or UTC, or a POSIX rule such as \
                       \"CET-1CEST,M3.5.0,M10.5.0/3\"";
        let said = of(&format!("time_zone: '{rule}'"));
        let wanted = format!("time_zone: found `{rule}`, allowed: {allowed}; as a rule it {why}");
        assert_eq!(said, wanted);
    }
}

#[test]
fn small_settings() {
    assert_snapshot!(of("shadow: 'true'"), @"shadow: found the text `true`, allowed: true, without quotes");
    assert_snapshot!(of("namespace: my shop"), @"namespace: found `my shop`, allowed: 1 … 64 of the characters A-Z, a-z, 0-9, `_` and `-`");
    assert_snapshot!(of("namespace: 5"), @"namespace: found `5`, allowed: 1 … 64 of the characters A-Z, a-z, 0-9, `_` and `-`; put it in quotes to make it text");
    assert_snapshot!(of("keys: 0"), @"keys: found `0`, allowed: a whole number, 1 … 10000000");
    assert_snapshot!(of("keys: 10000001"), @"keys: found `10000001`, allowed: a whole number, 1 … 10000000");
    assert_snapshot!(of("log: all"), @"log: found `all`, allowed: none, refused");
    assert_snapshot!(of("log: true"), @"log: found `true`, allowed: none, refused");
    assert_snapshot!(of("accepted: true"), @"accepted: found `true`, allowed: a mapping such as `{headers: true, filter_state: true}`");
    assert_snapshot!(of("accepted: {header: true, filter_state: 1}"), @"
    accepted.header: unknown key, allowed: headers, filter_state; did you mean `headers`?
    accepted.filter_state: found `1`, allowed: true or false
    ");
    assert_snapshot!(of("except: {hosts: [a]}"), @"except.hosts: unknown key, allowed: addresses, paths, headers; `hosts` belongs in `match` or `unless`");
}

#[test]
fn keys() {
    assert_snapshot!(of("limit: []"), @"limit: unknown key, allowed: limits, actors, except, time_zone, response, shadow, namespace, keys, log, accepted, mark, redis, remote, explain, plans, admin; did you mean `limits`?");
    assert_snapshot!(of("rpu: 5"), @"rpu: unknown key, allowed: limits, actors, except, time_zone, response, shadow, namespace, keys, log, accepted, mark, redis, remote, explain, plans, admin; `rpu` belongs in a rule");
    assert_snapshot!(of("limits: []\nlimits: []"), @"
    limits: duplicate key
    limits: duplicate key
    ");
}

#[test]
fn rules_for_which_no_number_of_keys_would_do() {
    let rule = "{actor: account, unit: day, rpu: 9, algo: SW, slices: 60, scope: local},";
    let rules = rule.repeat(2000);
    let said = ["", ", keys: 1", ", keys: 100"].map(|keys| {
        super::super::messages(&format!("{{limits: [{{Url: /, rules: [{rules}]}}]{keys}}}"))
    });
    assert_snapshot!(said[0], @"limits: with `1` callers in each rule the tables of a worker could take 628 MiB, allowed: at most 512 MiB; write fewer rules or slices");
    assert_eq!([&said[1], &said[2]], [&said[0]; 2]);
}

#[test]
fn mark() {
    assert_snapshot!(of("mark: x limited"), @"mark: found `x limited`, allowed: the name of a header that nothing else uses, such as `x-hot-key`");
    assert_snapshot!(of("mark: Cookie"), @"mark: found `Cookie`, allowed: the name of a header that nothing else uses, such as `x-hot-key`");
    assert_snapshot!(of("mark: x-account-id"), @"mark: `x-account-id` is read or set elsewhere; allowed: a header of its own");
    assert_snapshot!(of("mark: X-RateLimit-Reset"), @"mark: `x-ratelimit-reset` is read or set elsewhere; allowed: a header of its own");
    let rule = "actor: all, unit: day, rpu: 9";
    for used in [
        format!("limits: [{{Url: /, match: {{headers: {{X-Mark: a}}}}, rules: [{{{rule}}}]}}]"),
        format!("limits: [{{Url: /, unless: [{{headers: {{x-mark: a}}}}], rules: [{{{rule}}}]}}]"),
        format!("limits: [{{Url: /, except: {{headers: {{x-mark: a}}}}, rules: [{{{rule}}}]}}]"),
        format!("limits: [{{Url: /, rules: [{{{rule}, except: {{headers: {{x-mark: a}}}}}}]}}]"),
        format!("limits: [{{Url: /, rules: [{{{rule}, response: {{headers: {{X-Mark: a}}}}}}]}}]"),
        format!("limits: [{{Url: /, rules: [{{{rule}, cost: {{header: X-Mark, max: 2}}}}]}}]"),
        format!("limits: [{{Url: /, rules: [{{{rule}, cost: {{response: {{header: X-Mark}}, max: 2}}}}]}}]"),
        "limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 9, hot: {over: 9, per: 9s, header: X-Mark}}]}]".into(),
        "limits: []\nactors: {a: [{header: X-Mark}]}".into(),
        "limits: []\nexcept: {headers: {x-mark: a}}".into(),
        "limits: []\nexplain: {header: X-Mark, token_env: A}".into(),
    ] {
        let said = super::super::messages(&format!("{used}\nmark: X-Mark"));
        assert_eq!(said, "mark: `x-mark` is read or set elsewhere; allowed: a header of its own", "{used}");
    }
    let own = super::super::policy("limits: []\nmark: X-Mark").own();
    let remote = |text: &str| diana_config::parse_remote(text.as_bytes(), &own);
    assert_eq!(remote("limits: []").unwrap().mark.as_deref(), Some("x-mark"));
    assert_snapshot!(remote("limits: []\nmark: a").unwrap_err().to_string(), @"2:1 mark: belongs to the gateway's own configuration, allowed in a remote one: limits, actors, except, time_zone, response, shadow, plans");
    assert_snapshot!(remote("limits: []\nexcept: {headers: {x-mark: a}}").unwrap_err().to_string(), @"1:9 limits: the header `x-mark` is the gateway's `mark`; use another");
}
