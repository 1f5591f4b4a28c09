//! The same requests through both modules. The workers of the wasm module share no memory. Those of the native module are threads
//! of one process, and count `gateway` rules in one table.
//!
//! They decide alike, at the same times, with the same responses. Only under `gateway` rules they differ. Where permits are
//! leased, the wasm module refuses a request while other workers hold leases of its caller, and the native module has none. And
//! it remembers a refusal for a moment, with the permits that remained.

use std::collections::BTreeSet;
use std::env;

use diana_policy::time::Micros;
use fastrand::Rng;
use kit::server::Server;

use super::SHIPPED;
use super::native::Native;
use super::plan::{MILLISECOND, Plan, WIDE};
use super::record::Entry;
use super::rule::{Rule, Scope};
use super::world::{Start, World};

const OF_A_PROCESS: Start = |_, seed, now, ahead| Box::new(Native::of_process(seed, now, ahead));

/// Each world has some 20,000 requests. Odd seeds have leases.
const SEEDS: [u64; 4] = [WIDE + 4, WIDE + 5, WIDE + 10, WIDE + 11];

/// The worlds of a million requests.
const FRESH: usize = 50;

/// How long a worker of the wasm module remembers a refusal.
const REMEMBERED: Micros = 20 * MILLISECOND;

/// The requests of one rule, by their decisions.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    requests: usize,
    /// By both modules.
    admitted: usize,
    only_wasm: usize,
    only_native: usize,
    /// The longest time between equal decisions about a request.
    apart: Micros,
    /// Requests that the wasm module refused while other workers held leases.
    leased: usize,
}

impl Tally {
    fn of<'e>(requests: impl Iterator<Item = (&'e Entry, &'e Entry)>) -> Tally {
        let mut tally = Tally::default();
        for (wasm, native) in requests {
            let [by_wasm, by_native] = [wasm, native].map(|entry| entry.admitted().is_some());
            tally.requests += 1;
            tally.admitted += usize::from(by_wasm && by_native);
            tally.only_wasm += usize::from(by_wasm && !by_native);
            tally.only_native += usize::from(by_native && !by_wasm);
            if let (Some((at, one)), Some((then, other))) = (wasm.decided, native.decided)
                && one == other
            {
                tally.apart = tally.apart.max(at.abs_diff(then));
            }
        }
        tally
    }
}

/// Fails unless the modules decide alike. Under a `gateway` rule they may differ from a refusal on that the wasm module remembers.
fn assert_alike(plan: &Plan, wasm: &[Entry], native: &[Entry]) {
    let mut differ = BTreeSet::new();
    for (number, (wasm_entry, native_entry)) in wasm.iter().zip(native).enumerate() {
        let entry = wasm_entry.visit.entry;
        let rule = &plan.entries[entry][0];
        let is_shared = rule.scope == Scope::Gateway;
        // A remembered refusal has the permits that remained.
        let report = if is_shared { &native_entry.report } else { &wasm_entry.report };
        let is_alike = Entry { report: report.clone(), ..wasm_entry.clone() } == *native_entry;
        if is_alike || differ.contains(&entry) {
            continue;
        }
        let account = wasm_entry.counted_as(rule);
        let latest = wasm[..number].iter().rev();
        let is_remembered = latest
            .take_while(|it| it.arrived + REMEMBERED >= wasm_entry.arrived)
            .filter(|it| it.visit.entry == entry && it.worker == wasm_entry.worker)
            .any(|it| it.refused().is_some() && it.counted_as(rule) == account);
        let is_refused = wasm_entry.refused().is_some() && native_entry.refused().is_none();
        assert!(
            is_shared && is_remembered && is_refused,
            "the modules differ: {wasm_entry:#?}, {native_entry:#?}"
        );
        differ.insert(entry);
    }
}

/// Plays a world with both modules. Returns the differences by rule.
fn compare(plan: &Plan, server: &Server) -> Vec<(Rule, Tally)> {
    let (wasm, metrics) = World::new(plan, SHIPPED, server).history();
    let (native, _) = World::new(plan, OF_A_PROCESS, server).history();
    assert_eq!(wasm.len(), native.len());
    let both = || wasm.iter().zip(&native);
    assert!(both().all(|(one, other)| one.visit == other.visit && one.arrived == other.arrived));
    if !plan.leases_in_gateways() {
        assert_alike(plan, &wasm, &native);
    }
    let tally = |(number, rule): (usize, &Rule)| {
        let name = format!("diana.sim.rule.{}.lent", rule.name);
        let leased = metrics.iter().filter_map(|metrics| metrics.get(&name)).sum::<i64>();
        let tally = Tally::of(both().filter(|(wasm, _)| wasm.visit.entry == number));
        (rule.clone(), Tally { leased: leased.unsigned_abs() as usize, ..tally })
    };
    plan.entries.iter().flatten().enumerate().map(tally).collect()
}

#[test]
fn modules_decide_alike_but_for_leases() {
    let seeds = match env::var("DIANA_SEED").as_deref() {
        Ok("fresh") => (0..FRESH).map(|_| Rng::new().u64(WIDE..1 << 40)).collect(),
        Ok(seed) => vec![seed.parse().expect("DIANA_SEED is a number or `fresh`")],
        Err(_) => SEEDS.to_vec(),
    };
    let (server, mut leased, mut only_native) = (Server::start(), 0, 0);
    for seed in &seeds {
        let plan = Plan::of_two_modules(*seed);
        println!("seed {seed}: {plan:?}");
        for (rule, tally) in compare(&plan, &server) {
            let case = format!("seed {seed}: {}: {tally:?}", rule.text(1, 1));
            println!("{case}");
            if !plan.leases_in_gateways() {
                continue;
            }
            // One difference may shift later ones, but not their sum.
            let differ = tally.only_wasm + tally.only_native;
            assert!(tally.only_native.abs_diff(tally.only_wasm) <= tally.leased, "{case}");
            assert!(differ == 0 || tally.leased > 0, "{case}");
            assert_eq!(tally.apart, 0, "{case}");
            leased += tally.leased;
            only_native += tally.only_native;
        }
    }
    let is_one = seeds.len() == 1;
    assert!(is_one || leased > 0 && only_native > 0, "too tame: {leased} leased, {only_native}");
}
