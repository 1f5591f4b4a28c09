//! Metrics. Each VM has its ids, and the process has the values.

use wasmi::Linker;

use super::host_functions;
use crate::guest::Guest;
use crate::memory::{Call, text, write_u32, write_u64};
use crate::metrics::Kind;
use crate::status::{Outcome, Status};

pub fn link(linker: &mut Linker<Guest>) {
    host_functions!(linker, "env",
        proxy_define_metric(kind: u32, name: u32, name_size: u32, id: u32);
        proxy_increment_metric(id: u32, offset: i64);
        proxy_record_metric(id: u32, value: u64);
        proxy_get_metric(id: u32, value: u32);
    );
}

fn proxy_define_metric(call: &mut Call, kind: u32, name: u32, name_size: u32, id: u32) -> Outcome {
    let kind = Kind::from_abi(kind).ok_or(Status::BadArgument)?;
    let name = text(call, name, name_size)?;
    let guest = call.data_mut();
    guest.outside.metrics.borrow_mut().define(&name, kind);
    let number = u32::try_from(guest.metrics.len()).expect("far fewer metrics") << 2 | kind as u32;
    guest.metrics.insert(number, (name, kind));
    write_u32(call, id, number)
}

fn proxy_increment_metric(call: &mut Call, id: u32, offset: i64) -> Outcome {
    let (name, kind) = call.data().metric(id)?;
    Ok(call.data().outside.metrics.borrow_mut().increment(&name, kind, offset)?)
}

fn proxy_record_metric(call: &mut Call, id: u32, value: u64) -> Outcome {
    let (name, kind) = call.data().metric(id)?;
    call.data().outside.metrics.borrow_mut().record(&name, kind, value);
    Ok(())
}

fn proxy_get_metric(call: &mut Call, id: u32, value: u32) -> Outcome {
    let (name, kind) = call.data().metric(id)?;
    if kind == Kind::Histogram {
        return Err(Status::BadArgument.into());
    }
    let found = call.data().outside.metrics.borrow().get(&name, kind);
    write_u64(call, value, found.unwrap_or_default())
}
