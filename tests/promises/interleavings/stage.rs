//! Workers that run at once over shared data. A step of a worker ends before its next access or lock, and then any worker
//! may continue if its lock is free.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use diana_policy::time::{Micros, Now};
use diana_store::explored;
use kit::choices::Choices;
use kit::fake::FakeSharedData;

/// Bytes of the stack of a worker.
const STACK: usize = 256 * 1024;

/// More steps than any world needs: a world with so many never ends.
const MOST_STEPS: usize = 4_000;

thread_local! {
    /// Stacks of earlier worlds.
    static STACKS: Cell<Vec<DefaultStack>> = const { Cell::new(Vec::new()) };
}

type Running = Coroutine<(), (), (), DefaultStack>;

/// Returns true if a lock is free.
type Free<'f> = &'f dyn Fn() -> bool;

/// What a worker does. It runs once.
pub type Work = Box<dyn FnOnce()>;

/// The shared data and the clock of some workers.
pub struct Stage {
    pub data: Rc<FakeSharedData>,
    turns: Rc<Turns>,
}

/// What may happen between the steps of workers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Between<'b> {
    /// How often time may pass, and the ticks on the monotonic clock and on the wall clock.
    pub waits: &'b [[Micros; 2]],
    /// How many workers may end in the middle of their work.
    pub ends: usize,
}

/// The worker whose step it is, and what each has seen.
struct Turns {
    now: Cell<Now>,
    current: Cell<usize>,
    workers: Vec<Progress>,
    /// Whether time passes while they run, so that reading the clock is a step.
    is_timed: bool,
    /// Accesses of all workers.
    accesses: Cell<usize>,
    /// For each lock: the hash `seen` of the worker that took it last, right after it took it.
    locks: RefCell<BTreeMap<usize, u64>>,
}

#[derive(Default)]
struct Progress {
    /// `None` unless it runs together with others.
    yielder: Cell<Option<*const Yielder<(), ()>>>,
    /// A hash of all that it has read. What it does next depends on nothing else.
    seen: Cell<u64>,
    /// Whether the lock that it takes next is free.
    is_free: Cell<Option<Free<'static>>>,
    has_ended: Cell<bool>,
}

impl Stage {
    pub fn new(workers: usize, now: Now, is_timed: bool) -> Stage {
        let turns = Rc::new(Turns {
            now: Cell::new(now),
            current: Cell::default(),
            workers: (0..workers).map(|_| Progress::default()).collect(),
            is_timed,
            accesses: Cell::default(),
            locks: RefCell::default(),
        });
        let of_locks = turns.clone();
        explored::set(Some(Rc::new(move |lock, is_free| of_locks.take(lock, is_free))));
        let data = Rc::<FakeSharedData>::default();
        let of_data = turns.clone();
        *data.before_access.borrow_mut() = Some(Rc::new(move |data, key| {
            of_data.pause();
            of_data.accesses.set(of_data.accesses.get() + 1);
            of_data.see(|hasher| data.hash_value(key, hasher));
        }));
        Stage { data, turns }
    }

    /// Reads the clock for the current worker.
    pub fn read_clock(&self) -> Now {
        if !self.turns.is_timed {
            return self.now();
        }
        self.turns.pause();
        let now = self.now();
        self.turns.see(|hasher| (now.mono, now.wall).hash(hasher));
        now
    }

    /// The number of accesses so far.
    pub fn accesses(&self) -> usize {
        self.turns.accesses.get()
    }

    pub fn now(&self) -> Now {
        self.turns.now.get()
    }

    pub fn wait(&self, ticks: Micros) {
        self.pass([ticks; 2]);
    }

    fn pass(&self, [mono, wall]: [Micros; 2]) {
        let now = self.now();
        self.turns.now.set(Now { mono: now.mono + mono, wall: now.wall + wall });
    }

