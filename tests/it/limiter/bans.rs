//! Bans in shadow, and of callers that share an overflow bucket.

use std::rc::Rc;

use diana_limiter::Verdict;
use diana_policy::time::SECOND;
use fastrand::Rng;
use kit::fake::FakeSharedData;

use super::{Gate, from, limiter};

/// One state is in use for a day. All other callers share overflow buckets.
#[test]
fn caller_of_an_overflow_bucket_is_not_banned() {
    let mut gate = Gate::new(
        "{keys: 1, limits: [{Url: /, rules: [{actor: account, unit: day, rpu: 1, scope: local,
           ban: {after: 1, within: 1h, for: 1h}}]}]}",
    );
    let callers: Vec<_> = (0..5000).map(|n| from(&n.to_string())).collect();
    let refused: Vec<_> = callers.iter().filter(|caller| !gate.admits(caller)).collect();
    assert!(refused.len() > 1000, "{}", refused.len());
    assert!(refused.iter().all(|caller| gate.refusal(caller).by.state().starts_with("refused ")));
}

/// A document with one rule that bans.
fn banning(rng: &mut Rng) -> String {
    let algo = ["W", "SW", "TB"][rng.usize(0..3)];
    let scope = ["local", "gateway"][rng.usize(0..2)];
    let (rpu, after) = (rng.u64(0..4), rng.u64(1..6));
    format!(
        "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: second, rpu: {rpu}, algo: {algo}, \
         scope: {scope}, ban: {{after: {after}, within: 5s, for: 2s, max: 9s}}}}]}}]"
    )
}

/// The state of the rule that refuses, or in shadow would refuse; the rest of the report does not
/// depend on the mode.
fn refused(gate: &mut Gate, caller: &str) -> Option<String> {
    let by = match gate.decide(&from(caller)) {
        Verdict::Refuse(refusal) => refusal.by,
        Verdict::Admit(_, Some(report)) => report.by?,
        Verdict::Admit(_, None) => return None,
        other => panic!("{other:?}"),
    };
    let state = by.state().replace("mode=shadow", "mode=enforced");
    Some(state.replace("shadow-banned ", "banned ").replace("shadow ", "refused "))
}

/// A refused request is not charged, in shadow or not. So a rule in shadow reports the
/// decisions of its enforced twin, bans included.
#[test]
fn rule_in_shadow_reports_the_bans_of_its_enforced_twin() {
    let mut bans = 0;
    for seed in (0..200).map(|_| kit::seed::next()) {
        let mut rng = Rng::with_seed(seed);
        let text = banning(&mut rng);
        println!("seed {seed}: {text}");
        let in_shadow = match rng.bool() {
            true => format!("{{shadow: true, {text}}}"),
            false => text.replace("name: r,", "name: r, shadow: true, enforce: 50,"),
        };
        let mut gates = [&format!("{{{text}}}"), &in_shadow].map(|text| Gate::new(text));
        for _ in 0..200 {
            let (pause, caller) = (rng.u64(0..600_000), ["ann", "bob"][rng.usize(0..2)]);
            gates.iter().for_each(|gate| gate.wait(pause));
            let [enforced, in_shadow] = gates.each_mut().map(|gate| refused(gate, caller));
            assert_eq!(enforced, in_shadow);
            bans += u64::from(enforced.is_some_and(|state| state.starts_with("banned")));
            if rng.u8(0..3) == 0 {
                gates.iter_mut().for_each(|gate| _ = gate.tick());
            }
        }
        let metrics = gates.each_mut().map(|gate| gate.metrics().join(" "));
        assert!(!metrics[1].contains("r.bans") && !metrics[0].contains("shadow"), "{metrics:?}");
    }
    assert!(bans > 1000, "{bans}");
}

/// Its callers never saw a refusal, and so had no reason to slow down.
#[test]
fn ban_begun_in_shadow_is_not_enforced_later() {
    let text = "{limits: [{Url: /, rules: [{name: r, actor: account, unit: second, rpu: 1, algo: W,
                 MODE ban: {after: 1, within: 1s, for: 1h}}]}]}";
    let data = Rc::<FakeSharedData>::default();
    let open = |mode: &str| Gate::of(limiter(&text.replace("MODE", mode), data.clone()));
    let mut gate = open("shadow: true,");
    (0..5).for_each(|_| _ = gate.admits(&from("ann")));
    gate.wait(SECOND);
    assert!(gate.tick() || refused(&mut gate, "ann").is_some_and(|it| it.starts_with("banned")));
    let mut enforced = open("");
    enforced.wait(SECOND);
    assert_eq!(refused(&mut enforced, "ann"), None);
}
