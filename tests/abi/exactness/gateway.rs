//! The same promises where several workers count together: they take permits in blocks and spend
//! them without asking, some of them die, and rules change under them.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::arrivals;
use super::bound::{self, Admission};
use super::model::Model;
use super::rule::{MINUTE, Rule, SECOND};
use host::request::Request;
use host::{Host, Proxy};

const WORKERS: usize = 4;
const CALLERS: [&str; 3] = ["ann", "bob", "cyd"];
const REQUESTS: usize = 10_000;

#[test]
fn fixed_window() {
    for (seed, rule) in (900..).zip([
        Rule::new("W", SECOND, 300),
        Rule::new("W", SECOND, 20),
        Rule::new("W", MINUTE, 2_000).cost(3).zone(90),
    ]) {
        check(rule.gateway(), seed);
    }
}

#[test]
fn sliding_window() {
    for (seed, rule) in (910..).zip([
        Rule::new("SW", SECOND, 300),
        Rule::new("SW", SECOND, 60).slices(7),
        Rule::new("SW", MINUTE, 1_000).slices(60).cost(2),
    ]) {
        check(rule.gateway(), seed);
    }
}

#[test]
fn token_bucket() {
    for (seed, rule) in (920..).zip([
        Rule::new("TB", SECOND, 100),
        Rule::new("TB", SECOND, 200).burst(50),
        Rule::new("TB", SECOND, 500).burst(7),
        Rule::new("TB", MINUTE, 3_000).burst(100).cost(3),
    ]) {
        check(rule.gateway(), seed);
    }
}

struct Run {
    rule: Rule,
    host: Host,
    proxy: Proxy,
    random: Rng,
    admissions: BTreeMap<&'static str, Vec<Admission>>,
    /// Admitted without a look at what workers share.
    unasked: usize,
}

fn check(rule: Rule, seed: u64) {
    println!("seed {seed}: {rule:?}");
    let mut host = Host::new(seed);
    let proxy = host.start_proxy(WORKERS, &rule.config()).unwrap_or_else(|error| panic!("{error}"));
    let (random, admissions) = (Rng::with_seed(seed), BTreeMap::new());
    let mut run = Run { rule, host, proxy, random, admissions, unasked: 0 };
    let mut models: BTreeMap<&str, Model> = BTreeMap::new();
    let (mut fitting, mut refused, mut worker) = (0, 0, 0);
    for _ in 0..REQUESTS {
        run.disturb();
        let now = Admission::at(run.host.clock());
        let pause = arrivals::pause(&rule, CALLERS.len(), now, &mut run.random);
        run.proxy.run(pause);
        if run.random.u8(..10) == 0 {
            worker = run.random.usize(..WORKERS);
        }
        let caller = CALLERS[run.random.usize(..CALLERS.len())];
        let now = Admission::at(run.host.clock());
        let model = models.entry(caller).or_default().decide(&rule, now);
        fitting += usize::from(model.is_some_and(|fits| fits.is_ok()));
        if !run.send(worker, caller) {
            refused += 1;
        }
    }
    run.admissions.values().for_each(|admissions| bound::check(&rule, admissions));
    let admitted: usize = run.admissions.values().map(Vec::len).sum();
    println!("admitted {admitted} of {fitting}, {} unasked, {refused} refused", run.unasked);
    assert!(admitted > REQUESTS / 40 && refused > REQUESTS / 40, "too tame");
    // A worker may hold what another one lacks, but not for long.
    assert!(admitted * 10 >= fitting * 9, "{admitted} of {fitting} that fit");
}

impl Run {
    /// Now and then a worker's VM dies and another takes its place, or all get other rules, which
    /// do not touch what was used.
    fn disturb(&mut self) {
        match self.random.u32(..2_000) {
            0..3 => {
                let worker = self.random.usize(..WORKERS);
                self.proxy.workers[worker] = self.host.start_vm(&self.rule.config()).unwrap();
            }
            3 => {
                let config = self.rule.config().replace("cost:", "expose: false, cost:");
                let vms = self.proxy.workers.iter_mut();
                vms.for_each(|vm| vm.configure(&config).unwrap());
            }
            4 => self.proxy.workers.iter_mut().for_each(|vm| vm.end_drain().unwrap()),
            _ => {}
        }
    }

    fn send(&mut self, worker: usize, caller: &'static str) -> bool {
        let request = Request::get("/").header("x-device-id", caller);
        let answer = self.proxy.workers[worker].request(&request);
        if answer.is_admitted() {
            let now = Admission::at(self.host.clock());
            self.admissions.entry(caller).or_default().push(now);
            self.unasked += usize::from(answer.calls("proxy_get_shared_data") == 0);
        }
        answer.is_admitted()
    }
}

/// Also when the refusal is one that the worker remembers, and when others hold permits.
#[test]
fn whoever_comes_back_when_he_was_told_to_is_admitted() {
    for (seed, rule) in (930..).zip([
        Rule::new("W", MINUTE, 20),
        Rule::new("SW", MINUTE, 20),
        Rule::new("TB", MINUTE, 20).cost(2),
    ]) {
        let rule = rule.gateway();
        let mut proxy = Host::new(seed).start_proxy(WORKERS, &rule.config()).unwrap();
        let request = Request::get("/").header("x-device-id", "ann");
        for worker in (0..WORKERS).cycle().take(60) {
            proxy.workers[worker].request(&request);
            proxy.run(20_000);
        }
        proxy.run(SECOND);
        for times in [1, 2, 7] {
            let mut told = 0;
            for _ in 0..times {
                let answer = proxy.workers[0].request(&request);
                told = answer.retry_after().unwrap_or_else(|| panic!("{rule:?}: {answer:?}"));
                proxy.run(told.min(1) * 100_000);
            }
            proxy.run(told * SECOND - 100_000);
            assert!(proxy.workers[1].request(&request).is_admitted(), "{rule:?}: {told} s");
            while proxy.workers[2].request(&request).is_admitted() {}
        }
    }
}
