//! Everything that can happen in a small world: a world is a function of choices, and runs once for each sequence of them.
//!
//! Small worlds come first, and in each the first alternative of a choice. So the first failure is one of the shortest.
//! It prints its choices; `DIANA_CHOICES=<choices> cargo test --test promises name` runs only this world.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The choices of one world.
#[derive(Debug, Default)]
pub struct Choices {
    /// The number of each choice, and of its alternatives.
    taken: Vec<(usize, usize)>,
    /// The choices of this run so far.
    at: usize,
    /// The first choices, which the previous run had, too.
    common: usize,
    /// The states that were reached. `None` to try each world in full.
    reached: Option<HashSet<u64>>,
}

/// What was tried.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// Worlds that ran, in full or until a state that was known.
    pub worlds: u64,
    /// Distinct states, where worlds have told them.
    pub states: u64,
}

/// Runs the world of each size once for each sequence of its choices.
///
/// # Panics
/// If a world panics, or depends on anything but its size and its choices.
pub fn try_all(sizes: RangeInclusive<usize>, world: impl Fn(usize, &mut Choices)) -> Tried {
    explore(sizes, true, world)
}

/// The same without a memory of states.
///
/// # Panics
/// As [`try_all`].
pub fn try_all_in_full(sizes: RangeInclusive<usize>, world: impl Fn(usize, &mut Choices)) -> Tried {
    explore(sizes, false, world)
}

/// Runs one world, by the text that a failure prints.
///
/// # Panics
/// If the text has another form, or the world fails.
pub fn replay(text: &str, world: impl Fn(usize, &mut Choices)) {
    let number = |text: &str| text.parse().expect("`DIANA_CHOICES` as a failure prints it");
    let (size, choices) = text.split_once(':').unwrap_or((text, ""));
    let taken = choices.split('.').filter(|it| !it.is_empty()).map(|it| (number(it), 0));
    world(number(size), &mut Choices { taken: taken.collect(), ..Choices::default() });
}

fn explore(
    sizes: RangeInclusive<usize>,
    remembers: bool,
    world: impl Fn(usize, &mut Choices),
) -> Tried {
    if let Ok(text) = std::env::var("DIANA_CHOICES") {
        replay(&text, world);
        return Tried { worlds: 1, states: 0 };
    }
    let mut tried = Tried::default();
    for size in sizes {
        let mut choices = Choices { reached: remembers.then(HashSet::new), ..Choices::default() };
        loop {
            let run = catch_unwind(AssertUnwindSafe(|| world(size, &mut choices)));
            if let Err(why) = run {
                println!("`DIANA_CHOICES={}` runs the world that failed", choices.text(size));
                resume_unwind(why);
            }
            tried.worlds += 1;
            if !choices.next() {
                break;
            }
        }
        tried.states += choices.reached.map_or(0, |reached| reached.len() as u64);
    }
    tried
}

impl Choices {
    /// Chooses a number below `of`.
    ///
    /// # Panics
    /// If `of` is zero, or differs from the number of alternatives in an earlier run with the same choices.
    pub fn pick(&mut self, of: usize) -> usize {
        assert!(of > 0, "a choice without alternatives");
        if self.at == self.taken.len() {
            self.taken.push((0, of));
        }
        let (choice, known) = &mut self.taken[self.at];
        // A replay knows the choices only.
        *known = if *known == 0 { of } else { *known };
        assert_eq!(*known, of, "a world depends on more than its choices");
        self.at += 1;
        *choice
    }

    /// Returns true if another world has reached the state with this hash, so that this one may end. Everything on which
    /// the rest of the world depends must be in the hash, with the number of events that are left.
    pub fn is_known(&mut self, state: u64) -> bool {
        // Up to here this world is the previous one.
        let is_new = self.at >= self.common;
        self.reached.as_mut().is_some_and(|reached| is_new && !reached.insert(state))
    }

    /// Moves on to the next world. Returns false after the last one.
    fn next(&mut self) -> bool {
        self.taken.truncate(self.at);
        while let Some((choice, of)) = self.taken.pop() {
            if choice + 1 < of {
                self.taken.push((choice + 1, of));
                (self.at, self.common) = (0, self.taken.len());
                return true;
            }
        }
        false
    }

    fn text(&self, size: usize) -> String {
        let choices: Vec<_> =
            self.taken[..self.at].iter().map(|(choice, _)| choice.to_string()).collect();
        format!("{size}:{}", choices.join("."))
    }
}
