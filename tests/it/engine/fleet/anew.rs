//! What is judged anew when Redis has answered, and what has no say then.

use diana_core::policy::redis::OnFailure;
use diana_core::time::SECOND;

use super::super::field;
use super::{MILLISECOND, Worker, ann, opinion};
use crate::fleet::redis::decides;

/// Meanwhile another window may have begun.
#[test]
fn what_is_counted_here_is_judged_when_the_answer_comes() {
    let rules = "actor: account, unit: day, rpu: 10, algo: W, scope: global}, \
                 {actor: account, unit: second, rpu: 1, algo: W, scope: local";
    let mut worker = Worker::new(rules);
    worker.late = 4;
    worker.clock.0.set(worker.clock.0.get().later(SECOND - 2 * MILLISECOND));
    worker.request(&ann());
    worker.steps(9, &mut |_, _| Some(decides(&[&[0][..], &opinion(0, 9, 41)].concat())));
    worker.request(&ann());
    assert_eq!(worker.verdicts, [true, false]);
}

/// Redis tells of a ban with what it charged by all rules.
#[test]
fn who_is_banned_hears_of_no_other_rule() {
    let ban = "ban: {after: 3, within: 10s, for: 1m}";
    let rule = |name: &str, more: &str| {
        format!("{{name: {name}, actor: account, unit: day, rpu: 9, algo: W, scope: global{more}}}")
    };
    let rules = [rule("one", &format!(", {ban}")), rule("other", "")].join(", ");
    let text = format!("redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{rules}]}}]");
    let mut worker = Worker::of(&text, OnFailure::Gateway);
    worker.request(&ann());
    let minute = (60 * SECOND).cast_signed();
    let charged = [&[0][..], &opinion(0, 8, 41), &opinion(0, minute, 0), &opinion(0, 8, 42)];
    worker.step(&mut |_, _| Some(decides(&charged.concat())));
    assert_eq!(worker.verdicts, [false]);
    let told = field(&worker.refused, "ratelimit-policy").unwrap();
    assert!(told.contains("one") && !told.contains("other"), "{told}");
}
