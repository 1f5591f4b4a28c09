//! Rules for the fleet whose bans Redis counts.

use diana_core::policy::redis::OnFailure;
use diana_core::port::{Call, Clock};
use diana_core::time::SECOND;
use kit::model::wire::{Asking, commands};

use super::{Worker, ann, opinion};
use crate::fleet::redis::decides;

/// The receipts under which something comes back with a call.
pub fn receipts(call: &Call) -> Vec<(u64, u64)> {
    let words = commands(&call.body);
    let mut asking = Asking::read(&words[0]);
    let mut receipts = Vec::new();
    while let Some((rules, _)) = asking.ask() {
        for _ in 0..rules {
            let (_, asked) = asking.rule(0, 0);
            receipts.extend((asked.left > 0).then_some((asked.receipt, asked.left)));
        }
    }
    receipts
}

/// Redis answers a request in order: it charges the rule, and then the ban that is known there only has
/// the request refused. What was charged goes back.
#[test]
fn a_grant_goes_back_when_a_ban_is_learnt_with_it() {
    let mut worker = Worker::new(
        "actor: account, unit: day, rpu: 10, algo: W, scope: global, \
         ban: {after: 3, within: 10s, for: 1m}",
    );
    worker.request(&ann());
    let (mut asked, mut back) = (0, Vec::new());
    let minute = (60 * SECOND).cast_signed();
    let mut redis = |call: &Call, _| {
        back.extend(receipts(call));
        asked += 1;
        Some(match asked {
            1 => decides(&[&[0][..], &opinion(0, 9, 41), &opinion(0, minute, 0)].concat()),
            _ => decides(&[&[0][..], &opinion(0, 10, 0)].concat()),
        })
    };
    worker.steps(50, &mut redis);
    assert_eq!(worker.verdicts, [false], "banned");
    assert_eq!(back, [(41, 1)]);
}

/// Refusals are counted in Redis without anybody waiting, and what they lead to holds as soon as that is known.
#[test]
fn a_banned_caller_costs_no_question() {
    let mut worker = Worker::new(
        "actor: account, unit: day, rpu: 10, algo: W, scope: global, \
         ban: {after: 3, within: 10s, for: 1m}",
    );
    let [hour, minute] = [3600, 60].map(|seconds: u64| (seconds * SECOND).cast_signed());
    let mut asked = 0;
    let mut redis = |_: &Call, _| {
        asked += 1;
        Some(match asked {
            1 => decides(&[&[-1][..], &opinion(hour, 0, 0), &opinion(0, 0, 0)].concat()),
            2 => decides(&[&[0][..], &opinion(0, minute, 1)].concat()),
            _ => panic!("asked"),
        })
    };
    for _ in 0..3 {
        worker.request(&ann());
        worker.steps(5, &mut redis);
    }
    // The refusal itself is not remembered for so long.
    worker.clock.0.set(worker.clock.now().later(30 * SECOND));
    worker.request(&ann());
    worker.steps(5, &mut redis);
    assert_eq!(worker.verdicts, [false; 4]);
    assert_eq!(asked, 2);
}

/// Whoever is not refused is not banned, nor is somebody whom nobody can tell from others.
#[test]
fn bans_are_asked_about_who_may_be_banned() {
    let questions = |actor: &str, more: &str| {
        let rule = format!("actor: {actor}, unit: day, rpu: 9, algo: W, scope: global{more}");
        let text = format!(
            "actors: {{account: [{{header: x-account-id}}], nobody: [{{header: x-nobody}}]}}
redis: {{cluster: redis}}
limits: [{{Url: /, rules: [{{{rule}, ban: {{after: 3, within: 10s, for: 1m}}}}]}}]"
        );
        let mut worker = Worker::of(&text, OnFailure::Gateway);
        worker.request(&ann());
        let mut questions = 0;
        worker.step(&mut |call, _| {
            questions = Asking::read(&commands(&call.body)[0]).ask().unwrap().0;
            None
        });
        questions
    };
    assert_eq!(questions("account", ""), 2);
    assert_eq!(questions("account", ", shadow: true"), 1);
    assert_eq!(questions("nobody", ", absent: share"), 1);
}

/// Where an operator may lift bans through another gateway, one that is known here is asked about once a second.
#[test]
fn a_ban_that_may_be_lifted_elsewhere_is_asked_about() {
    let minute = (60 * SECOND).cast_signed();
    for (admin, asks) in [("", 1), ("admin: {path: /.diana, token_env: TOKEN}\n", 2)] {
        let rule = "actor: account, unit: day, rpu: 10, algo: W, scope: global, \
                    ban: {after: 3, within: 10s, for: 1m}";
        let text =
            format!("{admin}redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [{{{rule}}}]}}]");
        let mut worker = Worker::of(&text, OnFailure::Gateway);
        let mut asked = 0;
        for _ in 0..2 {
            worker.request(&ann());
            worker.steps(5, &mut |call, _| {
                let (words, mut numbers) = (commands(&call.body), Vec::new());
                let mut asking = Asking::read(&words[0]);
                while let Some((questions, _)) = asking.ask() {
                    (0..questions).for_each(|_| _ = asking.rule(0, 0));
                    // What only looks, or comes back, is no request.
                    asked += usize::from(questions == 2);
                    numbers.push(0);
                    numbers
                        .extend((questions == 2).then(|| opinion(0, 9, 41)).into_iter().flatten());
                    numbers.extend(opinion(0, minute, 0));
                }
                Some(decides(&numbers))
            });
            worker.clock.0.set(worker.clock.now().later(2 * SECOND));
        }
        assert_eq!((worker.verdicts, asked), (vec![false; 2], asks), "{admin}");
    }
}
