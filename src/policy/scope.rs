//! How widely usage is counted, and what that takes.

/// How widely usage is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In each worker.
    Local,
    /// In the gateway.
    Gateway,
    /// In the fleet.
    Global,
}

impl Scope {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Scope::Local => "local",
            Scope::Gateway => "gateway",
            Scope::Global => "global",
        }
    }
}

/// Bytes that a rule's callers take at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// In each worker.
    pub worker: u64,
    /// In the host, once for all workers.
    pub shared: u64,
}

impl Memory {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Memory) -> Memory {
        Memory { worker: self.worker + other.worker, shared: self.shared + other.shared }
    }
}
