//! The probability that all counters of a caller are in use, in whole numbers.
//!
//! The callers on a line follow a Poisson distribution: with an average load of λ callers per line,
//! a new caller's line has i callers with probability λⁱ·e⁻λ / i!. Each caller has one counter in
//! each of k rows of s, so all k counters of a new caller are in use with probability (1 − (1 −
//! 1/s)ⁱ)ᵏ. The sum of the products over i is formula 3 of Putze, Sanders and Singler (2007), with
//! rows. It is the probability of an early refusal if all other callers have used up their permits.
//! Otherwise it is an upper bound, since an unshared counter counts its caller alone.

/// The unit of load: one caller per line.
pub(super) const LOAD: u64 = 1 << 16;

/// The maximum load in callers per line. A higher one would exceed even an error of a tenth.
const MOST: u64 = 128;

/// Callers per line in the sum. The probability of more is negligible.
const TERMS: usize = 320;

/// One, as a fixed-point number.
const ONE: u64 = 1 << 31;

const MILLION: u64 = 1_000_000;

/// The highest load with a probability of at most `error` millionths. `None` if it does not exceed
/// `least`.
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

/// Returns true if the mean of `in_use` over a Poisson distribution is at most `error` millionths.
/// Terms are computed as multiples of the greatest one, so e⁻λ is not needed.
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
