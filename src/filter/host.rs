//! The core's ports, implemented by the host.

use std::borrow::Cow;
use std::cell::Cell;

use super::{abi, pairs};
use crate::key::Seed;
use crate::port::{Clock, HeaderName, Property, Pseudo, Request, Values};
use crate::time::{Micros, Now, SECOND};

/// The request of the stream that the host is calling about.
pub(super) struct HostRequest;

impl Request for HostRequest {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        let name = match which {
            Pseudo::Path => ":path",
            Pseudo::Method => ":method",
            Pseudo::Authority => ":authority",
        };
        abi::header(abi::REQUEST_HEADERS, name).map(Cow::Owned)
    }

    /// The host's look-up by name returns only the first of several values; its property has all
    /// of them with commas between. So only a value with a comma is looked at more closely.
    fn header(&self, name: &HeaderName) -> Values<'_> {
        match abi::property(name.property().encoded()) {
            None => Values::None,
            Some(value) if !value.contains(&b',') => Values::One(Cow::Owned(value)),
            Some(_) => all_values(name.as_str()),
        }
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        abi::property(property.encoded()).map(Cow::Owned)
    }
}

#[cold]
fn all_values(name: &str) -> Values<'static> {
    let map = abi::headers(abi::REQUEST_HEADERS).unwrap_or_default();
    // Should the host not hand out the map, nobody can tell which value is the caller's own.
    let mut values = pairs::values(&map, name).unwrap_or_default();
    match values.pop() {
        Some(value) if values.is_empty() => Values::One(Cow::Owned(value)),
        Some(value) => {
            values.push(value);
            Values::Many(values)
        }
        None => Values::Many(Vec::new()),
    }
}

thread_local! {
    static CLOCK: HostClock = const { HostClock { ahead: Cell::new(0), read: Cell::new(None) } };
}

/// The clocks of the host. The monotonic one is read each time; the wall clock is that plus an
/// offset, which is read anew at most once a second.
#[derive(Clone)]
struct HostClock {
    /// How far the wall clock is ahead of the monotonic one.
    ahead: Cell<i64>,
    /// When that was last read.
    read: Cell<Option<Micros>>,
}

/// The clocks of this VM, and how far the wall clock was found to have stepped back.
pub(super) struct VmClock<'a> {
    /// Called with the size of a step back of the wall clock.
    pub(super) stepped_back: &'a dyn Fn(Micros),
}

impl Clock for VmClock<'_> {
    fn now(&self) -> Now {
        CLOCK.with(|clock| clock.now(self.stepped_back))
    }
}

impl HostClock {
    fn now(&self, stepped_back: &dyn Fn(Micros)) -> Now {
        let mono = abi::monotonic();
        let due = self.read.get().is_none_or(|read| mono.saturating_sub(read) >= SECOND);
        if due {
            let ahead = abi::wall() as i64 - mono as i64;
            let back = self.ahead.get().saturating_sub(ahead);
            // Slewing by a time server moves it by less than a millisecond in a second.
            if self.read.replace(Some(mono)).is_some() && back > SECOND as i64 {
                stepped_back(back.unsigned_abs());
            }
            self.ahead.set(ahead);
        }
        Now { mono, wall: mono.saturating_add_signed(self.ahead.get()) }
    }
}

/// A CAS number that no value ever has: written with it, a value is only ever inserted.
const INSERT: u32 = u32::MAX;

/// The secret that callers are hashed with, the same in all workers of this gateway: whoever
/// comes first draws it and leaves it in shared data.
pub(super) fn seed(namespace: &str) -> Seed {
    let key = format!("diana/1/{namespace}/seed");
    let drawn = abi::random().unwrap_or_default();
    let agreed = match abi::shared_data(&key).and_then(|bytes| bytes.try_into().ok()) {
        Some(agreed) => agreed,
        None if abi::set_shared_data(&key, &drawn, INSERT) => drawn,
        None => abi::shared_data(&key).and_then(|bytes| bytes.try_into().ok()).unwrap_or(drawn),
    };
    let halves = u128::from_le_bytes(agreed);
    Seed { k0: halves as u64, k1: (halves >> 64) as u64 }
}
