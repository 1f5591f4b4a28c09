use diana_config::parse;
use insta::assert_snapshot;

use super::super::problems;

#[test]
fn no_yaml() {
    assert_snapshot!(problems("limits: [\n"), @"1:9 not valid YAML: unclosed bracket '['");
    assert_snapshot!(problems("limits: []\n  keys: 5\n"), @"2:3 not valid YAML: while parsing a block mapping, did not find expected key");
    assert_snapshot!(problems("limits: *nowhere\n"), @"1:9 not valid YAML: while parsing node, found unknown anchor");
    assert_snapshot!(problems("limits: !rules []\n"), @"1:9 tags such as `!name` mean nothing here; leave them out");
    assert_snapshot!(problems("limits: !!int many\n"), @"1:9 found another value than its tag says; leave the tag out");
    assert_snapshot!(problems("? [a]\n: b\n"), @"1:3 found a list or a mapping as a key, allowed: text");
    assert_snapshot!(problems("limits: []\n\tkeys: 5\n"), @"2:2 not valid YAML: tabs disallowed within this context (block indentation); YAML indents with spaces, not tabs");
    assert_snapshot!(problems("limits: \"\\q\"\n"), @"1:9 not valid YAML: while parsing a quoted scalar, found unknown escape character");
    assert_snapshot!(problems("limits: []\n}\n"), @"2:1 not valid YAML: misplaced bracket");
    assert_snapshot!(problems("limits: \"\\ud800\""), @"1:9 not valid YAML: while parsing a quoted scalar, found high surrogate without following low surrogate");
    assert_snapshot!(problems("limits: \"\\u0000\""), @r"1:9 limits: found `\0`, allowed: a list of `{Url, rules}`; `[]` limits nothing");
    assert_snapshot!(problems("limits: 1e999"), @"1:9 limits: found `1e999`, allowed: a list of `{Url, rules}`; `[]` limits nothing");
    assert_snapshot!(problems("limits: \"a\n---\n"), @"1:9 not valid YAML: while scanning a quoted scalar, found unexpected document indicator");
    assert_snapshot!(problems("limits: [\n{\n\tUrl: /}]"), @"3:2 not valid YAML: tabs disallowed within this context (block indentation); YAML indents with spaces, not tabs");
}

#[test]
fn tags_say_what_stands_there() {
    let texts = [
        ("null", "~ Null"),
        ("bool", "True FALSE"),
        ("int", "-7 0x1f"),
        ("float", "1.5 .NaN -.inf +.Inf"),
    ];
    for (tag, _) in texts {
        for (kind, text) in
            texts.iter().flat_map(|(kind, texts)| texts.split(' ').map(move |text| (*kind, text)))
        {
            for text in [text.to_string(), format!("'{text}'")] {
                let said = problems(&format!("limits: !!{tag} {text}"));
                // A whole number is one of the others, too.
                let fits = tag == kind || (tag, kind) == ("float", "int");
                let refused = "1:9 found another value than its tag says; leave the tag out";
                assert_eq!(said == refused, !fits, "!!{tag} {text}: {said}");
            }
        }
    }
    assert_snapshot!(problems("limits: []\nnamespace: .inf"), @"2:12 namespace: found `.inf`, allowed: 1 … 64 of the characters A-Z, a-z, 0-9, `_` and `-`; put it in quotes to make it text");
    assert_snapshot!(problems("limits: []\nkeys: 007"), @"2:7 keys: found the text `007`, allowed: a whole number, 1 … 10000000; write 7, without quotes");
}

#[test]
fn characters() {
    assert_snapshot!(problems("limits: []\n# \u{7}\n"), @"2:3 found the character U+0007, which YAML allows only escaped");
    // A carriage return ends a line, with a line feed or alone.
    assert_snapshot!(problems("limits: []\r\n# a\r# \u{7}\n"), @"3:3 found the character U+0007, which YAML allows only escaped");
    let bytes = parse(b"limits: \xff").expect_err("not UTF-8").to_string();
    assert_snapshot!(bytes, @"found a byte that is not UTF-8 at offset 8");
}

#[test]
fn the_sample_of_the_seed_as_it_is_printed() {
    let text = "Url:/\nrules:\n - actor:device\n   unit:second\n   rpu:10\n   algo:TB\n   \
                scope:global- actor:all\n   unit:second\n   rpu:50\n   algo:W\n   scope:local\n";
    assert_snapshot!(problems(text), @"
    1:5 a space is missing after the colon: write `Url: /`
    2:6 not valid YAML: mapping values are not allowed in this context
    3:10 a space is missing after the colon: write `actor: device`
    4:9 a space is missing after the colon: write `unit: second`
    5:8 a space is missing after the colon: write `rpu: 10`
    6:9 a space is missing after the colon: write `algo: TB`
    7:10 a space is missing after the colon: write `scope: global- actor:all`
    8:9 a space is missing after the colon: write `unit: second`
    9:8 a space is missing after the colon: write `rpu: 50`
    10:9 a space is missing after the colon: write `algo: W`
    11:10 a space is missing after the colon: write `scope: local`
    ");
}

#[test]
fn a_rule_without_spaces() {
    let text = "Url: /\nrules:\n - actor:device\n   unit:second\n   rpu:10\n";
    assert_snapshot!(problems(text), @"3:4 rules[0]: found `actor:device unit:second rpu:10`, allowed: a mapping such as `{actor: device, unit: second, rpu: 10}`; a space is missing after the colon: write `actor: device`");
    let text = "Url: /\nrules:\n - actor: device\n   unit:second\n   rpu: 10\n";
    assert_snapshot!(problems(text), @"
    4:4 not valid YAML: simple key expected ':'
    4:9 a space is missing after the colon: write `unit: second`
    ");
    let text = "Url: /\nrules: [{actor:device, unit: second, rpu: 10}]\n";
    assert_snapshot!(problems(text), @"
    2:9 rules[0].actor: required, allowed: all, account, device, address, another name under `actors`, or a list of names
    2:10 rules[0].`actor:device`: unknown key, allowed: actor, unit, rpu, algo, scope, name, cost, absent, enforce, shadow, expose, except, response, ban, quota, hot, count, in_flight, near, plans, on_failure, burst, warm_up, max_delay, max_queue, slices; a space is missing after the colon: write `actor: device`
    ");
}

#[test]
fn spaces_missing_within_a_line() {
    assert_snapshot!(problems("limits: [{Url:/, rules:[{actor:all, unit: second, rpu:3}]}]"), @"
    1:15 a space is missing after the colon: write `Url: /`
    1:23 not valid YAML: ':' may not precede any of `[{` in flow mapping
    1:24 a space is missing after the colon: write `rules: [`
    1:32 a space is missing after the colon: write `actor: all`
    1:55 a space is missing after the colon: write `rpu: 3`
    ");
    assert_snapshot!(problems("limits: []\n<<: {}"), @"2:1 `<<`: unknown key, allowed: limits, actors, except, time_zone, response, shadow, namespace, keys, log, accepted, mark, redis, remote, explain, plans, admin; merge keys are not supported: write the keys out");
}
