//! Shards: the partitions of a namespace's keys.
//!
//! All keys of a shard have one hash tag, so that a Redis Cluster stores them where one script call
//! reaches all of them. A cluster has 16,384 slots, and the CRC16 of the tag determines its slot.
//! The tag of each shard is chosen to fall into the shard's own range of slots. Thus the shards
//! spread evenly over primaries with equal numbers of slots.

use std::rc::Rc;

use diana_policy::key::Key;
use diana_policy::redis::MOST_SHARDS;

/// Slots of a cluster.
const SLOTS: u32 = 16_384;

/// A shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard(u16);

impl Shard {
    /// The shard that also stores the state shared by all gateways.
    pub const FIRST: Shard = Shard(0);

    /// The shard with this number; the first is 0.
    #[must_use]
    pub fn new(number: u16) -> Shard {
        Shard(number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// The number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards(u16);

impl Shards {
    /// One shard with all keys.
    pub const ONE: Shards = Shards(1);

    /// The maximum.
    pub const MOST: u16 = MOST_SHARDS;

    /// This number of shards, clamped to 1 … [`Shards::MOST`].
    #[must_use]
    pub fn new(number: u16) -> Shards {
        Shards(number.clamp(1, Shards::MOST))
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// All shards.
    pub fn all(self) -> impl Iterator<Item = Shard> {
        (0..self.0).map(Shard)
    }

    /// The shard of a caller.
    #[must_use]
    pub fn of(self, caller: Key) -> Shard {
        Shard(((u32::from(caller.shard_selector()) * u32::from(self.0)) >> 16) as u16)
    }

    /// A caller in a shard.
    #[must_use]
    pub fn caller_in(self, shard: Shard) -> Key {
        let selector = (u64::from(shard.0) << 16).div_ceil(self.0.into());
        Key { hash: 0, second_hash: selector << 48 }
    }

    /// How many of `keys` keys of one rule may lie in one shard. Callers are distributed by hash,
    /// so the bound includes four to eight standard deviations.
    #[must_use]
    pub fn share(self, keys: u64) -> u64 {
        let mean = keys.div_ceil(self.0.into());
        let deviations = 8 << (mean.max(1).ilog2() / 2);
        if self == Shards::ONE { keys } else { mean.saturating_add(deviations).min(keys) }
    }
}

/// The hash tags of all shards of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags(Rc<[Box<str>]>);

impl Tags {
    /// The tags for a namespace with this number of shards.
    #[must_use]
    pub fn new(namespace: &str, shards: Shards) -> Tags {
        if shards == Shards::ONE {
            return Tags([format!("2:{namespace}").into()].into());
        }
        let tag = |shard: Shard| {
            let stem = format!("2:{namespace}:{}:", shard.0);
            let crc = crc16(0, stem.as_bytes());
            // The tag of the first shard is independent of their number, since it stores the state
            // shared by all gateways.
            let all = if shard == Shard::FIRST { Shards::MOST } else { shards.0 };
            let is_own = |n: &String| {
                let slot = u32::from(crc16(crc, n.as_bytes())) % SLOTS;
                slot * u32::from(all) / SLOTS == u32::from(shard.0)
            };
            // With a thousand shards, one of a thousand candidates matches.
            let own = (0..=u16::MAX).map(|n| n.to_string()).find(is_own).unwrap_or_default();
            (stem + &own).into()
        };
        Tags(shards.all().map(tag).collect())
    }

    /// The number of shards.
    #[must_use]
    pub fn shards(&self) -> Shards {
        Shards::new(self.0.len() as u16)
    }

    /// The tag of a shard, without braces. Never empty, even for an empty namespace.
    #[must_use]
    pub fn of(&self, shard: Shard) -> &str {
        self.0.get(usize::from(shard.0)).map_or("2:", |tag| tag)
    }
}

/// The CRC16 of a Redis Cluster (XMODEM: polynomial 0x1021, initial value 0), continued from `crc`.
fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x1021 })
        })
    })
}
