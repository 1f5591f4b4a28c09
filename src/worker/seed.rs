//! The secret for hashing callers.

use super::host::Host;
use diana_policy::key::Seed;
use diana_policy::port::SharedData;

/// The secret of this gateway. The first worker draws it and writes it to shared data.
pub(crate) fn agree(namespace: &str, data: &dyn SharedData, host: &dyn Host) -> Seed {
    let key = format!("diana/1/{namespace}/seed");
    let known = || data.get(&key).and_then(|(bytes, _)| bytes.try_into().ok());
    let drawn = host.random().to_le_bytes();
    let agreed = match known() {
        Some(agreed) => agreed,
        None if data.swap(&key, &drawn, None) => drawn,
        None => known().unwrap_or(drawn),
    };
    let halves = u128::from_le_bytes(agreed);
    Seed { k0: halves as u64, k1: (halves >> 64) as u64 }
}
