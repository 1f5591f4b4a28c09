//! Functions of the ABI without an implementation. They return an error, so that a filter that
//! needs one fails.

use wasmi::{Error, Linker};

use super::enter;
use crate::guest::Guest;
use crate::memory::Call;
use crate::status::Status;

macro_rules! unimplemented_functions {
    ($linker:ident, $module:literal, $status:expr, $($name:ident($($ty:ty),*);)*) => {$(
        $linker
            .func_wrap(
                $module,
                stringify!($name),
                |mut call: Call<'_>, $(_: $ty),*| -> Result<u32, Error> {
                    enter(&mut call, stringify!($name))?;
                    Ok($status)
                },
            )
            .expect("a host function is linked once");
    )*};
}

/// `ENOSYS` of WASI.
const NO_SUCH_CALL: u32 = 52;

pub fn link(linker: &mut Linker<Guest>) {
    unimplemented_functions!(linker, "env", Status::Unimplemented as u32,
        proxy_set_buffer_bytes(u32, u32, u32, u32, u32);
        proxy_set_header_map_pairs(u32, u32, u32);
        proxy_close_stream(u32);
        proxy_register_shared_queue(u32, u32, u32);
        proxy_resolve_shared_queue(u32, u32, u32, u32, u32);
        proxy_dequeue_shared_queue(u32, u32, u32);
        proxy_enqueue_shared_queue(u32, u32, u32);
        proxy_grpc_call(u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32, u32);
        proxy_grpc_stream(u32, u32, u32, u32, u32, u32, u32, u32, u32);
        proxy_grpc_send(u32, u32, u32, u32);
        proxy_grpc_cancel(u32);
        proxy_grpc_close(u32);
        proxy_get_status(u32, u32, u32);
    );
    unimplemented_functions!(linker, "env", Status::NotFound as u32,
        proxy_call_foreign_function(u32, u32, u32, u32, u32, u32);
    );
    unimplemented_functions!(linker, "wasi_snapshot_preview1", NO_SUCH_CALL,
        fd_read(u32, u32, u32, u32);
        fd_seek(u32, i64, u32, u32);
        fd_close(u32);
        fd_fdstat_get(u32, u32);
        fd_fdstat_set_flags(u32, u32);
        fd_prestat_get(u32, u32);
        fd_prestat_dir_name(u32, u32, u32);
        path_open(u32, u32, u32, u32, u32, i64, i64, u32, u32);
        poll_oneoff(u32, u32, u32, u32);
        args_get(u32, u32);
        args_sizes_get(u32, u32);
    );
}
