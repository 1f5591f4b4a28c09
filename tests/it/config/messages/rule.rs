use insta::assert_snapshot;

/// What is said about a rule with these fields; the path of the rule is left out.
fn of(fields: &str) -> String {
    super::super::messages(&super::super::with_rule(fields)).replace("limits[0].rules[0]", "")
}

#[test]
fn actor() {
    assert_snapshot!(of("actor: devise"), @".actor: found `devise`, allowed: all, account, device, address, another name under `actors`, or a list of names; did you mean `device`?");
    assert_snapshot!(of("actor: 5"), @".actor: found `5`, allowed: all, account, device, address, another name under `actors`, or a list of names");
    assert_snapshot!(of("actor: []"), @".actor: found 0 names, allowed: 1 … 8");
    assert_snapshot!(of("actor: [account, all]"), @".actor[1]: `all` is no part of a key; leave it out");
    assert_snapshot!(of("actor: [account, actor]"), @".actor[1]: `actor` is in the list already");
    assert_snapshot!(of("actor: {header: x-id}"), @".actor: found a mapping, allowed: all, account, device, address, another name under `actors`, or a list of names");
    assert_snapshot!(of("actor:device, unit: second"), @"
    .actor: required, allowed: all, account, device, address, another name under `actors`, or a list of names
    .`actor:device`: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices; a space is missing after the colon: write `actor: device`
    ");
    assert_snapshot!(of("actor: all, absent: share"), @".absent: means nothing beside `actor: all`, which is never absent");
    assert_snapshot!(of("actor: all, enforce: 50"), @".enforce: chooses among callers, and `actor: all` is a single one; allowed: 0, 100");
}

#[test]
fn unit() {
    assert_snapshot!(of("unit: seconds"), @".unit: found `seconds`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`; did you mean `second`?");
    assert_snapshot!(of("unit: year"), @".unit: found `year`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 0s"), @".unit: found `0s`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 999ms"), @".unit: found `999ms`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 32d"), @".unit: found `32d`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 2678401s"), @".unit: found `2678401s`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 1.5h"), @".unit: found `1.5h`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: -1d"), @".unit: found `-1d`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 1w"), @".unit: found `1w`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 99999999999999999999d"), @".unit: found `99999999999999999999d`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: 18446744073709551615h"), @".unit: found `18446744073709551615h`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
    assert_snapshot!(of("unit: month, algo: TB, cost: 11"), @"
    .unit: `month` is as long as the calendar says, which `algo: TB` cannot count by; allowed: a duration such as `30d`, or with `month` algo W
    .cost: found `11`, which never fits; allowed: at most `rpu`, 10
    ");
    assert_snapshot!(of("unit: month, algo: SW"), @".unit: `month` is as long as the calendar says, which `algo: SW` cannot count by; allowed: a duration such as `30d`, or with `month` algo W");
    assert_snapshot!(of("unit: month, algo: LB, max_delay: 1x"), @"
    .unit: `month` is as long as the calendar says, which `algo: LB` cannot count by; allowed: a duration such as `30d`, or with `month` algo W
    .max_delay: found `1x`, allowed: a duration, 1ms … 20s: a whole number of ms, s, m, h or d, such as `1500ms`
    ");
    assert_snapshot!(of("unit: "), @".unit: found nothing, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`");
}

#[test]
fn the_nearest_name_is_meant() {
    for names in [["tenant-one", "tenant-two"], ["tenant-two", "tenant-one"]] {
        let actors = names.map(|name| format!("{name}: [{{query: q}}]")).join(", ");
        for (written, meant) in [("tenant-onx", "tenant-one"), ("tenant-twx", "tenant-two")] {
            let rule = super::super::with_rule(&format!("actor: {written}"));
            let said = super::super::messages(&format!("{rule}\nactors: {{{actors}}}"));
            assert!(said.ends_with(&format!("did you mean `{meant}`?")), "{said}");
        }
    }
    // Words of more than 40 characters are compared with nothing.
    for (length, is_compared) in [(39, true), (40, true), (41, false), (42, false)] {
        let said = of(&format!("unit: second{}", "x".repeat(length - "second".len())));
        assert_eq!(said.ends_with("did you mean `second`?"), is_compared, "{length}: {said}");
    }
}

#[test]
fn numbers() {
    assert_snapshot!(of("rpu: -1"), @".rpu: found `-1`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: 1000000001"), @".rpu: found `1000000001`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: 99999999999999999999999999999999999999999999999"), @".rpu: found `99999999999999999999999999999999999999999999999`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: 1.5"), @".rpu: found `1.5`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: .nan"), @".rpu: found `.nan`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: 1_000"), @".rpu: found the text `1_000`, allowed: a whole number, 0 … 1000000000; write 1000, without quotes");
    assert_snapshot!(of("rpu: '10'"), @".rpu: found the text `10`, allowed: a whole number, 0 … 1000000000; write 10, without quotes");
    assert_snapshot!(of("rpu: many"), @".rpu: found `many`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: [10]"), @".rpu: found a list, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("rpu: true"), @".rpu: found `true`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("cost: 0"), @".cost: found `0`, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("enforce: 101"), @".enforce: found `101`, allowed: a whole number, 0 … 100");
    assert_snapshot!(of("burst: 0"), @".burst: found `0`, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("algo: SW, slices: 61"), @".slices: found `61`, allowed: a whole number, 1 … 60");
}

