//! Properties of a request, except its headers, and filter state.

use wasmi::Linker;

use super::host_functions;
use crate::guest::Guest;
use crate::memory::{Call, give, read};
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_get_property(path: u32, path_size: u32, address: u32, size: u32);
        proxy_set_property(path: u32, path_size: u32, value: u32, value_size: u32);
    );
}

fn proxy_get_property(
    call: &mut Call,
    path: u32,
    path_size: u32,
    address: u32,
    size: u32,
) -> Outcome {
    let path = read(call, path, path_size)?;
    let value = property(call.data_mut(), &path).ok_or(Status::NotFound)?;
    give(call, &value, address, size)
}

fn property(guest: &mut Guest, path: &[u8]) -> Option<Vec<u8>> {
    if path == b"plugin_root_id" {
        return Some(guest.root_id.clone().into_bytes());
    }
    let stream = guest.stream()?;
    if let Some(name) = path.strip_prefix(b"request\0headers\0") {
        return stream.is_readable.then(|| stream.request.joined(name))?;
    }
    let state = || stream.filter_state.get(&state_name(path)).cloned();
    stream.request.properties.get(path).cloned().or_else(state)
}

/// Only streams have filter state.
fn proxy_set_property(
    call: &mut Call,
    path: u32,
    path_size: u32,
    value: u32,
    value_size: u32,
) -> Outcome {
    let path = read(call, path, path_size)?;
    let value = read(call, value, value_size)?;
    let stream = call.data_mut().stream().ok_or(Status::NotFound)?;
    stream.filter_state.insert(state_name(&path), value);
    Ok(())
}

/// The name of the filter state that a module reads and sets as this property.
fn state_name(path: &[u8]) -> String {
    format!("wasm.{}", String::from_utf8_lossy(path))
}
