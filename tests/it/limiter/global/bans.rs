//! `global` rules with bans that Redis counts.

use diana_policy::port::Call;
use diana_policy::redis::OnFailure;
use diana_policy::time::SECOND;
use kit::model::wire::{Asking, commands};

use super::{Worker, opinion, request};
use crate::support::redis::decides;

/// The receipts of returns in a call.
pub fn receipts(call: &Call) -> Vec<(u64, u64)> {
    let words = commands(&call.body);
    let mut asking = Asking::read(&words[0]);
    let mut receipts = Vec::new();
    while let Some((rules, _)) = asking.ask() {
        for _ in 0..rules {
            let (_, asked, _) = asking.rule(0, 0);
            receipts.extend((asked.left > 0).then_some((asked.receipt, asked.left)));
        }
    }
    receipts
}

/// Redis processes a request in order: it charges the rule, and then reports the ban that refuses
/// the request. The charge is returned.
#[test]
fn charge_is_returned_if_the_reply_has_a_ban() {
    let mut worker = Worker::new(
        "actor: account, unit: day, rpu: 10, algo: W, scope: global, \
         ban: {after: 3, within: 10s, for: 1m}",
    );
    worker.request(&request());
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

/// Callers that cannot be refused, or that share a state, are not banned.
#[test]
fn bans_are_queried_only_for_bannable_callers() {
    let questions = |actor: &str, more: &str| {
        let rule = format!("actor: {actor}, unit: day, rpu: 9, algo: W, scope: global{more}");
        let text = format!(
            "actors: {{account: [{{header: x-account-id}}], nobody: [{{header: x-nobody}}]}}
redis: {{cluster: redis}}
limits: [{{Url: /, rules: [{{{rule}, ban: {{after: 3, within: 10s, for: 1m}}}}]}}]"
        );
        let mut worker = Worker::of(&text, OnFailure::Gateway);
        worker.request(&request());
        let mut questions = 0;
        worker.step(&mut |call, _| {
            questions = Asking::read(&commands(&call.body)[0]).ask().unwrap().0;
            None
        });
        questions
    };
    assert_eq!(questions("account", ""), 2);
    // In shadow the ban is reported.
    assert_eq!(questions("account", ", shadow: true"), 2);
    assert_eq!(questions("account", ", enforce: 0"), 1);
    assert_eq!(questions("nobody", ", absent: share"), 1);
}