#[test]
fn durations() {
    assert_snapshot!(of("max_delay: 5"), @".max_delay: found `5`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: 1.5s"), @".max_delay: found `1.5s`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: 1 s"), @".max_delay: found `1 s`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: 1S"), @".max_delay: found `1S`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: -1s"), @".max_delay: found `-1s`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: s"), @".max_delay: found `s`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: 20001ms"), @".max_delay: found `20001ms`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: 99999999999999999999h"), @".max_delay: found `99999999999999999999h`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: 9999999999999999h"), @".max_delay: found `9999999999999999h`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: [1s]"), @".max_delay: found a list, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("max_delay: "), @".max_delay: found nothing, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("algo: LB, max_delay: 0"), @".max_delay: found `0`, allowed: a duration, 1ms … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
}

#[test]
fn algorithm() {
    assert_snapshot!(of("algo: TBX"), @".algo: found `TBX`, allowed: TB (token bucket), W (window), SW (sliding window), LB (leaky bucket); did you mean `TB`?");
    assert_snapshot!(of("algo: tb"), @".algo: found `tb`, allowed: TB (token bucket), W (window), SW (sliding window), LB (leaky bucket); did you mean `TB`?");
    assert_snapshot!(of("algo: tokenbucket"), @".algo: found `tokenbucket`, allowed: TB (token bucket), W (window), SW (sliding window), LB (leaky bucket); did you mean `token bucket`?");
    assert_snapshot!(of("slices: 5"), @".slices: means nothing to `algo: TB`; it is a key of SW");
    assert_snapshot!(of("algo: W, burst: 5, max_queue: 1"), @"
    .burst: means nothing to `algo: W`; it is a key of TB
    .max_queue: means nothing to `algo: W`; it is a key of TB, LB
    ");
    assert_snapshot!(of("algo: TBX, burst: 0, slices: 5, max_queue: -1"), @"
    .algo: found `TBX`, allowed: TB (token bucket), W (window), SW (sliding window), LB (leaky bucket); did you mean `TB`?
    .burst: found `0`, allowed: a whole number, 1 … 1000000000
    .max_queue: found `-1`, allowed: a whole number, 0 … 1000000000
    ");
}

#[test]
fn combinations() {
    assert_snapshot!(of("rpu: 0, burst: 5"), @".burst: means nothing beside `rpu: 0`, which refuses everything");
    assert_snapshot!(of("rpu: 0, warm_up: 1s"), @".warm_up: means nothing beside `rpu: 0`, which refuses everything");
    assert_snapshot!(of("algo: LB, rpu: 0, warm_up: 1s"), @".warm_up: means nothing beside `rpu: 0`, which refuses everything");
    assert_snapshot!(of("burst: 5, warm_up: 1s"), @".burst: means nothing beside `warm_up`: after idleness one request passes at once");
    assert_snapshot!(of("warm_up: 0"), @".warm_up: found `0`, allowed: a duration, 1ms … 1h: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("warm_up: 61m"), @".warm_up: found `61m`, allowed: a duration, 1ms … 1h: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("algo: SW, warm_up: 1s"), @".warm_up: means nothing to `algo: SW`; it is a key of TB, LB");
    assert_snapshot!(of("cost: 11"), @".cost: found `11`, which never fits; allowed: at most `rpu`, 10");
    assert_snapshot!(of("cost: 6, burst: 5"), @".cost: found `6`, which never fits; allowed: at most `burst`, 5");
    assert_snapshot!(of("cost: 11, algo: W"), @".cost: found `11`, which never fits; allowed: at most `rpu`, 10");
    assert_snapshot!(of("algo: LB, unit: day"), @".rpu: found `10`: slots would be further apart than `max_delay`, 1s, so that nobody could wait for the next one; allowed: at least 86400 per day, or `algo: TB` with `burst: 1`, which refuses early requests");
    assert_snapshot!(of("algo: LB, rpu: 3, max_delay: 333ms"), @".rpu: found `3`: slots would be further apart than `max_delay`, 333ms, so that nobody could wait for the next one; allowed: at least 4 per second, a longer `max_delay`, or `algo: TB` with `burst: 1`, which refuses early requests");
    assert_snapshot!(of("max_queue: 5"), @".max_queue: means nothing without `max_delay`: an early request is refused, not queued");
    assert_snapshot!(of("max_queue: 5, max_delay: 0"), @".max_queue: means nothing without `max_delay`: an early request is refused, not queued");
}

#[test]
fn combinations_beside_what_is_wrong() {
    assert_snapshot!(of("algo: TB, burst: 4, warm_up: 1s, max_delay: 1x, max_queue: 4"), @"
    .burst: means nothing beside `warm_up`: after idleness one request passes at once
    .max_delay: found `1x`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`
    ");
    assert_snapshot!(of("unit: sec, algo: TB, max_queue: 5"), @"
    .unit: found `sec`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`; did you mean `second`?
    .max_queue: means nothing without `max_delay`: an early request is refused, not queued
    ");
    assert_snapshot!(of("algo: LB, cost: 11, max_delay: 20001ms"), @"
    .cost: found `11`, which never fits; allowed: at most `rpu`, 10
    .max_delay: found `20001ms`, allowed: a duration, 1ms … 20s: a whole number of ms, s, m, h or d, such as `1500ms`
    ");
    assert_snapshot!(of("algo: W, cost: 11, burst: 5"), @"
    .cost: found `11`, which never fits; allowed: at most `rpu`, 10
    .burst: means nothing to `algo: W`; it is a key of TB
    ");
    assert_snapshot!(of("rpu: x, cost: 6, burst: 5"), @"
    .rpu: found `x`, allowed: a whole number, 0 … 1000000000
    .cost: found `6`, which never fits; allowed: at most `burst`, 5
    ");
}

#[test]
fn what_is_wrong_conflicts_with_nothing() {
    assert_snapshot!(of("max_queue: 5, max_delay: 1x"), @".max_delay: found `1x`, allowed: a duration, 0 … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("cost: 11, burst: 0"), @".burst: found `0`, allowed: a whole number, 1 … 1000000000");
    assert_snapshot!(of("cost: 11, rpu: x"), @".rpu: found `x`, allowed: a whole number, 0 … 1000000000");
    assert_snapshot!(of("algo: LB, unit: day, max_delay: 1x"), @".max_delay: found `1x`, allowed: a duration, 1ms … 20s: a whole number of ms, s, m, h or d, such as `1500ms`");
    assert_snapshot!(of("algo: LB, unit: dya, rpu: 1, max_delay: 20ms"), @".unit: found `dya`, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`; did you mean `day`?");
}

#[test]
fn choices_and_switches() {
    assert_snapshot!(of("scope: globl"), @".scope: found `globl`, allowed: local, gateway, global; did you mean `global`?");
    assert_snapshot!(of("scope: global, warm_up: 1s"), @".scope: `warm_up` is not available across gateways; allowed: local, gateway");
    assert_snapshot!(of("absent: ignore"), @".absent: found `ignore`, allowed: skip, share, deny");
    assert_snapshot!(of("shadow: yes"), @".shadow: found `yes`, allowed: true or false");
    assert_snapshot!(of("expose: 1"), @".expose: found `1`, allowed: true or false");
}

#[test]
fn name() {
    assert_snapshot!(of("name: Share QQ"), @".name: found `Share QQ`, allowed: 1 … 64 of the characters a-z, 0-9, `_` and `-`");
    assert_snapshot!(of("name: 5"), @".name: found `5`, allowed: 1 … 64 of the characters a-z, 0-9, `_` and `-`; put it in quotes to make it text");
    assert_snapshot!(of("name: ''"), @".name: found ``, allowed: 1 … 64 of the characters a-z, 0-9, `_` and `-`");
    let long = format!("name: {}", "x".repeat(65));
    assert_snapshot!(of(&long), @".name: found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, allowed: 1 … 64 of the characters a-z, 0-9, `_` and `-`");
    let twice = "limits: [{Url: /, rules: [
        {name: one, actor: all, unit: day, rpu: 1}, {name: one, actor: all, unit: hour, rpu: 1}]}]";
    assert_snapshot!(super::super::messages(twice), @"limits[0].rules[1].name: duplicate name: an earlier rule is called `one`");
}

#[test]
fn keys() {
    assert_snapshot!(of("rate: 5"), @".rate: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices");
    assert_snapshot!(of("bursts: 5"), @".bursts: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices; did you mean `burst`?");
    assert_snapshot!(of("methods: [GET]"), @".methods: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices; `methods` belongs in `match` or `unless`");
    assert_snapshot!(of("Url: /"), @".Url: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices; `Url` belongs beside `rules`");
    assert_snapshot!(of("? 5 : 6"), @".5: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices");
    assert_snapshot!(of("rpu: 1, rpu: 2, rpu: 3"), @"
    .rpu: duplicate key
    .rpu: duplicate key
    ");
    let bare = "limits: [{Url: /, rules: [{}]}]";
    assert_snapshot!(super::super::messages(bare), @"
    limits[0].rules[0].actor: required, allowed: all, account, device, address, another name under `actors`, or a list of names
    limits[0].rules[0].rpu: required, allowed: a whole number, 0 … 1000000000
    limits[0].rules[0].unit: required, allowed: second, minute, hour, day, week, month, or a duration, 1s … 31d, such as `90m`
    ");
}

#[test]
fn bans() {
    assert_snapshot!(of("ban: 5"), @".ban: found `5`, allowed: a mapping such as `{after: 10, within: 1m, for: 5m, max: 1h}`");
    assert_snapshot!(of("ban: {}"), @"
    .ban.after: required, allowed: a whole number, 1 … 1000000
    .ban.for: required, allowed: a duration such as `5m`
    .ban.within: required, allowed: a duration such as `5m`
    ");
    assert_snapshot!(of("ban: {after: 0, within: 50ms, for: 721h, max: 0, halve_after: 1}"), @"
    .ban.after: found `0`, allowed: a whole number, 1 … 1000000
    .ban.within: found `50ms`, allowed: a duration, 100ms … 1d: a whole number of ms, s, m, h or d, such as `1500ms`
    .ban.for: found `721h`, allowed: a duration, 100ms … 30d: a whole number of ms, s, m, h or d, such as `1500ms`
    .ban.max: found `0`, allowed: a duration, 100ms … 30d: a whole number of ms, s, m, h or d, such as `1500ms`
    .ban.halve_after: found `1`, allowed: a duration, 100ms … 30d: a whole number of ms, s, m, h or d, such as `1500ms`
    ");
    assert_snapshot!(of("ban: {after: 3, within: 25h, for: 5m, until: 3}"), @"
    .ban.within: found `25h`, allowed: a duration, 100ms … 1d: a whole number of ms, s, m, h or d, such as `1500ms`
    .ban.until: unknown key, allowed: after, within, for, max, halve_after, on
    ");
    assert_snapshot!(of("ban: {after: 3, within: 1m, for: 5m, max: 4m}"), @".ban.max: shorter than `for`; allowed: at least as long");
    assert_snapshot!(of("ban: {after: 3, within: 1m, for: 5m, max: 5m, halve_after: 1h}"), @".ban.halve_after: means nothing without a `max` above `for`");
}

#[test]
fn near() {
    assert_snapshot!(of("unit: day, rpu: 9, near: 100"), @".near: found `100`, allowed: a whole number, 1 … 99");
    assert_snapshot!(of("unit: second, rpu: 9, algo: LB, near: 80"), @".near: means nothing where permits come one by one, as with `LB` and `warm_up`");
    assert_snapshot!(of("unit: second, rpu: 9, warm_up: 1s, near: 80"), @".near: means nothing where permits come one by one, as with `LB` and `warm_up`");
}

#[test]
fn on_failure() {
    assert_snapshot!(of("scope: global, on_failure: open"), @".on_failure: found `open`, allowed: gateway, allow, deny");
    assert_snapshot!(of("on_failure: deny"), @".on_failure: means nothing without `scope: global`: no other rule depends on Redis");
}
