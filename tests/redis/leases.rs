//! Several gateways take leases, spend them at random times, return the rest, or die. The admitted
//! requests keep the bound of the rule.

use diana_policy::time::Now;
use diana_redis::protocol::{Charge, Effect, RuleReply};
use fastrand::Rng;
use kit::rules::counted_in_redis;

use kit::laws::stream;
use kit::model::LEASE;
use kit::oracle::{Admission, Promise, oracle};
use kit::rules::{Rule, at, block, left, pipeline, today};
use kit::seed;
use kit::server::Server;

/// The lease of a gateway.
#[derive(Default)]
struct Lease {
    effect: Effect,
    /// The interval for spending it.
    from: u64,
    until: u64,
}

const ROUNDS: u64 = 120;

#[test]
fn admissions_by_lease_keep_the_bound() {
    let server = Server::start();
    let start = seed::next();
    let mut spent = 0;
    for number in 0..ROUNDS {
        let seed = start.wrapping_add(number);
        let mut rng = Rng::with_seed(seed);
        let entry = counted_in_redis(number as usize);
        let rule = Rule::random(entry, &mut rng);
        println!("{} seed {seed}: {:?}", entry.short, rule.case.quota);
        server.command(&["FLUSHALL"]);
        spent += play(&server, &rule, number, &mut rng);
    }
    println!("{spent} permits of leases were spent");
    assert!(spent > 1000, "too tame");
}

fn play(server: &Server, rule: &Rule, caller: u64, rng: &mut Rng) -> u64 {
    let mut leases: [Lease; 3] = Default::default();
    let mut past: Vec<Admission> = Vec::new();
    let mut spent = 0;
    let (short, quota) = (rule.entry.short, &rule.case.quota);
    let oracle = oracle(short);
    let mut spend = |now: Now, wait: u64, cost: u64| {
        // For held requests the bound of departures applies, see below.
        let promise = oracle.promise(quota, &past, now, cost);
        let fits = matches!(promise, Promise::Admitted { wait: 0 } | Promise::Either);
        assert!(fits || oracle.max_delay(quota) > 0, "{short} let too much through at {now:?}");
        past.push(Admission { at: now, leaves: now.mono + wait, cost });
    };
    for (now, cost) in stream::from(at(today(rng)), &rule.case, rng, 120) {
        for lease in &mut leases {
            let permits = rng.u64(0..=left(&mut lease.effect).copied().unwrap_or(0));
            if permits > 0 && (lease.from..lease.until).contains(&now.mono) && rng.bool() {
                spend(now, 0, permits);
                spent += permits;
                left(&mut lease.effect).into_iter().for_each(|left| *left -= permits);
            }
        }
        if rng.u8(0..4) == 0 {
            continue;
        }
        let lease = &mut leases[rng.usize(0..3)];
        // A dead gateway returns nothing.
        let gives_back = rng.u8(0..5) > 0;
        let effect = std::mem::take(&mut lease.effect);
        let charge = Charge {
            effect: if gives_back && block(effect) > 0 { effect } else { Effect::default() },
            unit_cost: 1,
            ..rule.charge(caller, if rng.u8(0..3) == 0 { 0 } else { cost }, 1 << rng.u8(0..20))
        };
        let (cost, outcome) =
            (charge.cost, &server.decide(&pipeline(Some(now.mono), vec![charge])).asks[0]);
        let (Some(wait), true) = (outcome.wait, rng.u8(0..10) > 0) else {
            // Refused, or the reply was lost.
            continue;
        };
        if cost > 0 {
            spend(now, wait, cost);
        }
        let opinion = outcome.rules[0];
        let RuleReply { lease: receipt, term, block, .. } = opinion;
        lease.effect = Effect::ReturnBlock { receipt, term, block, left: block };
        (lease.from, lease.until) = (now.mono, now.mono + opinion.spend);
        assert!(opinion.spend <= LEASE);
        assert!(opinion.block == 0 || opinion.spend > 0, "a lease that is over at once");
    }
    oracle.check_departures(quota, past);
    spent
}
