//! Shared data.

use wasmi::Linker;

use super::host_functions;
use crate::guest::Guest;
use crate::memory::{Call, give, read, write_u32};
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_get_shared_data(key: u32, key_size: u32, address: u32, size: u32, cas: u32);
        proxy_set_shared_data(key: u32, key_size: u32, value: u32, value_size: u32, cas: u32);
    );
}

fn proxy_get_shared_data(
    call: &mut Call,
    key: u32,
    key_size: u32,
    address: u32,
    size: u32,
    cas: u32,
) -> Outcome {
    let key = read(call, key, key_size)?;
    call.data().outside.interrupt();
    let found = call.data().outside.shared_data.borrow().get(&key).cloned();
    let (value, number) = found.ok_or(Status::NotFound)?;
    give(call, &value, address, size)?;
    write_u32(call, cas, number)
}

fn proxy_set_shared_data(
    call: &mut Call,
    key: u32,
    key_size: u32,
    value: u32,
    value_size: u32,
    cas: u32,
) -> Outcome {
    let key = read(call, key, key_size)?;
    let value = read(call, value, value_size)?;
    call.data().outside.interrupt();
    Ok(call.data().outside.shared_data.borrow_mut().set(&key, &value, cas)?)
}
