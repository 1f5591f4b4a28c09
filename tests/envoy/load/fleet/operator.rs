//! What is lifted through one gateway is lifted in all of them.

use std::time::{Duration, Instant};

use super::{Fleet, GATEWAYS, gateway};
use crate::load::reset_storm as storm;
use crate::operator::{TOKEN, operate};

/// Day windows, so that nothing comes back by itself.
const LIMITS: &str = "
admin: {path: /.diana, token_env: DIANA_TOKEN}
limits:
- {Url: /x, rules: [{name: x, actor: all, unit: second, rpu: 1000000, algo: W, scope: global}]}
- {Url: /w, rules: [{name: w, actor: account, unit: day, rpu: 30, algo: W, scope: global}]}
- {Url: /s, rules: [{name: s, actor: account, unit: day, rpu: 30, algo: SW, scope: global}]}
- {Url: /t, rules: [{name: t, actor: account, unit: day, rpu: 30, algo: TB, scope: global}]}
- {Url: /b, rules: [{name: b, actor: account, unit: day, rpu: 1, algo: W, scope: global,
                     ban: {after: 3, within: 1m, for: 1h}}]}";

/// How many of so many requests, one gateway after the other, are let through.
fn admitted(fleet: &Fleet, path: &str, requests: usize) -> usize {
    let of = |number: usize| {
        fleet.envoys[number % GATEWAYS].get(path, &[("x-account-id", "ada")]).status
    };
    (0..requests).filter(|number| of(*number) == 200).count()
}

#[test]
fn a_reset_and_an_unban_through_one_gateway_hold_in_all_within_a_second() {
    let fleet =
        Fleet::start_with(|port, _| gateway(500_000, LIMITS, port).variable("DIANA_TOKEN", TOKEN));
    fleet.comes_together("/x");
    for rule in ["w", "s", "t"] {
        let path = format!("/{rule}");
        for number in 0..3 {
            assert_eq!(admitted(&fleet, &path, 60), 30, "{rule}");
            let rest = format!("{{}}?rule={rule}&actor.account=ada");
            let usage = |number: usize| {
                operate(&fleet.envoys[number], "GET", &rest.replace("{}", "/usage"))
            };
            let (status, seen) = usage(0);
            assert_eq!((status, &seen["callers"][0]["remaining"]), (200, &0.into()), "{seen}");
            let (status, seen) =
                operate(&fleet.envoys[number], "POST", &rest.replace("{}", "/reset"));
            let since = Instant::now();
            assert_eq!((status, &seen["callers"][0]["used"]), (200, &0.into()), "{seen}");
            // Refusals that are remembered are so for a second.
            std::thread::sleep(Duration::from_secs(1).saturating_sub(since.elapsed()));
        }
        assert_eq!(admitted(&fleet, &path, 30), 30, "{rule}: all of it at once");
        assert_eq!(admitted(&fleet, &path, 12), 0, "{rule}");
    }
    admitted(&fleet, "/b", 60);
    let of_b = "?rule=b&actor.account=ada";
    let (_, seen) = operate(&fleet.envoys[0], "GET", &format!("/usage{of_b}"));
    assert!(seen["callers"][0]["banned_until"].is_number(), "{seen}");
    operate(&fleet.envoys[1], "POST", &format!("/reset{of_b}"));
    assert_eq!(admitted(&fleet, "/b", 30), 0, "still banned");
    let (status, seen) = operate(&fleet.envoys[2], "POST", &format!("/unban{of_b}"));
    assert_eq!((status, &seen["callers"][0]["banned_until"]), (200, &().into()), "{seen}");
    std::thread::sleep(Duration::from_secs(1));
    let answer = fleet.envoys[0].get("/b", &[("x-account-id", "ada")]);
    let told = || operate(&fleet.envoys[0], "GET", &format!("/usage{of_b}"));
    assert_eq!(answer.status, 200, "{answer:?}, {:?}", told());
    operate(&fleet.envoys[0], "POST", &format!("/reset{of_b}"));
    std::thread::sleep(Duration::from_secs(1));
    let (status, _) = operate(&fleet.envoys[0], "POST", &format!("/ban{of_b}&for=1h"));
    assert_eq!(status, 200);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(admitted(&fleet, "/b", 12), 0, "banned by an operator, everywhere");
    fleet.assert_unharmed();
}

#[test]
fn in_a_storm_of_resets_through_all_gateways_nobody_gets_more_than_the_limit_after_each() {
    let rules = storm::rules("global");
    let fleet =
        Fleet::start_with(|port, _| gateway(500_000, &rules, port).variable("DIANA_TOKEN", TOKEN));
    fleet.comes_together("/x");
    storm::assert_survived(&fleet.envoys);
    fleet.assert_unharmed();
}
