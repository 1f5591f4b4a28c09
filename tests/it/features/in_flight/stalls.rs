//! Stalled workers: each adds at most the limit, however often it stalls. A stall of the whole process
//! adds no request.

use std::rc::Rc;

use diana_limiter::Limiter;
use diana_policy::time::{Micros, SECOND};
use diana_store::permit::Permit;
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::fake::{FakeClock, FakeSharedData};
use kit::seed;

use super::limiter;
use super::slots::{clock, document, request};

const STEP: Micros = SECOND / 20;

/// Workers of one process, and the requests that are open in each of them, by caller.
struct Process {
    workers: Vec<Limiter>,
    clock: FakeClock,
    /// The end of the stall of each of them.
    stopped: Vec<Micros>,
    open: Vec<(usize, usize, Permit)>,
    steps: u64,
}

impl Process {
    fn new(workers: usize, limit: usize, keys: usize) -> Process {
        let data = Rc::<FakeSharedData>::default();
        let all = (0..workers).map(|_| limiter(&document(keys, limit), &data)).collect();
        let stopped = vec![0; workers];
        Process { workers: all, clock: clock(), stopped, open: Vec::new(), steps: 0 }
    }

    fn now(&self) -> Micros {
        self.clock.0.get().mono
    }

    fn runs(&self, worker: usize) -> bool {
        self.stopped[worker] <= self.now()
    }

    /// How many stand still.
    fn standing(&self) -> usize {
        (0..self.workers.len()).filter(|worker| !self.runs(*worker)).count()
    }

    /// A step, in which the timers of the workers that run fire twice a tenth.
    fn step(&mut self) {
        self.clock.0.set(self.clock.0.get().later(STEP));
        self.steps += 1;
        for worker in 0..self.workers.len() {
            if self.runs(worker) && self.steps % 2 == worker as u64 % 2 {
                self.workers[worker].maintain(self.clock.0.get());
            }
        }
    }

    fn wait(&mut self, ticks: Micros) {
        (0..ticks / STEP).for_each(|_| self.step());
    }

    fn stop(&mut self, worker: usize, ticks: Micros) {
        self.stopped[worker] = self.now() + ticks;
    }

    fn request(&mut self, worker: usize, caller: usize) -> bool {
        let permit = request(&mut self.workers[worker], caller, &self.clock);
        let is_admitted = permit.is_some();
        self.open.extend(permit.map(|permit| (worker, caller, permit)));
        is_admitted
    }

    /// Sends requests until one is refused. Returns the number of open ones.
    fn fill(&mut self, worker: usize) -> usize {
        while self.request(worker, 0) {}
        self.open_of(0)
    }

    fn open_of(&self, caller: usize) -> usize {
        self.open.iter().filter(|(_, of, _)| *of == caller).count()
    }

    fn end(&mut self, at: usize) {
        let (worker, _, permit) = self.open.swap_remove(at);
        let now = self.clock.0.get();
        self.workers[worker].finish(permit, &FakeEnding::answered(200), now);
    }
}

#[test]
fn process_that_stands_still_gives_no_slot_away() {
    for pause in 1..60 {
        for first in 0..3 {
            let mut process = Process::new(3, 5, 100);
            // One of them has sent no heartbeat, since it has no slot.
            assert_eq!((process.fill(0), process.request(1, 1)), (5, true));
            process.wait(SECOND + pause % 10 * STEP);
            (0..3).for_each(|worker| process.stop(worker, 0));
            process.clock.0.set(process.clock.0.get().later(pause * SECOND / 10));
            assert_eq!(process.fill(first), 5, "after {pause} tenths");
            for _ in 0..40 {
                process.step();
                assert_eq!(process.fill(first), 5, "after {pause} tenths");
            }
        }
    }
}

/// Random stops of single workers and of all, and requests of several callers, which may share a
/// count.
#[test]
fn open_requests_stay_below_the_bound_of_stops() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut beyond, mut refused) = (0, 0);
    for round in 0..150 {
        let (count, limit) = (rng.usize(2..5), rng.usize(1..6));
        let keys = if round % 4 == 0 { 1 } else { 100 };
        let callers = if keys == 1 { 40 } else { 2 };
        let mut process = Process::new(count, limit, keys);
        let mut most = 0;
        for _ in 0..rng.usize(200..800) {
            process.step();
            match rng.u8(..60) {
                0 => {
                    let worker = rng.usize(..count);
                    process.stop(worker, rng.u64(..4 * SECOND));
                }
                1 => {
                    let ticks = rng.u64(..4 * SECOND);
                    process.clock.0.set(process.clock.0.get().later(ticks));
                    // The stalls of single workers end later.
                    process.stopped.iter_mut().for_each(|until| *until += ticks);
                }
                _ => {}
            }
            most = most.max(process.standing());
            for _ in 0..rng.usize(..4) {
                let (worker, caller) = (rng.usize(..count), rng.usize(..callers));
                if process.runs(worker) && !process.request(worker, caller) {
                    refused += 1;
                }
                let open = process.open_of(caller);
                assert!(open <= limit * (1 + most), "{open} of {limit}, {most} stood still");
                beyond += usize::from(open > limit);
            }
            if rng.u8(..3) == 0 && !process.open.is_empty() {
                let at = rng.usize(..process.open.len());
                if process.runs(process.open[at].0) {
                    process.end(at);
                }
            }
        }
        process.stopped.fill(0);
        process.wait(SECOND);
        while !process.open.is_empty() {
            process.end(0);
        }
        process.wait(SECOND);
        for caller in 0..callers {
            let open = (0..2 * limit).filter(|turn| process.request(turn % count, caller)).count();
            assert_eq!(open, limit, "when all have ended");
            (0..open).for_each(|_| process.end(0));
        }
    }
    assert!(beyond > 100 && refused > 1000, "too tame: {beyond} {refused}");
}
