//! Bans on real Envoys: a caller that is refused too often is refused outright, by all workers.

use crate::harness::{Envoy, Gateway, Response, eventually};
use crate::metrics::settles;

/// A rule that refuses everything. Only refusals by its ban have a retry delay.
pub fn trap(scope: &str, ban: &str) -> String {
    format!(
        "limits: [{{Url: /trap, rules: [{{name: trap, actor: account, unit: hour, rpu: 0, \
         scope: {scope}, ban: {{{ban}}}}}]}}]"
    )
}

/// The response to a request on a new connection, which may reach any worker.
pub fn ask(envoy: &Envoy, account: &str) -> Response {
    let answer = envoy.get("/trap", &[("x-account-id", account)]);
    assert_eq!(answer.status, 503);
    answer
}

/// The remaining seconds of a ban.
pub fn left(answer: &Response) -> Option<u64> {
    answer.header("retry-after")?.parse().ok()
}

/// Waits until all workers enforce the ban.
fn all_ban(envoy: &Envoy, account: &str) {
    let answers = || (0..40).all(|_| left(&ask(envoy, account)).is_some());
    eventually("all workers to ban", || answers().then_some(()));
}

#[test]
fn refusals_on_many_connections_add_up_to_one_ban() {
    let ban = "after: 20, within: 1m, for: 10m";
    let envoy = Gateway::with(&trap("gateway", ban)).workers(2).start();
    for number in 0..20 {
        assert_eq!(left(&ask(&envoy, "eve")), None, "refusal {number} was one too many");
    }
    all_ban(&envoy, "eve");
    let seconds = left(&ask(&envoy, "eve")).unwrap();
    assert!((61..=600).contains(&seconds), "{seconds}");
    assert_eq!(left(&ask(&envoy, "ann")), None);
    assert_eq!(envoy.get("/elsewhere", &[("x-account-id", "eve")]).status, 200);
    settles(&envoy, "rule.trap.bans", 1);
    let lines = || envoy.access_log().into_iter().find(|line| line.contains("banned"));
    let line = eventually("a banned request in the access log", lines);
    let state = "503 diana_refused banned rule=trap scope=gateway mode=enforced wait=";
    assert!(line.starts_with(state), "{line}");
    eventually("40 banned requests to be counted", || {
        envoy.metric("rule.trap.banned").filter(|banned| *banned >= 40)
    });
    let refused = envoy.metric("rule.trap.refused");
    assert!(refused >= Some(20), "{refused:?} refused");
    // Other changes of the rule keep the ban. Changing the ban lifts it.
    let more = trap("gateway", ban).replace("hour", "hour, expose: false");
    envoy.update(&Gateway::with(&more).workers(2));
    eventually("the new rules", || {
        ask(&envoy, "bob").header("ratelimit-policy").is_none().then_some(())
    });
    assert!(left(&ask(&envoy, "eve")).is_some(), "it was lifted by something else");
    envoy.update(&Gateway::with(&trap("gateway", "after: 20, within: 1m, for: 11m")).workers(2));
    let lifted = || left(&ask(&envoy, "eve")).is_none().then_some(());
    eventually("the ban to be lifted", lifted);
    envoy.assert_unharmed();
}
