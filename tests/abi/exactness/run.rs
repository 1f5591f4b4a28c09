//! One simulated run: random arrivals of a few callers, each decision compared, all remembered.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::arrivals;
use super::bound::{self, Admission};
use super::model::Model;
use super::rule::{Rule, SECOND};
use host::Host;
use host::answer::Answer;
use host::request::Request;
use host::vm::Vm;

const CALLERS: [&str; 3] = ["ann", "bob", "cyd"];

struct Run {
    rule: Rule,
    host: Host,
    vm: Vm,
    random: Rng,
    models: BTreeMap<&'static str, Model>,
    admissions: BTreeMap<&'static str, Vec<Admission>>,
}

/// Sends `requests` requests at random times, and checks every answer and then the whole.
pub fn check(rule: Rule, requests: usize, seed: u64) {
    println!("seed {seed}: {rule:?}");
    let mut host = Host::new(seed);
    let vm = host.start_vm(&rule.config()).unwrap_or_else(|error| panic!("{rule:?}: {error}"));
    let random = Rng::with_seed(seed);
    let (models, admissions) = (BTreeMap::new(), BTreeMap::new());
    let mut run = Run { rule, host, vm, random, models, admissions };
    let mut refused = 0;
    for _ in 0..requests {
        let caller = CALLERS[run.random.usize(..CALLERS.len())];
        let now = run.now();
        let pause = arrivals::pause(&run.rule, CALLERS.len(), now, &mut run.random);
        run.host.advance(pause);
        let answer = run.send(caller);
        if answer.is_refused() {
            refused += 1;
            match run.random.u32(..40) {
                0 => run.come_back(caller, &answer),
                1 => run.come_back_on_the_dot(caller),
                _ => {}
            }
        }
    }
    for admissions in run.admissions.values() {
        bound::check(&rule, admissions);
    }
    let admitted: usize = run.admissions.values().map(Vec::len).sum();
    let few = requests / 40;
    assert!(admitted > few && refused > few, "too tame: {admitted} admitted, {refused} refused");
}

impl Run {
    fn now(&self) -> Admission {
        Admission::at(self.host.clock())
    }

    fn send(&mut self, caller: &'static str) -> Answer {
        let now = self.now();
        let answer = self.vm.request(&Request::get("/").header("x-device-id", caller));
        let rule = &self.rule;
        let expected = self.models.entry(caller).or_default().decide(rule, now);
        if let Some(expected) = expected {
            assert_eq!(answer.is_admitted(), expected.is_ok(), "{rule:?}: {now:?} {expected:?}");
            if let Err(wait) = expected {
                assert_eq!(answer.retry_after(), Some(wait.div_ceil(SECOND)), "{rule:?}: {wait}");
            }
        }
        if answer.is_admitted() {
            self.admissions.entry(caller).or_default().push(now);
        } else {
            assert_eq!(answer.status(), 503, "{answer:?}");
        }
        answer
    }

    /// Comes back one microsecond too early, and again when the model says that it fits.
    fn come_back_on_the_dot(&mut self, caller: &'static str) {
        let now = self.now();
        let model = self.models.entry(caller).or_default();
        if let Some(Err(wait)) = model.decide(&self.rule, now) {
            self.host.advance(wait - 1);
            assert!(self.send(caller).is_refused());
            self.host.advance(1);
            assert!(self.send(caller).is_admitted());
        }
    }

    /// Comes back when it was told to, with nobody else between.
    fn come_back(&mut self, caller: &'static str, refusal: &Answer) {
        let seconds = refusal.retry_after().unwrap_or_else(|| panic!("{refusal:?}"));
        self.host.advance(seconds * SECOND);
        let answer = self.send(caller);
        assert!(answer.is_admitted(), "{:?}: told {seconds} s, then {answer:?}", self.rule);
    }
}
