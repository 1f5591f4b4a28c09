//! The callers.

use std::borrow::Cow;
use std::net::IpAddr;

use diana_policy::key::{Key, KeyHasher, Seed};
use diana_policy::port::{Property, Pseudo, Request, Values};
use fastrand::Rng;

/// Callers, each with its cumulative share of all requests.
pub struct Crowd(Vec<f64>);

impl Crowd {
    /// This number of callers with a Zipf distribution: the n-th caller has 1/n^`exponent` times
    /// the requests of the first. With 0 all have equally many.
    pub fn zipf(callers: u32, exponent: f64) -> Crowd {
        let weights = (1..=callers).scan(0.0, |sum, place| {
            *sum += f64::from(place).powf(-exponent);
            Some(*sum)
        });
        let mut sums: Vec<f64> = weights.collect();
        let all = sums.last().copied().unwrap_or(1.0);
        sums.iter_mut().for_each(|sum| *sum /= all);
        Crowd(sums)
    }

    /// The caller of the next request.
    pub fn pick(&self, rng: &mut Rng) -> u32 {
        let at = rng.f64();
        self.0.partition_point(|sum| *sum <= at).min(self.0.len() - 1) as u32
    }
}

/// A caller's request.
pub struct Caller {
    name: [u8; 8],
}

impl Caller {
    pub fn new(number: u32) -> Caller {
        let name = std::array::from_fn(|place| b'a' + (number >> (4 * place) & 15) as u8);
        Caller { name }
    }

    /// Its key under a `global` rule.
    pub fn key(&self, seed: &Seed) -> Key {
        let mut hasher = KeyHasher::new(seed);
        hasher.part(0, &self.name);
        hasher.finish()
    }
}

impl Request for Caller {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        (which == Pseudo::Path).then_some(Cow::Borrowed(b"/"))
    }

    fn header(&self, name: &str) -> Values<'_> {
        match name {
            "x-account-id" => Values::One(&self.name),
            _ => Values::None,
        }
    }

    fn client(&self) -> Option<IpAddr> {
        None
    }

    fn property(&self, _: &Property) -> Option<Cow<'_, [u8]>> {
        None
    }
}
