//! Responses to refused requests.

use super::super::policy;
use diana_policy::time::SECOND;
use diana_policy::{BodyPiece, LimitFields};

#[test]
fn responses_are_merged_field_by_field() {
    let text = r#"
limits:
- Url: /
  response: {status: 429, headers: {X-A: b}}
  rules:
  - {actor: all, unit: day, rpu: 1}
  - {actor: all, unit: day, rpu: 1, response: {body: "a\nb", status: 599}}
- {Url: /b, rules: [{actor: all, unit: day, rpu: 1}]}
response: {body: '', content_type: "text/html; charset=utf-8", headers: {x-top: t}}"#;
    let policy = policy(text);
    let responses: Vec<_> = policy
        .limits
        .iter()
        .flat_map(|limit| &limit.rules)
        .map(|rule| {
            let response = &rule.response;
            (response.status, response.body.as_slice(), response.headers[0].0.as_str())
        })
        .collect();
    let text = [BodyPiece::Text("a\nb".into())];
    assert_eq!(responses, [(429, &[][..], "x-a"), (599, &text, "x-a"), (503, &[], "x-top")]);
    let types =
        policy.limits.iter().flat_map(|limit| &limit.rules).map(|rule| &rule.response.content_type);
    assert!(types.into_iter().all(|name| name == "text/html; charset=utf-8"));
}

#[test]
fn what_answers_tell() {
    let response = |response: &str| {
        let text = format!("{{limits: [{{Url: /, rules: [{{actor: all, unit: day, rpu: 1, response: {response}}}]}}],
            response: {{problem: true, jitter: 1500ms, fields: x-ratelimit, body: '{{id}}'}}}}");
        policy(&text).limits[0].rules[0].response.clone()
    };
    let outer = response("{}");
    assert!(outer.is_problem);
    assert_eq!((outer.jitter, outer.fields), (3 * SECOND / 2, LimitFields::XRateLimit));
    assert_eq!(outer.body, [BodyPiece::Id]);
    let inner = response(
        "{problem: false, jitter: 0, fields: ietf, body: '{a{rule}: {retry_after}{limit}{remaining}}'}",
    );
    assert!(!inner.is_problem);
    assert_eq!((inner.jitter, inner.fields), (0, LimitFields::Ietf));
    let text = |text: &str| BodyPiece::Text(text.into());
    let pieces = [
        text("{a"),
        BodyPiece::Rule,
        text(": "),
        BodyPiece::RetryAfter,
        BodyPiece::Limit,
        BodyPiece::Remaining,
        text("}"),
    ];
    assert_eq!(inner.body, pieces);
}
