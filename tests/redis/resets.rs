//! Resets in Redis, for rules with plans and settlement.

use diana_algorithm::REGISTRY;
use diana_policy::Quota;
use diana_policy::settlement::Settlement;
use diana_policy::time::Now;
use diana_redis::protocol::{Charge, Effect, RuleReply};
use fastrand::Rng;
use kit::plans::random;
use kit::plans::resets::{Counter, Left, Tally, follow};
use kit::rules::{Rule, at, pipeline, today};
use kit::seed;
use kit::server::Server;

/// One caller of a rule with plans.
struct Redis<'s> {
    server: &'s Server,
    rule: Rule,
    quotas: &'s [Quota],
}

impl Redis<'_> {
    fn decide(&mut self, plan: usize, now: Now, charge: impl Fn(&Rule) -> Charge) -> RuleReply {
        self.rule.use_plan(self.quotas[plan]);
        let decided = self.server.decide(&pipeline(Some(now.mono), vec![charge(&self.rule)]));
        assert_eq!(decided.corrupt, 0);
        decided.asks[0].rules[0]
    }
}

impl Counter for Redis<'_> {
    fn charge(&mut self, plan: usize, cost: u64, now: Now) -> Option<u64> {
        let reply = self.decide(plan, now, |rule| rule.charge(1, cost, 0));
        reply.retry.is_none().then_some(reply.receipt)
    }

    fn settle(&mut self, plan: usize, settlement: &Settlement, now: Now) {
        let Settlement { receipt, used, .. } = *settlement;
        let effect = match settlement.debt() {
            0 => Effect::ReturnCost { receipt, term: 0, permits: settlement.back() },
            permits => Effect::ChargeDebt { receipt, permits },
        };
        self.decide(plan, now, |rule| Charge {
            effect,
            counted: Some(used),
            ..rule.charge(1, 0, 0)
        });
    }

    fn reset(&mut self, plan: usize, now: Now) -> Left {
        let ask = |effect| move |rule: &Rule| Charge { effect, ..rule.charge(1, 0, 0) };
        self.decide(plan, now, ask(Effect::Reset));
        let RuleReply { block: reserved, charged, receipt: lent, .. } =
            self.decide(plan, now, ask(Effect::ReadUsage));
        Left { used: charged - lent - reserved, reserved }
    }
}

#[test]
fn reset_keeps_reservations_of_every_plan() {
    let server = Server::start();
    let mut all = Tally::default();
    for seed in (0..40).map(|_| seed::next()) {
        for entry in REGISTRY.iter().filter(|entry| entry.codec.is_some()) {
            let mut rng = Rng::with_seed(seed);
            let (rule, _, quotas) = random(entry, &mut rng);
            if !(entry.capabilities)(&rule.quota).settles {
                continue;
            }
            println!("{} seed {seed}", entry.short);
            server.command(&["FLUSHALL"]);
            let rule = Rule { counts: true, ..Rule::new(entry.short, quotas[0]) };
            let mut redis = Redis { server: &server, rule, quotas: &quotas };
            let now = at(today(&mut rng));
            let tally = follow(entry, &quotas, &mut redis, now, 400, &mut rng);
            all.resets += tally.resets;
            all.refused += tally.refused;
            all.late += tally.late;
            all.debts += tally.debts;
        }
    }
    println!("{all:?}");
    assert!(all.resets > 300 && all.refused > 300 && all.late > 300 && all.debts > 300, "too tame");
}
