//! Resets in a storm, while their caller goes on.

use std::time::Duration;

use crate::harness::{Envoy, Gateway, Hit, OpenLoad, eventually, request};
use crate::operator::{TOKEN, operate};

const LASTING: Duration = Duration::from_secs(2);
/// The limits of rules, and how many resets a second come for each: so many that requests come for all that they lift, or
/// so few that workers lend meanwhile.
const STORMS: [(usize, u32); 2] = [(3, 200), (40, 5)];

/// A rule of which the caller has the plan, and the limit of that.
const PLAN: (&str, usize) = ("plan", 40);

/// The rules that it is tried on: windows of a day, so that nothing comes back by itself.
pub fn rules(scope: &str) -> String {
    let mut rules = format!(
        "admin: {{path: /.diana, token_env: DIANA_TOKEN}}\nlimits:\n\
         - {{Url: /x, rules: [{{name: x, actor: all, unit: second, rpu: 1000000, algo: W, \
             scope: {scope}}}]}}\n"
    );
    for (name, limit, algo) in each() {
        rules += &format!(
            "- {{Url: /{name}, rules: [{{name: {name}, actor: account, unit: day, rpu: {limit}, \
             algo: {algo}, scope: {scope}}}]}}\n"
        );
    }
    let (name, limit) = PLAN;
    // An operator is told by the rule's own numbers, and lifts all the same.
    rules
        + &format!(
            "- {{Url: /{name}, rules: [{{name: {name}, actor: account, unit: day, rpu: 1, algo: W, \
         scope: {scope}, plans: {{of: {{ada: {{rpu: {limit}}}}}}}}}]}}\n"
        )
}

fn each() -> impl Iterator<Item = (String, usize, &'static str)> {
    let of = |algo: &'static str| {
        STORMS.map(|(limit, _)| (format!("{algo}-{limit}").to_lowercase(), limit, algo))
    };
    ["W", "SW", "TB"].into_iter().flat_map(of)
}

/// Nobody gets more than the limit and once more for each reset, and after the last one exactly the limit, whichever of the
/// gateways it comes to.
#[track_caller]
pub fn assert_survived(envoys: &[Envoy]) {
    let gateways: Vec<_> = envoys.iter().map(|envoy| (envoy.port, 1)).collect();
    let all = each().map(|(rule, limit, _)| (rule, limit));
    for (rule, limit) in all.chain([(PLAN.0.to_owned(), PLAN.1)]) {
        let (_, rate) = STORMS.into_iter().find(|(of, _)| *of == limit).unwrap();
        let caller = format!("?rule={rule}&actor.account=ada");
        let bearer = format!("Bearer {TOKEN}");
        let reset = format!("/.diana/reset{caller}");
        let resets = OpenLoad {
            gateways: &gateways,
            rate,
            lasting: LASTING,
            patience: 13,
            requests: &[request("POST", &reset, &[("authorization", &bearer)])],
        };
        let load = OpenLoad {
            rate: 1_000,
            lasting: 4 * LASTING,
            patience: 31,
            requests: &[request("GET", &format!("/{rule}"), &[("x-account-id", "ada")])],
            ..resets
        };
        let (hits, resets) = load.fire_during(|| resets.fire());
        let count =
            |hits: &[Hit], status| hits.iter().filter(|hit| hit.shot.status == status).count();
        let (admitted, done) = (count(&hits, 200), count(&resets, 200));
        let told = format!("{rule}: {admitted} of {} by {done} of {}", hits.len(), resets.len());
        println!("{told}");
        assert_eq!(admitted + count(&hits, 429), hits.len(), "{told}");
        // Of those that came at the same time some may give up.
        assert_eq!(done + count(&resets, 503), resets.len(), "{told}");
        assert!(done > resets.len() / 2, "{told}");
        assert!((limit + 1..=limit * (resets.len() + 1)).contains(&admitted), "{told}");
        // What is lent then is charged after a reset, too.
        eventually("all that was lent to come back", || {
            let (_, seen) = operate(&envoys[0], "GET", &format!("/usage{caller}"));
            (seen["callers"][0]["lent"] == 0).then_some(())
        });
        let (status, seen) = operate(&envoys[0], "POST", &format!("/reset{caller}"));
        assert_eq!((status, &seen["callers"][0]["used"]), (200, &0.into()), "{seen}");
        // Refusals that are remembered are so for a second.
        std::thread::sleep(Duration::from_secs(1));
        let of = |number: usize| {
            let headers = [("x-account-id", "ada")];
            envoys[number % envoys.len()].get(&format!("/{rule}"), &headers).status
        };
        let after = (0..3 * limit).filter(|number| of(*number) == 200).count();
        assert_eq!(after, limit, "{rule}: after the last");
    }
}

#[test]
fn in_a_storm_of_resets_nobody_gets_more_than_the_limit_after_each() {
    let gateway = Gateway::with(&format!("response: {{status: 429}}\n{}", rules("gateway")));
    let envoy = gateway.variable("DIANA_TOKEN", TOKEN).without_access_log().workers(4).start();
    let envoys = [envoy];
    assert_survived(&envoys);
    envoys[0].assert_unharmed();
}
