//! Access of host functions to the module's memory.

use wasmi::{AsContext, AsContextMut, Caller, Memory};

use super::guest::Guest;
use super::status::{Fail, Outcome, Status};

pub type Call<'a> = Caller<'a, Guest>;

/// Bytes from the module.
pub fn read(call: &Call, at: u32, size: u32) -> Result<Vec<u8>, Fail> {
    let mut bytes = vec![0; size as usize];
    memory(call).read(call.as_context(), at as usize, &mut bytes).map_err(|_| outside())?;
    Ok(bytes)
}

/// Text from the module.
pub fn text(call: &Call, at: u32, size: u32) -> Result<String, Fail> {
    Ok(String::from_utf8_lossy(&read(call, at, size)?).into_owned())
}

pub fn write(call: &mut Call, at: u32, bytes: &[u8]) -> Outcome {
    memory(call).write(call.as_context_mut(), at as usize, bytes).map_err(|_| outside())
}

pub fn write_u32(call: &mut Call, at: u32, value: u32) -> Outcome {
    write(call, at, &value.to_le_bytes())
}

pub fn write_u64(call: &mut Call, at: u32, value: u64) -> Outcome {
    write(call, at, &value.to_le_bytes())
}

/// Copies bytes into memory that the module allocates, and writes their position and size. Empty
/// bytes are not allocated.
pub fn give(call: &mut Call, bytes: &[u8], address: u32, size: u32) -> Outcome {
    let mut at = 0;
    if !bytes.is_empty() {
        let allocate = call.data().allocate.ok_or_else(outside)?;
        call.data_mut().restricted = true;
        let allocated = allocate.call(call.as_context_mut(), length(bytes));
        call.data_mut().restricted = false;
        at = allocated?;
        if at == 0 {
            return Err(outside());
        }
        write(call, at, bytes)?;
    }
    write_u32(call, address, at)?;
    write_u32(call, size, length(bytes))
}

fn memory(call: &Call) -> Memory {
    call.data().memory.expect("host functions run after instantiation")
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a wasm memory holds 4 GiB")
}

fn outside() -> Fail {
    Status::InvalidMemoryAccess.into()
}
