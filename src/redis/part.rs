//! The parts into which the keys of a namespace fall.
//!
//! All keys of a part have one hash tag, so that a cluster keeps them where one call of the script reaches
//! them all. A cluster has 16,384 slots, and a tag falls into the slot that its CRC16 says: the tag of each part
//! is chosen so that it falls into the part's own share of them. So parts spread evenly over primaries that
//! have an equal number of slots each.

use std::rc::Rc;

use diana_policy::key::Key;

/// Slots of a cluster.
const SLOTS: u32 = 16_384;

/// One of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part(u16);

impl Part {
    /// The one that also keeps what gateways agree upon.
    pub const FIRST: Part = Part(0);

    /// The part with this number; the first is 0.
    #[must_use]
    pub fn new(number: u16) -> Part {
        Part(number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

/// How many parts there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts(u16);

impl Parts {
    /// All keys are together.
    pub const ONE: Parts = Parts(1);

    /// The most that there may be.
    pub const MOST: u16 = 1024;

    /// So many, 1 … [`Parts::MOST`]; another number is taken for the nearest of these.
    #[must_use]
    pub fn new(number: u16) -> Parts {
        Parts(number.clamp(1, Parts::MOST))
    }

    /// How many.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// All of them.
    pub fn all(self) -> impl Iterator<Item = Part> {
        (0..self.0).map(Part)
    }

    /// Where the values of a caller lie.
    #[must_use]
    pub fn of(self, caller: Key) -> Part {
        Part(((u32::from(caller.place()) * u32::from(self.0)) >> 16) as u16)
    }

    /// How many of so many keys of one rule may lie in one part. Callers fall into parts by chance, which is worth
    /// at least four standard deviations, and eight at most.
    #[must_use]
    pub fn share(self, keys: u64) -> u64 {
        let mean = keys.div_ceil(self.0.into());
        let deviations = 8 << (mean.max(1).ilog2() / 2);
        if self == Parts::ONE { keys } else { mean.saturating_add(deviations).min(keys) }
    }
}

/// The hash tags of all parts of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags(Rc<[Box<str>]>);

impl Tags {
    /// Those of a namespace with so many parts.
    #[must_use]
    pub fn new(namespace: &str, parts: Parts) -> Tags {
        if parts == Parts::ONE {
            return Tags([format!("2:{namespace}").into()].into());
        }
        let tag = |part: Part| {
            let stem = format!("2:{namespace}:{}:", part.0);
            let crc = crc16(0, stem.as_bytes());
            // The first one is the same however many there are: what gateways agree upon lies there.
            let all = if part == Part::FIRST { Parts::MOST } else { parts.0 };
            let is_own = |n: &String| {
                let slot = u32::from(crc16(crc, n.as_bytes())) % SLOTS;
                slot * u32::from(all) / SLOTS == u32::from(part.0)
            };
            // One of a thousand fits where there are a thousand parts.
            let own = (0..=u16::MAX).map(|n| n.to_string()).find(is_own).unwrap_or_default();
            (stem + &own).into()
        };
        Tags(parts.all().map(tag).collect())
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> Parts {
        Parts::new(self.0.len() as u16)
    }

    /// The tag of a part, without its braces. It is not empty, whatever the namespace is.
    #[must_use]
    pub fn of(&self, part: Part) -> &str {
        self.0.get(usize::from(part.0)).map_or("2:", |tag| tag)
    }
}

/// The CRC16 of a cluster (XMODEM: polynomial 0x1021, from zero), gone on with from `crc`.
fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x1021 })
        })
    })
}
