//! The meaning of settlement keys in rules.

use diana_policy::{Answered, NumberForm, Outcomes, ResponseSource, Settling};

use super::{rule, with_rule};

const LARGEST: u64 = 9;

fn settling(fields: &str) -> Settling {
    *rule(&with_rule(&format!("rpu: 10, algo: W, {fields}"))).settling.unwrap()
}

fn told(response: &str, more: &str) -> Settling {
    settling(&format!("cost: {{response: {{{response}}}, max: {LARGEST}{more}}}"))
}

fn of(place: ResponseSource, reserve: u64, missing: u64) -> Settling {
    let told = Some(Answered { place, most: LARGEST, missing });
    Settling { reserve, told, count: None, bans: false, is_place: false }
}

#[test]
fn what_nobody_said_is_as_much_as_it_may_be_or_as_was_reserved() {
    let header = || ResponseSource::Header("x-used".into());
    for (more, reserve, missing) in [
        ("", 1, LARGEST),
        (", reserve: 5", 5, LARGEST),
        (", reserve: 5, missing: max", 5, LARGEST),
        (", reserve: 5, missing: reserve", 5, 5),
        (", missing: reserve", 1, 1),
        (", reserve: 0, missing: 7", 0, 7),
    ] {
        assert_eq!(told("header: X-Used", more), of(header(), reserve, missing), "{more}");
    }
}

#[test]
fn metadata_are_numbers_or_texts_typed_or_not() {
    for (more, form) in [
        ("", NumberForm::Number),
        (", type: number", NumberForm::Number),
        (", typed: true", NumberForm::Typed),
        (", type: text", NumberForm::Text { typed: false }),
        (", type: text, typed: true", NumberForm::Text { typed: true }),
    ] {
        let path = vec!["envoy.ai".into(), "tokens".into()];
        let expected = of(ResponseSource::Metadata { path, form }, 1, LARGEST);
        assert_eq!(told(&format!("metadata: [envoy.ai, tokens]{more}"), ""), expected, "{more}");
    }
}

#[test]
fn outcomes_that_count_are_statuses_and_their_classes() {
    let classes: Vec<_> = (1..=5).map(|class| (class * 100, class * 100 + 99)).collect();
    for (text, statuses) in [
        ("[401]", vec![(401, 401)]),
        ("[100, 599]", vec![(100, 100), (599, 599)]),
        ("[1xx, 2xx, 3xx, 4xx, 5xx]", classes),
    ] {
        let count = Some(Outcomes { statuses, ..Outcomes::default() });
        let expected = Settling { reserve: 1, told: None, count, bans: false, is_place: false };
        assert_eq!(settling(&format!("count: {{status: {text}}}")), expected);
    }
}
