//! Two writers meet where a slice begins: a counter of many words, as the source document has it, loses a
//! count; a state that is changed as one value does not.

use diana_core::ring::Ring;

const SIZE: u64 = 5;

/// The memory that both writers see.
#[derive(Clone)]
struct Shared {
    counts: [u64; SIZE as usize],
    last: u64,
    packed: Vec<u64>,
}

/// A writer counts one access in the slice that it read from its clock, one atomic action at a time. It
/// is done when there is nothing left to do.
trait Writer: Clone {
    fn act(&mut self, now: u64, shared: &mut Shared) -> bool;
}

/// `AccessCounter.increment()` of the source document, in its atomic actions.
#[derive(Clone)]
enum Seed {
    Load,
    Swap(u64),
    Clear { last: u64, slice: u64 },
    Add,
    Done,
}

impl Writer for Seed {
    fn act(&mut self, now: u64, shared: &mut Shared) -> bool {
        *self = match *self {
            Seed::Load if shared.last == now => Seed::Add,
            Seed::Load => Seed::Swap(shared.last),
            Seed::Swap(last) if shared.last == last => {
                shared.last = now;
                Seed::Clear { last, slice: last + 1 }
            }
            Seed::Swap(_) => Seed::Add,
            Seed::Clear { last, slice } => {
                shared.counts[(slice % SIZE) as usize] = 0;
                let over = slice == now || slice == last + SIZE;
                if over { Seed::Add } else { Seed::Clear { last, slice: slice + 1 } }
            }
            Seed::Add => {
                shared.counts[(now % SIZE) as usize] += 1;
                Seed::Done
            }
            Seed::Done => return false,
        };
        true
    }
}

/// The ring as stores write it: got, stepped, and swapped unless somebody was faster.
#[derive(Clone)]
enum Packed {
    Get,
    Swap { old: Vec<u64>, new: Vec<u64> },
    Done,
}

impl Writer for Packed {
    fn act(&mut self, now: u64, shared: &mut Shared) -> bool {
        *self = match self {
            Packed::Get => {
                let (old, mut new) = (shared.packed.clone(), shared.packed.clone());
                ring().add(&mut new, now, 1);
                Packed::Swap { old, new }
            }
            Packed::Swap { old, new } if *old == shared.packed => {
                shared.packed.clone_from(new);
                Packed::Done
            }
            Packed::Swap { .. } => Packed::Get,
            Packed::Done => return false,
        };
        true
    }
}

fn ring() -> Ring {
    Ring::new(SIZE as usize)
}

/// What is counted at `now` at the end of every order in which two writers can act; both count in
/// the slice `now`, the last count lies `gap` slices before it.
fn outcomes<W: Writer>(writer: &W, gap: u64, counted: fn(&Shared, u64) -> u64) -> Vec<u64> {
    fn explore<W: Writer>(
        writers: &[W; 2],
        shared: &Shared,
        now: u64,
        counted: fn(&Shared, u64) -> u64,
        found: &mut Vec<u64>,
    ) {
        let mut over = true;
        for number in 0..2 {
            let (mut writers, mut shared) = (writers.clone(), shared.clone());
            if writers[number].act(now, &mut shared) {
                over = false;
                explore(&writers, &shared, now, counted, found);
            }
        }
        if over {
            found.push(counted(shared, now));
        }
    }
    let last = 1000;
    let mut packed = vec![0; ring().words()];
    ring().add(&mut packed, last, 7);
    let mut counts = [0; SIZE as usize];
    counts[(last % SIZE) as usize] = 7;
    let (shared, mut found) = (Shared { counts, last, packed }, Vec::new());
    explore(&[writer.clone(), writer.clone()], &shared, last + gap, counted, &mut found);
    found
}

#[test]
fn the_counter_of_the_source_document_loses_a_count_and_ours_does_not() {
    let of_seed = |shared: &Shared, now: u64| shared.counts[(now % SIZE) as usize];
    let ours = |shared: &Shared, now: u64| ring().count(&shared.packed, now);
    for gap in 1..=SIZE {
        let (seed, packed) =
            (outcomes(&Seed::Load, gap, of_seed), outcomes(&Packed::Get, gap, ours));
        assert!(seed.len() > 5 && packed.len() > 5, "{} and {} orders", seed.len(), packed.len());
        assert!(seed.contains(&2), "{gap}: sometimes it is right");
        assert!(seed.iter().any(|count| *count < 2), "{gap}: the race is not shown");
        assert!(packed.iter().all(|count| *count == 2), "{gap}: {packed:?}");
    }
    // Within a slice there is nothing to clear, and nothing gets lost.
    assert!(outcomes(&Seed::Load, 0, of_seed).iter().all(|count| *count == 9));
    assert!(outcomes(&Packed::Get, 0, ours).iter().all(|count| *count == 9));
}
