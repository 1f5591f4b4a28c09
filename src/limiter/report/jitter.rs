//! The time that is added to the retry delay of a refusal, so that clients which were refused
//! together do not return together.

use std::net::IpAddr;

use diana_policy::key::KeyHasher;
use diana_policy::time::{Micros, Now, SECOND};

/// The jitter of a refusal: the same for all requests of its callers in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jitter {
    /// Its maximum in ticks; 0 if the response has none.
    most: Micros,
    /// The second of the refusal since 1970.
    second: u64,
    /// Distinguishes the callers, as finely as the rules of the request do. `None` if no rule
    /// distinguishes them.
    caller: Option<u64>,
}

impl Jitter {
    /// Up to `most` ticks for a refusal at `now`. `caller` is called if there is any jitter.
    pub(crate) fn new(most: Micros, now: Now, caller: impl FnOnce() -> Option<u64>) -> Jitter {
        let caller = if most == 0 { None } else { caller() };
        Jitter { most, second: now.wall / SECOND, caller }
    }

    /// Returns true if the rules do not distinguish the callers, so that [`Jitter::spread`] has to
    /// do it by their addresses.
    #[must_use]
    pub fn needs_address(&self) -> bool {
        self.most > 0 && self.caller.is_none()
    }

    /// Distinguishes the callers by their addresses.
    pub fn spread(&mut self, address: Option<IpAddr>) {
        let mut hasher = KeyHasher::public();
        match address {
            None => return,
            Some(IpAddr::V4(address)) => hasher.part(0, &address.octets()),
            Some(IpAddr::V6(address)) => hasher.part(0, &address.octets()),
        }
        self.caller = Some(hasher.finish().hash);
    }

    /// The ticks to add.
    #[must_use]
    pub fn ticks(&self) -> Micros {
        if self.most == 0 {
            return 0;
        }
        let mut hasher = KeyHasher::public();
        hasher.part(0, &self.caller.unwrap_or_default().to_le_bytes());
        hasher.part(1, &self.second.to_le_bytes());
        hasher.finish().hash % (self.most + 1)
    }
}
