//! Plans with bans and daily quotas: both use the quota of a request's plan.

use diana_limiter::{CallerQuery, Inquired, Order};
use fastrand::Rng;
use kit::seed;

use super::{Gate, SECOND, with_claim};

/// An account's usage, its counted refusals, and whether it is banned.
#[derive(Clone, Copy, Default)]
struct Account {
    used: u64,
    refused: u64,
    is_banned: bool,
}

/// Refusals that lead to a ban.
const AFTER: u64 = 4;

impl Account {
    /// Returns true if a request under a plan with this limit is admitted. A plan without a limit
    /// always admits.
    fn asks(&mut self, limit: Option<u64>, bans: bool) -> bool {
        let Some(limit) = limit else { return true };
        if self.is_banned {
            return false;
        }
        let fits = self.used < limit;
        self.used += u64::from(fits);
        self.refused += u64::from(!fits);
        self.is_banned = bans && self.refused >= AFTER;
        fits
    }
}

/// Some names are not plans.
const PLANS: [(&str, Option<u64>); 5] =
    [("gold", Some(9)), ("silver", Some(2)), ("staff", None), ("", Some(4)), ("tin", Some(4))];

#[test]
fn bans_and_daily_quotas_use_the_plan() {
    let (mut admitted, mut refused, mut banned) = (0, 0, 0);
    let ban = format!(", ban: {{after: {AFTER}, within: 1h, for: 1h}}");
    for seed in (0..20).map(|_| seed::next()) {
        for (counts, bans) in
            ["scope: local", "scope: gateway", "scope: local, quota: {accounts: 1000}"]
                .into_iter()
                .flat_map(|counts| [false, true].map(|bans| (counts, bans)))
        {
            let mut rng = Rng::with_seed(seed);
            println!("{counts}, bans: {bans}, seed {seed}");
            let mut gate = Gate::new(&format!(
                "limits: [{{Url: /, rules: [{{name: r, actor: account, unit: day, rpu: 4, algo: W, {counts}{}, \
                 plans: {{by: [{{jwt_claim: plan, payload: p}}], \
                 of: {{gold: {{rpu: 9}}, silver: {{rpu: 2}}, staff: unlimited}}}}}}]}}]",
                if bans { &ban } else { "" }
            ));
            let mut accounts = [Account::default(); 6];
            for _ in 0..120 {
                // A ban of a gateway begins up to 150 ms after the refusals.
                gate.wait(rng.u64(SECOND / 5..SECOND));
                gate.limiter.maintain(gate.clock.0.get());
                let (number, plan) = (rng.usize(0..accounts.len()), rng.usize(0..PLANS.len()));
                let (name, limit) = PLANS[plan];
                let is_admitted = gate.admits(&with_claim(&format!("account-{number}"), name));
                let expected = accounts[number].asks(limit, bans);
                assert_eq!(is_admitted, expected, "account {number} by `{name}`");
                admitted += u64::from(is_admitted);
                refused += u64::from(!is_admitted);
            }
            banned += accounts.iter().filter(|account| account.is_banned).count();
        }
    }
    println!("{admitted} admitted, {refused} refused, {banned} banned");
    assert!(admitted > 3000 && refused > 1000 && banned > 100, "too tame");
}

/// Without a request the plan of a caller is unknown. An operator then gets the rule's own quota,
/// the maximum that trusted data may select.
#[test]
fn operator_gets_usage_by_the_rules_own_quota() {
    for (limit, own) in [
        (
            "rpu: 4, plans: {by: [{jwt_claim: plan, payload: p}], of: {gold: {rpu: 9}, silver: {rpu: 2}}}",
            4,
        ),
        ("rpu: {jwt_claim: plan, payload: p, default: 3, max: 50}", 50),
    ] {
        for claim in ["gold", "silver", "tin"] {
            let mut gate = Gate::new(&format!(
                "limits: [{{Url: /, rules: [{{actor: account, unit: day, algo: W, scope: gateway, {limit}}}]}}]"
            ));
            assert!(gate.admits(&with_claim("ann", claim)));
            let (now, callers) = (gate.clock.0.get(), CallerQuery::Values(vec!["ann".into()]));
            let done = gate.limiter.inquire(0, callers, Order::Look, 0, now);
            let Ok(Inquired::Done(seen)) = done else { panic!("{done:?}") };
            assert_eq!(seen[0].usage.remaining, own - 1, "{limit} {claim}");
        }
    }
}
