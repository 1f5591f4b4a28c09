//! Results of host functions.

/// The statuses of the ABI that this host uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    NotFound = 1,
    BadArgument = 2,
    InvalidMemoryAccess = 6,
    CasMismatch = 8,
    InternalFailure = 10,
    Unimplemented = 12,
}

/// Why a host function failed: a status for the module, or a trap that ends it.
pub enum Fail {
    Status(Status),
    Trap(wasmi::Error),
}

impl From<Status> for Fail {
    fn from(status: Status) -> Fail {
        Fail::Status(status)
    }
}

impl From<wasmi::Error> for Fail {
    fn from(error: wasmi::Error) -> Fail {
        Fail::Trap(error)
    }
}

pub type Outcome = Result<(), Fail>;

/// The result for the module.
pub fn to_wasm(outcome: Outcome) -> Result<u32, wasmi::Error> {
    match outcome {
        Ok(()) => Ok(0),
        Err(Fail::Status(status)) => Ok(status as u32),
        Err(Fail::Trap(error)) => Err(error),
    }
}
