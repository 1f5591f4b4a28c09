//! The chance that a caller finds all of its counters in use, in whole numbers.
//!
//! Callers fall on lines by a Poisson distribution: with a load of λ callers on a line on average,
//! i of them are on that of a newcomer with a chance of λⁱ·e⁻λ / i!. Each has one counter in each of
//! k rows of s, so that all k of a newcomer are in use with a chance of (1 − (1 − 1/s)ⁱ)ᵏ. The sum
//! over i of the products is formula 3 of Putze, Sanders and Singler (2007), with rows. It is the
//! chance that somebody is refused too early if all others have used up their permits, and a bound
//! of it otherwise: a counter that nobody shares counts its caller alone.

/// What a load is a multiple of: so many are one caller on a line.
pub(super) const LOAD: u64 = 1 << 16;

/// The highest load that is considered, in callers on a line; more would not fit an error of a tenth.
const MOST: u64 = 128;

/// Callers on one line that are considered: more are as good as impossible.
const TERMS: usize = 320;

/// One, as a fixed-point number.
const ONE: u64 = 1 << 31;

const MILLION: u64 = 1_000_000;

/// The highest load at which the chance is at most `error` millionths, if it is more than `least`.
pub(super) fn most_load(places: u64, rows: u64, error: u64, least: u64) -> Option<u64> {
    let in_use = in_use(places, rows);
    let (mut fits, mut exceeds) = (least + 1, MOST * LOAD);
    if !is_within(&in_use, fits, error) {
        return None;
    }
    while exceeds - fits > 1 {
        let load = fits.midpoint(exceeds);
        if is_within(&in_use, load, error) { fits = load } else { exceeds = load }
    }
    Some(fits)
}

/// (1 − (1 − 1/s)ⁱ)ᵏ for each number i of callers.
fn in_use(places: u64, rows: u64) -> Vec<u64> {
    let mut free = ONE;
    let mut chances = Vec::with_capacity(TERMS);
    for _ in 0..TERMS {
        let one = ONE - free;
        chances.push((1..rows).fold(one, |all, _| all * one / ONE));
        free = free * (places - 1) / places;
    }
    chances
}

/// Whether the mean of `in_use` over a Poisson distribution is at most `error` millionths. Its terms
/// are computed from the greatest on, as multiples of that, so that none needs e⁻λ.
fn is_within(in_use: &[u64], load: u64, error: u64) -> bool {
    let (mut sum, mut exceeding) = (0, 0);
    let mut add = |number: u64, weight: u64| {
        let chance = in_use.get(number as usize).copied().unwrap_or(ONE);
        sum += weight;
        exceeding += weight * chance / ONE;
    };
    let likeliest = load / LOAD;
    let (mut weight, mut number) = (ONE, likeliest);
    while weight > 0 {
        add(number, weight);
        number += 1;
        weight = weight * load / (number * LOAD);
    }
    weight = ONE;
    for number in (1..=likeliest).rev() {
        weight = weight * (number * LOAD) / load;
        add(number - 1, weight);
    }
    exceeding * MILLION <= error * sum
}
