//! All functions that a module may import. A module with any other import cannot be loaded.

mod context;
mod general;
mod headers;
mod http_call;
mod metrics;
mod property;
mod shared_data;
mod unimplemented;
mod wasi;

use wasmi::{Engine, Error, Linker};

use super::guest::Guest;
use super::memory::Call;

/// Links host functions. Each counts its calls, checks that it is allowed now, and converts its
/// outcome into the status for the module.
macro_rules! host_functions {
    ($linker:ident, $module:literal, $($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        $linker
            .func_wrap(
                $module,
                stringify!($name),
                |mut call: $crate::memory::Call<'_>, $($arg: $ty),*| {
                    $crate::imports::enter(&mut call, stringify!($name))?;
                    $crate::status::to_wasm($name(&mut call, $($arg),*))
                },
            )
            .expect("a host function is linked once");
    )*};
}
use host_functions;

pub fn linker(engine: &Engine) -> Linker<Guest> {
    let mut linker = Linker::new(engine);
    context::link(&mut linker);
    general::link(&mut linker);
    headers::link(&mut linker);
    http_call::link(&mut linker);
    metrics::link(&mut linker);
    property::link(&mut linker);
    shared_data::link(&mut linker);
    unimplemented::link(&mut linker);
    wasi::link(&mut linker);
    linker
}

/// Host functions that may be used before the module is initialised and while it allocates.
const UNRESTRICTED: [&str; 8] = [
    "proxy_log",
    "fd_write",
    "clock_time_get",
    "random_get",
    "environ_get",
    "environ_sizes_get",
    "args_get",
    "args_sizes_get",
];

fn enter(call: &mut Call, name: &'static str) -> Result<(), Error> {
    let guest = call.data_mut();
    if guest.restricted && !UNRESTRICTED.contains(&name) {
        return Err(Error::new(format!("restricted_callback: {name}")));
    }
    *guest.calls.entry(name).or_default() += 1;
    Ok(())
}