    /// Lets the workers do all of this at once. Returns which of them ended before they were done, or `None` if another world
    /// came to the same state. `state` is a hash of everything else.
    pub fn run(
        &self,
        works: Vec<Work>,
        between: Between,
        choices: &mut Choices,
        state: u64,
    ) -> Option<Vec<usize>> {
        let Between { mut waits, mut ends } = between;
        let mut running: Vec<_> = works.into_iter().map(|work| Some(self.begin(work))).collect();
        // Until its first step a worker has seen nothing.
        (0..running.len()).for_each(|worker| self.step(worker, &mut running));
        let mut ended = Vec::new();
        for _ in 0..MOST_STEPS {
            let ready = self.ready(&running);
            if ready.is_empty() {
                return Some(ended);
            }
            let may_end = if ends > 0 { ready.len() } else { 0 };
            match choices.pick(ready.len() + usize::from(!waits.is_empty()) + may_end) {
                number if number < ready.len() => self.step(ready[number], &mut running),
                number if number < ready.len() + may_end => {
                    let worker = ready[number - ready.len()];
                    self.end(worker, &mut running);
                    ended.push(worker);
                    ends -= 1;
                }
                _ => {
                    self.pass(waits[0]);
                    waits = &waits[1..];
                }
            }
            if choices.is_known(self.hash((state, waits.len(), ends, &ended))) {
                // To go on to the end is quicker than to unwind.
                while let Some(worker) = self.ready(&running).first() {
                    self.step(*worker, &mut running);
                }
                return None;
            }
        }
        panic!("the workers are never done");
    }

    /// The workers that can continue.
    fn ready(&self, running: &[Option<Running>]) -> Vec<usize> {
        let goes_on = |it: &usize| running[*it].is_some() && self.turns.workers[*it].is_free();
        let ready: Vec<_> = (0..running.len()).filter(goes_on).collect();
        let is_stuck = ready.is_empty() && running.iter().any(Option::is_some);
        assert!(!is_stuck, "the workers wait for each other");
        ready
    }

    fn begin(&self, work: Work) -> Running {
        let mut stacks = STACKS.take();
        let stack = stacks.pop();
        STACKS.set(stacks);
        let stack = stack.unwrap_or_else(|| DefaultStack::new(STACK).expect("memory of a stack"));
        let turns = self.turns.clone();
        Coroutine::with_stack(stack, move |yielder, ()| {
            turns.workers[turns.current.get()].yielder.set(Some(yielder));
            work();
        })
    }

    fn step(&self, worker: usize, running: &mut [Option<Running>]) {
        self.turns.current.set(worker);
        let Some(coroutine) = &mut running[worker] else { return };
        if coroutine.resume(()).as_return().is_some() {
            self.end(worker, running);
        }
    }

    /// Ends a worker wherever it is.
    fn end(&self, worker: usize, running: &mut [Option<Running>]) {
        let Some(mut coroutine) = running[worker].take() else { return };
        self.turns.current.set(worker);
        let Progress { yielder, has_ended, .. } = &self.turns.workers[worker];
        yielder.set(None);
        has_ended.set(true);
        coroutine.force_unwind();
        let mut stacks = STACKS.take();
        stacks.push(coroutine.into_stack());
        STACKS.set(stacks);
    }

    fn hash(&self, more: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.data.hash_all(&mut hasher);
        for Progress { seen, has_ended, .. } in &self.turns.workers {
            (seen.get(), has_ended.get()).hash(&mut hasher);
        }
        // In any order, since their addresses differ from world to world.
        let locks = self.turns.locks.borrow().values().fold(0_u64, |all, it| all.wrapping_add(*it));
        (self.now().mono, self.now().wall, locks, more).hash(&mut hasher);
        hasher.finish()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The data would keep itself.
        self.data.before_access.take();
        explored::set(None);
    }
}

impl Turns {
    /// Ends the step of the current worker, unless it runs alone.
    #[allow(unsafe_code)]
    fn pause(&self) {
        if let Some(yielder) = self.workers[self.current.get()].yielder.get() {
            // SAFETY: it lives until its coroutine ends, then it is `None`. Only code of the current worker runs here.
            unsafe { &*yielder }.suspend(());
        }
    }

    /// The current worker takes a lock.
    #[allow(unsafe_code)]
    fn take(&self, lock: usize, is_free: Free<'_>) {
        let worker = &self.workers[self.current.get()];
        // SAFETY: it is `None` again before the function ends.
        let is_free = unsafe { std::mem::transmute::<Free<'_>, Free<'static>>(is_free) };
        worker.is_free.set(Some(is_free));
        self.pause();
        worker.is_free.set(None);
        self.accesses.set(self.accesses.get() + 1);
        let mut locks = self.locks.borrow_mut();
        let last = locks.entry(lock).or_default();
        self.see(|hasher| last.hash(hasher));
        *last = worker.seen.get();
    }

    fn see(&self, of: impl FnOnce(&mut DefaultHasher)) {
        let Progress { seen, .. } = &self.workers[self.current.get()];
        let mut hasher = DefaultHasher::new();
        seen.get().hash(&mut hasher);
        of(&mut hasher);
        seen.set(hasher.finish());
    }
}

impl Progress {
    fn is_free(&self) -> bool {
        self.is_free.get().is_none_or(|is_free| is_free())
    }
}
