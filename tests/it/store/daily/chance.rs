//! The size of a filter and its errors.

use std::collections::HashMap;

use diana_policy::bloom::{Filter, Shape};
use diana_policy::key::Key;
use fastrand::Rng;

use kit::seed;

use crate::support::allocator;

const ERRORS: [u64; 5] = [100_000, 30_000, 10_000, 1_000, 100];
const MOST: [u64; 6] = [1, 2, 10, 200, 5_000, 1_000_000_000];

const FILTERS: u64 = 10;

/// Bytes of a piece: three numbers, then the counters of 64 lines.
const HEAD: u64 = 24;
const PIECE: u64 = HEAD + 64 * 62;

fn random(rng: &mut Rng) -> Key {
    Key { hash: rng.u64(..), second_hash: rng.u64(..) }
}

/// The smallest size per caller in bytes, by the formula with floats.
fn bytes(counters: u32, error: f64) -> f64 {
    let chance = |load: f64, places: f64, rows: i32| {
        let (mut sum, mut weight) = (0.0, (-load).exp());
        for number in 0..400 {
            sum += weight * (1.0 - (1.0 - 1.0 / places).powi(number)).powi(rows);
            weight *= load / f64::from(number + 1);
        }
        sum
    };
    let load = |rows: u32| {
        let places = f64::from(counters / rows);
        let (mut fits, mut exceeds) = (0.0, 128.0);
        for _ in 0..50 {
            let load = (fits + exceeds) / 2.0;
            let is_within = chance(load, places, rows as i32) <= error;
            if is_within { fits = load } else { exceeds = load }
        }
        fits
    };
    64.0 / (1..=13.min(counters / 2)).map(load).fold(0.0, f64::max)
}

#[test]
fn filter_size_follows_its_formula() {
    for (most, counters) in MOST.into_iter().zip([496, 248, 124, 62, 31, 15]) {
        for error in ERRORS {
            let each = Shape::new(10_000_000, error, most).bytes() as f64 / 1e7;
            let exact = bytes(counters, error as f64 / 1e6);
            assert!((each / exact - 1.0).abs() < 0.002, "{most}, {error}: {each}, not {exact}");
        }
    }
}

#[test]
fn false_positives_stay_below_the_accepted_error() {
    let mut rng = Rng::with_seed(seed::next());
    for most in MOST {
        for error in ERRORS {
            let shape = Shape::new(5_000, error, most);
            let mut taken = 0;
            // Several filters, since a few crowded lines make filters differ.
            for _ in 0..FILTERS {
                let mut filter = Filter::new(shape);
                (0..5_000).for_each(|_| _ = filter.add(random(&mut rng), 1));
                let tries = 100_000_000 / error / FILTERS;
                taken += (0..tries).filter(|_| filter.count(random(&mut rng)) > 0).count();
            }
            // A hundred are expected. The bounds are about five standard deviations away.
            assert!(taken < 160, "{most}, {error}: {taken}");
            assert!(taken > 50, "{most}, {error}: {taken}, so it is larger than it must be");
        }
    }
}

#[test]
fn count_is_never_too_low_and_saturates() {
    let mut rng = Rng::with_seed(seed::next());
    for most in [1, 3, 15, 255] {
        let shape = Shape::new(50, 10_000, most);
        let mut filter = Filter::new(shape);
        let callers: Vec<Key> = (0..200).map(|_| random(&mut rng)).collect();
        let mut counts = vec![0; callers.len()];
        for _ in 0..10_000 {
            let one = rng.usize(0..callers.len());
            counts[one] += 1;
            filter.add(callers[one], 1);
            let seen = filter.count(callers[one]);
            assert!(seen >= counts[one].min(most) && seen <= shape.most());
        }
        filter.clear();
        assert!(callers.iter().all(|caller| filter.count(*caller) == 0));
    }
}

/// In Redis, counters are stored in pieces, and count in the same way.
#[test]
fn counters_in_pieces_count_like_a_filter() {
    let mut rng = Rng::with_seed(seed::next());
    for most in MOST {
        let shape = Shape::new(3_000, 10_000, most);
        let [lines, width, ..] = shape.layout();
        assert_eq!((shape.width(), shape.most()), (width, (1 << width) - 1));
        let mut filter = Filter::new(shape);
        let mut counters: HashMap<(u64, u16), u64> = HashMap::new();
        let callers: Vec<Key> = (0..3_000).map(|_| random(&mut rng)).collect();
        for _ in 0..10_000 {
            let caller = callers[rng.usize(0..callers.len())];
            let (piece, places) = shape.piece(caller);
            assert!(piece < lines.div_ceil(64), "{piece} of {lines} lines");
            let bits = || places.as_chunks().0.iter().map(|bit| u16::from_be_bytes(*bit));
            let count = |bit| counters.get(&(piece, bit)).copied().unwrap_or(0);
            let before = bits().map(count).min().unwrap_or(0);
            assert_eq!(filter.add(caller, 1), before);
            for bit in bits() {
                let end = u64::from(bit) + shape.width();
                assert!(u64::from(bit) >= HEAD * 8, "among the numbers of the piece");
                assert!(end <= PIECE * 8, "beyond the end of the piece");
                let counter = counters.entry((piece, bit)).or_default();
                *counter = (before + 1).min(shape.most()).max(*counter);
            }
        }
    }
}

/// A shard has its share of the lines, rounded up, and callers are counted in them as in the whole.
#[test]
fn shards_are_as_full_as_the_whole_filter() {
    for most in MOST {
        let whole = Shape::new(100_000, 10_000, most);
        for parts in [1, 2, 3, 64, 1000] {
            let part = whole.of_part(parts);
            assert_eq!(part.layout()[1..], whole.layout()[1..]);
            let more = part.bytes() * parts - whole.bytes();
            assert!(more < parts * 64, "{parts} parts take {more} bytes more");
            let more = part.callers * parts - whole.callers;
            assert!(more < parts, "{parts} parts are for {more} callers more");
        }
    }
}

/// Memory is allocated by pages. The last page has only the remaining lines.
#[test]
fn filter_takes_the_declared_memory() {
    let mut rng = Rng::with_seed(seed::next());
    for callers in [100, 5_000, 50_000] {
        let shape = Shape::new(callers, 10_000, 1);
        let before = allocator::bytes();
        let mut filter = Filter::new(shape);
        (0..50 * callers).for_each(|_| _ = filter.add(random(&mut rng), 1));
        let taken = (allocator::bytes() - before) as u64;
        // The index takes 16 bytes per page of 256 lines.
        let most = shape.bytes() + 16 * shape.bytes().div_ceil(256 * 64);
        assert!((shape.bytes()..=most).contains(&taken), "{taken}, not {}", shape.bytes());
    }
}
