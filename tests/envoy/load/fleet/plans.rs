//! Callers of a fleet whose plans change: each plan gives exactly its own numbers, and what was used stays used, whichever
//! gateway the caller comes to.

use super::modes::{Modes, without_cause};
use super::{Fleet, SECOND, at_once};
use crate::harness::{Clock, NO_EXCUSE, alone, request, try_until_undisturbed};

/// What the gateways wait for Redis, in microseconds.
const TIMEOUT: u64 = 500_000;

/// A path whose rule shows whether the gateways count together.
const TOGETHER: &str = "/together";

const ALGORITHMS: [&str; 3] = ["W", "SW", "TB"];

/// What a caller has left that moves from free to gold and back, and what each plan allows.
const MOVES: [(&str, usize); 5] = [("free", 20), ("gold", 480), ("free", 0), ("gold", 0), ("", 0)];

/// A day, in which a bucket of 500 gets hardly anything back.
fn rules() -> String {
    let all = "{actor: all, unit: second, rpu: 1000000, scope: global}";
    let mut rules = format!(
        "plans: {{tiers: {{by: [{{header: x-plan}}], of: {{free: {{rpu: 20}}, gold: {{rpu: 500}}}}}}}}\n\
         limits:\n  - {{Url: {TOGETHER}, rules: [{all}]}}\n"
    );
    for algo in ALGORITHMS {
        rules += &format!(
            "  - {{Url: /{algo}, rules: [{{actor: account, unit: day, rpu: 5, algo: {algo}, \
             scope: global, plans: tiers}}]}}\n"
        );
    }
    rules
}

/// How many of so many requests are let through that come by two connections to each gateway at once.
fn admitted(fleet: &Fleet, bytes: &[u8], of: usize) -> usize {
    at_once(fleet.envoys.iter().flat_map(|envoy| [envoy.port; 2]), bytes, of)
}

#[test]
fn each_plan_gives_its_own_numbers_and_what_was_used_stays_used() {
    alone();
    try_until_undisturbed("plans of a fleet", || {
        let fleet = Fleet::start_at_redis(TIMEOUT, &rules());
        fleet.comes_together(TOGETHER);
        let (modes, clock) = (Modes::watch(&fleet.envoys), Clock::new());
        let day = clock.now() / (86_400 * SECOND);
        let (mut early, mut complaints) = (Vec::new(), Vec::new());
        for algo in ALGORITHMS {
            let began = clock.now();
            let mut used = 0;
            for (plan, left) in MOVES {
                let fields = [("x-account-id", "ada"), ("x-plan", plan)];
                let found =
                    admitted(&fleet, &request("GET", &format!("/{algo}"), &fields), left + 30);
                used += found;
                // A bucket of 500 a day gets one back every 173 s.
                let back = (clock.now() - began) / (170 * SECOND) + 1;
                let back = if algo == "TB" { back as usize } else { 0 };
                let most = if plan == "free" { 20 } else { 500 };
                let is_same_day = clock.now() / (86_400 * SECOND) == day;
                let is_too_much =
                    found > left + back || plan == "free" && left > 0 && used > most + back;
                assert!(
                    !is_too_much || !is_same_day,
                    "{NO_EXCUSE}: {algo}, {plan}: {found} of {left}"
                );
                if found < left && is_same_day {
                    early.push(format!("{algo}, {plan}: let through only {found} of {left}"));
                }
            }
        }
        fleet.comes_together(TOGETHER);
        let alone = modes.end();
        fleet.assert_unharmed();
        complaints.extend(without_cause(&alone, TIMEOUT));
        assert!(early.is_empty() || !alone.is_empty(), "{}", early.join("\n"));
        ((), complaints)
    });
}
