//! The scope of counts, and the memory that it takes.

/// The scope of a rule's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each worker.
    Local,
    /// The gateway.
    Gateway,
    /// The fleet.
    Global,
}

impl Scope {
    /// The name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Local => "local",
            Scope::Gateway => "gateway",
            Scope::Global => "global",
        }
    }
}

/// Maximum memory for a rule's callers in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// In each worker.
    pub worker: u64,
    /// In the host, once for all workers.
    pub shared: u64,
}

impl Memory {
    /// The sum of both.
    #[must_use]
    pub fn with(self, other: Memory) -> Memory {
        Memory { worker: self.worker + other.worker, shared: self.shared + other.shared }
    }
}
