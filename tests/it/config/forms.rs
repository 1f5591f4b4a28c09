//! The forms that a document may have.

use super::{policy, problems, rule, with_rule};
use diana_policy::{BodyPiece, Policy, Scope};

/// The properties that all forms must share.
fn gist(policy: &Policy) -> Vec<String> {
    let limits = policy.limits.iter();
    let rules = limits.flat_map(|limit| {
        let path = String::from_utf8_lossy(limit.urls[0].path()).into_owned();
        limit.rules.iter().map(move |rule| {
            format!("{path} {} {:?} {:?} {:?}", rule.name, rule.actor, rule.quota, rule.scope)
        })
    });
    rules.collect()
}

const SEED: &str = "\
Url: /
rules:
 - actor: device
   unit: second
   rpu: 10
   algo: TB
   scope: global
 - actor: all
   unit: second
   rpu: 50
   algo: W
   scope: local
";

#[test]
fn the_sample_of_the_seed() {
    let policy = policy(SEED);
    let [limit] = policy.limits.as_slice() else { panic!("one entry") };
    let [device, all] = limit.rules.as_slice() else { panic!("two rules") };
    assert_eq!(limit.urls[0].path(), b"/");
    assert_eq!(
        (device.actor.as_slice(), device.algo, device.scope),
        (&[1][..], "TB", Scope::Global)
    );
    assert_eq!((all.actor.as_slice(), all.algo, all.scope), (&[][..], "W", Scope::Local));
    assert_eq!((device.quota.rpu, all.quota.rpu), (10, 50));
    assert_eq!(device.name, "root-device-second-tb");
}

#[test]
fn a_block_a_list_several_documents_and_the_full_form_mean_the_same() {
    let second = SEED.replace("Url: /", "url: /sample");
    let indent = |text: &str| text.replace('\n', "\n  ").trim_end().to_string() + "\n";
    let list = format!("- {}- {}", indent(SEED), indent(&second));
    let documents = format!("---\n{SEED}---\n{second}");
    let mixed = format!("{SEED}---\n# nothing here\n---\n- {}", indent(&second));
    let full = format!("limits:\n{list}");
    let expected = gist(&policy(&full));
    assert_eq!(expected.len(), 4);
    for text in [list, documents, mixed] {
        assert_eq!(gist(&policy(&text)), expected, "{text}");
    }
    assert_eq!(gist(&policy(SEED)), expected[..2]);
}

#[test]
fn json_and_the_form_of_a_struct() {
    let json = r#"{"limits":[{"Url":"/","rules":[
        {"actor":"device","unit":"second","rpu":10,"algo":"TB","scope":"global"},
        {"actor":"all","unit":"second","rpu":50,"algo":"W","scope":"local"}]}]}"#;
    let as_struct = json.replace(":10,", ":10.0,").replace(":50,", ":5e1,");
    assert_eq!(gist(&policy(json)), gist(&policy(SEED)));
    assert_eq!(gist(&policy(&as_struct)), gist(&policy(SEED)));
    let tabs = json.replace("        ", "\t\t");
    assert_eq!(gist(&policy(&tabs)), gist(&policy(SEED)));
}

#[test]
fn lines_end_and_brackets_close_where_people_put_them() {
    let flow = "limits: [\n{Url: /, rules: [\n{actor: device, unit: second, rpu: 10, scope: global},\n\
                {actor: all, unit: second, rpu: 50, algo: W, scope: local}\n]\n}\n]\n";
    for text in [flow, &SEED.replace('\n', "\r\n"), &SEED.replace('\n', "\r"), SEED.trim_end()] {
        assert_eq!(gist(&policy(text)), gist(&policy(SEED)), "{text:?}");
    }
    for (end, body) in [("|\n  a\n  b", "a\nb"), (">-\n  a\n  b\n", "a b")] {
        let text = format!("{SEED}response:\n body: {end}");
        let read = &policy(&text).limits[0].rules[0].response.body;
        assert_eq!(*read, [BodyPiece::Text(body.into())], "{text}");
    }
}

#[test]
fn no_limits_at_all() {
    for text in ["limits: []", "{limits: [], keys: 5}", "[]", "---\n[]\n---\n[]\n"] {
        assert!(policy(text).limits.is_empty(), "{text}");
    }
    assert!(policy("Url: /\nrules: []").limits[0].rules.is_empty());
}

#[test]
fn aliases_and_a_byte_order_mark_are_fine() {
    let text = "\u{feff}limits:\n- Url: /a\n  rules: &r [{actor: all, unit: day, rpu: 1}]\n- Url: /b\n  rules: *r\n";
    let policy = policy(text);
    assert_eq!(policy.limits[1].rules[0].name, "b-all-day-tb");
}

#[test]
fn an_alias_means_the_latest_node_with_its_anchor() {
    let text = "
limits:
- {Url: /a, rules: &rules [&rule {&key actor: all, unit: day, rpu: 1}, *rule]}
- {Url: /b, rules: [&rule {*key : all, unit: day, rpu: 2}, *rule]}
- {Url: /c, rules: *rules}
";
    let policy = policy(text);
    let rules = policy.limits.iter().flat_map(|limit| &limit.rules);
    assert_eq!(rules.map(|rule| rule.quota.rpu).collect::<Vec<_>>(), [1, 1, 2, 2, 1, 1]);
}

#[test]
fn an_anchor_is_known_in_its_document_only() {
    let document = |rules: &str| format!("---\n- {{Url: /, rules: {rules}}}\n");
    let rules = |rpu| format!("&rules [{{actor: all, unit: day, rpu: {rpu}}}]");
    let again = document("*rules");
    let own = format!("{}- {{Url: /b, rules: *rules}}\n", document(&rules(2)));
    let policy = policy(&format!("{}{own}", document(&rules(1))));
    let rules_in_force = policy.limits.iter().flat_map(|limit| &limit.rules);
    assert_eq!(rules_in_force.map(|rule| rule.quota.rpu).collect::<Vec<_>>(), [1, 2, 2]);
    let problems = problems(&format!("{}{again}", document(&rules(1))));
    assert!(problems.contains("unknown anchor"), "{problems}");
}

#[test]
fn whole_numbers_may_be_written_in_many_ways() {
    let numbers = [
        ("1e3", 1000),
        ("+1.50E+2", 150),
        ("1500e-1", 150),
        (".7e1", 7),
        ("10.", 10),
        ("10.0", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("0b101", 5),
        ("0", 0),
        ("-0.0", 0),
        ("+7", 7),
        ("!!int 7", 7),
        ("!!float '7'", 7),
    ];
    for (text, value) in numbers {
        assert_eq!(rule(&with_rule(&format!("rpu: {text}"))).quota.rpu, value, "{text}");
    }
}

#[test]
fn two_signs_make_text() {
    for text in ["--5", "+-5", "-+5", "-.-5"] {
        let problems = problems(&with_rule(&format!("rpu: {text}")));
        assert!(problems.contains(&format!("found `{text}`")), "{problems}");
    }
}
