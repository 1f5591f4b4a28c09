//! Envoy's shared data: one map for all VMs, and one counter for all keys.

use std::collections::BTreeMap;

use super::status::Status;

/// Values with the number of their write. Keys cannot be deleted.
#[derive(Default)]
pub struct SharedData {
    entries: BTreeMap<Vec<u8>, (Vec<u8>, u32)>,
    writes: u32,
}

impl SharedData {
    pub fn get(&self, key: &[u8]) -> Option<&(Vec<u8>, u32)> {
        self.entries.get(key)
    }

    /// Stores `value`. A `cas` of zero overwrites unconditionally, and so does any other on an
    /// absent key.
    pub fn set(&mut self, key: &[u8], value: &[u8], cas: u32) -> Result<(), Status> {
        if let Some((_, current)) = self.entries.get(key)
            && cas != 0
            && cas != *current
        {
            return Err(Status::CasMismatch);
        }
        self.writes = self.writes.checked_add(1).unwrap_or(1);
        self.entries.insert(key.to_vec(), (value.to_vec(), self.writes));
        Ok(())
    }

    /// The number of keys, which never decreases.
    pub fn keys(&self) -> usize {
        self.entries.len()
    }
}
