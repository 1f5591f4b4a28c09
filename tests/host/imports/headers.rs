//! Header maps.

use wasmi::Linker;

use super::host_functions;
use crate::guest::Guest;
use crate::memory::{Call, give, read, text};
use crate::pairs::{self, Headers};
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_get_header_map_pairs(map: u32, address: u32, size: u32);
        proxy_get_header_map_value(
            map: u32, name: u32, name_size: u32, address: u32, size: u32
        );
        proxy_add_header_map_value(
            map: u32, name: u32, name_size: u32, value: u32, value_size: u32
        );
        proxy_replace_header_map_value(
            map: u32, name: u32, name_size: u32, value: u32, value_size: u32
        );
        proxy_remove_header_map_value(map: u32, name: u32, name_size: u32);
    );
}

const REQUEST: u32 = 0;
const RESPONSE: u32 = 2;
const RESPONSE_TRAILERS: u32 = 3;
const CALL_OUT_RESPONSE: u32 = 6;

/// A map, if it is accessible now: request headers until the request passes, response headers and
/// trailers in their callback only, those of a call-out unless it failed.
fn headers(guest: &mut Guest, map: u32) -> Option<&mut Headers> {
    match map {
        REQUEST => {
            let stream = guest.stream()?;
            stream.is_readable.then_some(&mut stream.request.headers)
        }
        RESPONSE => guest.stream()?.response.as_mut(),
        RESPONSE_TRAILERS => guest.stream()?.trailers.as_mut(),
        CALL_OUT_RESPONSE => {
            let response = guest.call_outs.response.as_mut()?;
            (!response.headers.is_empty()).then_some(&mut response.headers)
        }
        _ => None,
    }
}

fn reach(guest: &mut Guest, map: u32) -> Result<&mut Headers, Status> {
    headers(guest, map).ok_or(Status::BadArgument)
}

/// All headers. Empty without an error if the map is inaccessible.
fn proxy_get_header_map_pairs(call: &mut Call, map: u32, address: u32, size: u32) -> Outcome {
    let garbled = call.data_mut().stream().and_then(|stream| stream.request.garbled.clone());
    let bytes = || headers(call.data_mut(), map).map(|headers| pairs::encode(headers));
    let bytes = garbled.filter(|_| map == REQUEST).or_else(bytes);
    give(call, &bytes.unwrap_or_default(), address, size)
}

/// Only the first value.
fn proxy_get_header_map_value(
    call: &mut Call,
    map: u32,
    name: u32,
    name_size: u32,
    address: u32,
    size: u32,
) -> Outcome {
    let name = text(call, name, name_size)?.to_lowercase();
    let headers = reach(call.data_mut(), map)?;
    let first = headers.iter().find(|(found, _)| *found == name).ok_or(Status::NotFound)?;
    let value = first.1.clone();
    give(call, &value, address, size)
}

fn proxy_add_header_map_value(
    call: &mut Call,
    map: u32,
    name: u32,
    name_size: u32,
    value: u32,
    value_size: u32,
) -> Outcome {
    let name = text(call, name, name_size)?.to_lowercase();
    let value = read(call, value, value_size)?;
    reach(call.data_mut(), map)?.push((name, value));
    Ok(())
}

fn proxy_replace_header_map_value(
    call: &mut Call,
    map: u32,
    name: u32,
    name_size: u32,
    value: u32,
    value_size: u32,
) -> Outcome {
    proxy_remove_header_map_value(call, map, name, name_size)?;
    proxy_add_header_map_value(call, map, name, name_size, value, value_size)
}

fn proxy_remove_header_map_value(call: &mut Call, map: u32, name: u32, name_size: u32) -> Outcome {
    let name = text(call, name, name_size)?.to_lowercase();
    reach(call.data_mut(), map)?.retain(|(found, _)| *found != name);
    Ok(())
}
