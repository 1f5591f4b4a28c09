//! Log, time, timer, and the configuration.

use wasmi::Linker;

use super::host_functions;
use crate::guest::Guest;
use crate::memory::{Call, give, text, write_u32, write_u64};
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_log(level: u32, message: u32, size: u32);
        proxy_get_log_level(level: u32);
        proxy_get_current_time_nanoseconds(time: u32);
        proxy_set_tick_period_milliseconds(period: u32);
        proxy_get_buffer_bytes(kind: u32, start: u32, max: u32, address: u32, size: u32);
    );
}

const LEVELS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "critical"];
const INFO: u32 = 2;

fn proxy_log(call: &mut Call, level: u32, message: u32, size: u32) -> Outcome {
    let level = LEVELS.get(level as usize).ok_or(Status::BadArgument)?;
    let line = format!("[{level}] {}", text(call, message, size)?);
    call.data_mut().log.push(line);
    Ok(())
}

fn proxy_get_log_level(call: &mut Call, level: u32) -> Outcome {
    write_u32(call, level, INFO)
}

fn proxy_get_current_time_nanoseconds(call: &mut Call, time: u32) -> Outcome {
    let now = call.data().outside.clock.wall();
    write_u64(call, time, now * 1_000)
}

/// The timer belongs to the root, even if a stream sets it.
fn proxy_set_tick_period_milliseconds(call: &mut Call, period: u32) -> Outcome {
    let guest = call.data_mut();
    let id = guest.root_of_context();
    if !guest.roots.contains_key(&id) {
        return Err(Status::BadArgument.into());
    }
    guest.set_timer(id, period);
    Ok(())
}

const CALL_OUT_BODY: u32 = 4;
const VM_CONFIGURATION: u32 = 6;
const PLUGIN_CONFIGURATION: u32 = 7;

fn proxy_get_buffer_bytes(
    call: &mut Call,
    kind: u32,
    start: u32,
    max: u32,
    address: u32,
    size: u32,
) -> Outcome {
    let guest = call.data();
    let root = guest.roots.get(&guest.root_of_context()).filter(|root| root.configuring);
    let buffer = match kind {
        CALL_OUT_BODY => guest.call_outs.response.as_ref().map(|response| response.body.as_slice()),
        VM_CONFIGURATION => root.map(|_| [].as_slice()),
        PLUGIN_CONFIGURATION => root.map(|root| root.config.as_bytes()),
        _ => None,
    };
    let buffer = buffer.ok_or(Status::NotFound)?;
    let end = start.checked_add(max).ok_or(Status::BadArgument)? as usize;
    let bytes = buffer.get(start as usize..end.min(buffer.len())).unwrap_or_default().to_vec();
    if bytes.is_empty() { Ok(()) } else { give(call, &bytes, address, size) }
}
