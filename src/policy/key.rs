//! Keys: callers as hashes.

use std::fmt;
use std::hash::Hasher;

use crate::number::push_hex;
use siphasher::sip128::{Hash128, Hasher128, SipHasher13};

/// The secret for hashing callers, so that clients cannot target the state of another caller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seed {
    /// First half.
    pub k0: u64,
    /// Second half.
    pub k1: u64,
}

impl Seed {
    /// No secret, for a hash that is the same everywhere.
    pub const PUBLIC: Seed = Seed { k0: 0, k1: 0 };

    /// Identifies the gateway whose secret this is, without disclosing it.
    #[must_use]
    pub fn gateway(&self) -> GatewayId {
        const GATEWAY: usize = 0xfffe;
        GatewayId(Key::of(self, GATEWAY, &[]).hash as u32)
    }
}

/// Identifies a gateway in answers to operators, for as long as its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayId(u32);

impl fmt::Display for GatewayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Identifies a caller under one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// Finds the caller's state. Two callers have the same hash with a probability of 2⁻⁶⁴.
    pub hash: u64,
    /// A second, independent hash, which selects an overflow bucket.
    pub second_hash: u64,
}

impl Key {
    /// The key of a caller with a single value, as by [`KeyHasher::part`]. A separate function
    /// keeps the hasher in registers.
    #[must_use]
    #[inline(never)]
    pub fn of(seed: &Seed, source: usize, value: &[u8]) -> Key {
        let mut hasher = KeyHasher::new(seed);
        hasher.part(source, value);
        hasher.finish()
    }

    /// Selects the shard of Redis. Evenly distributed.
    #[must_use]
    pub fn shard_selector(self) -> u16 {
        (self.second_hash >> 48) as u16
    }

    /// The key with the [`shard_selector`](Key::shard_selector) of `other`, so that both are in the
    /// same shard.
    #[must_use]
    pub fn with_shard_of(self, other: Key) -> Key {
        const OTHER: u64 = 0xffff << 48;
        Key { hash: self.hash, second_hash: self.second_hash & !OTHER | other.second_hash & OTHER }
    }

    /// The only key of a rule for `all`.
    pub const ALL: Key = Key { hash: 0, second_hash: 0 };
    /// The common key of requests without the actor, under `absent: share`.
    pub const SHARED: Key = Key { hash: 1, second_hash: 1 };
}

/// A caller's key as operators read and write it: 32 hexadecimal digits, and the gateway that made
/// it, if each gateway makes its own. All digits are needed: the second half determines the slot in
/// shared data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedKey {
    /// The caller's key.
    pub key: Key,
    /// The gateway that made it. `None` for a key of the whole fleet. Former versions wrote none.
    pub gateway: Option<GatewayId>,
}

impl LoggedKey {
    /// Appends it to a text.
    pub fn push_to(self, text: &mut String) {
        let Key { hash, second_hash } = self.key;
        push_hex(text, [hash >> 32, hash, second_hash >> 32, second_hash].map(|half| half as u32));
        if let Some(GatewayId(gateway)) = self.gateway {
            text.push('-');
            push_hex(text, [gateway]);
        }
    }

    /// Its text.
    #[must_use]
    pub fn spell(self) -> String {
        let mut text = String::with_capacity(41);
        self.push_to(&mut text);
        text
    }

    /// Parses a text of [`LoggedKey::push_to`].
    #[must_use]
    pub fn read(text: &[u8]) -> Option<LoggedKey> {
        let text = str::from_utf8(text).ok()?;
        let (key, gateway) = match text.split_once('-') {
            Some((key, gateway)) => (key, Some(GatewayId(number(gateway, 8)? as u32))),
            None => (text, None),
        };
        let (first, second) = key.split_at_checked(16)?;
        let key = Key { hash: number(first, 16)?, second_hash: number(second, 16)? };
        Some(LoggedKey { key, gateway })
    }
}

/// The number of a text with exactly so many hexadecimal digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

/// Builds a [`Key`] from the parts of a compound actor.
pub struct KeyHasher(SipHasher13);

impl KeyHasher {
    /// Begins a key under a secret.
    #[must_use]
    #[inline]
    pub fn new(seed: &Seed) -> KeyHasher {
        KeyHasher(SipHasher13::new_with_keys(seed.k0, seed.k1))
    }

    /// Begins a hash that is the same in every worker, for selecting callers by percentile.
    #[must_use]
    pub fn public() -> KeyHasher {
        KeyHasher::new(&Seed::PUBLIC)
    }

    /// Adds one part. `source` distinguishes sources: a header with the text of an address is not
    /// that address. The length distinguishes `a` + `bc` from `ab` + `c`.
    #[inline]
    pub fn part(&mut self, source: usize, value: &[u8]) {
        // No value is 2⁴⁸ bytes long.
        self.0.write_u64(((source as u64) << 48) + value.len() as u64);
        self.0.write(value);
    }

    /// The key.
    #[must_use]
    #[inline]
    pub fn finish(&self) -> Key {
        let Hash128 { h1, h2 } = self.0.finish128();
        Key { hash: h1, second_hash: h2 }
    }
}

#[cfg(test)]
mod tests;
