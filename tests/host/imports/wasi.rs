//! The part of WASI that a module for `wasm32-wasip1` uses.

use wasmi::Linker;

use super::host_functions;
use crate::guest::Guest;
use crate::memory::{Call, read, write, write_u32, write_u64};
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "wasi_snapshot_preview1",
        clock_time_get(clock: u32, precision: u64, time: u32);
        random_get(buffer: u32, size: u32);
        environ_sizes_get(count: u32, size: u32);
        environ_get(pointers: u32, text: u32);
        fd_write(file: u32, vectors: u32, count: u32, written: u32);
        sched_yield();
    );
    linker
        .func_wrap("wasi_snapshot_preview1", "proc_exit", proc_exit)
        .expect("a host function is linked once");
}

const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;

fn clock_time_get(call: &mut Call, clock: u32, _precision: u64, time: u32) -> Outcome {
    let clocks = &call.data().outside.clock;
    let now = match clock {
        REALTIME => clocks.wall(),
        MONOTONIC => clocks.monotonic(),
        _ => return Err(Status::Unimplemented.into()),
    };
    write_u64(call, time, now * 1_000)
}

fn random_get(call: &mut Call, buffer: u32, size: u32) -> Outcome {
    let mut bytes = vec![0; size as usize];
    match call.data().fixed_random {
        Some(bits) => bytes.iter_mut().zip(bits.to_le_bytes()).for_each(|(to, from)| *to = from),
        None => call.data_mut().random.fill(&mut bytes),
    }
    write(call, buffer, &bytes)
}

fn environment(call: &Call) -> Vec<Vec<u8>> {
    let variables = call.data().outside.environment.borrow();
    variables.iter().map(|(name, value)| format!("{name}={value}\0").into_bytes()).collect()
}

fn environ_sizes_get(call: &mut Call, count: u32, size: u32) -> Outcome {
    let lines = environment(call);
    write_u32(call, count, u32::try_from(lines.len()).expect("few variables"))?;
    write_u32(call, size, u32::try_from(lines.concat().len()).expect("short variables"))
}

fn environ_get(call: &mut Call, pointers: u32, text: u32) -> Outcome {
    let mut at = text;
    for (index, line) in (0..).zip(environment(call)) {
        write_u32(call, pointers + 4 * index, at)?;
        write(call, at, &line)?;
        at += u32::try_from(line.len()).expect("short variables");
    }
    Ok(())
}

/// Standard output and error go to the log, as in Envoy.
fn fd_write(call: &mut Call, file: u32, vectors: u32, count: u32, written: u32) -> Outcome {
    let level = match file {
        1 => "stdout",
        2 => "stderr",
        _ => return Err(Status::Unimplemented.into()),
    };
    let mut line = Vec::new();
    for index in 0..count {
        let vector = read(call, vectors + 8 * index, 8)?;
        let (at, size) = vector.split_at(4);
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        line.extend(read(call, number(at), number(size))?);
    }
    write_u32(call, written, u32::try_from(line.len()).expect("short lines"))?;
    let line = format!("[{level}] {}", String::from_utf8_lossy(&line).trim_end());
    call.data_mut().log.push(line);
    Ok(())
}

fn sched_yield(_: &mut Call) -> Outcome {
    Ok(())
}

/// Does nothing, as in Envoy.
fn proc_exit(mut call: Call<'_>, status: u32) {
    call.data_mut().log.push(format!("[proc_exit] {status}"));
}
