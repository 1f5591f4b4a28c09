//! The hooks of the module.

#![allow(clippy::too_many_arguments, reason = "Envoy's interface has them")]

use std::ffi::{c_char, c_void};

/// Bytes of either side.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buf {
    pub ptr: *const u8,
    pub len: usize,
}

/// A header of either side.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Header {
    pub name: Buf,
    pub value: Buf,
}

impl Buf {
    pub fn of(bytes: &[u8]) -> Buf {
        Buf { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// A copy of the bytes.
    pub fn copied(self) -> Vec<u8> {
        if self.ptr.is_null() {
            return Vec::new();
        }
        // SAFETY: the module passes valid bytes.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }.to_vec()
    }
}

// Links the module.
use diana_native as _;

macro_rules! hooks {
    ($(fn $short:ident = $name:ident($($arg:ident: $kind:ty),*) $(-> $out:ty)?;)*) => {
        unsafe extern "C" { $(fn $name($($arg: $kind),*) $(-> $out)?;)* }
        // SAFETY: the arguments are those of Envoy's interface.
        $(pub fn $short($($arg: $kind),*) $(-> $out)? { unsafe { $name($($arg),*) } })*
    };
}

hooks! {
    fn program_init = envoy_dynamic_module_on_program_init() -> *const c_char;
    fn config_destroy = envoy_dynamic_module_on_http_filter_config_destroy(module: *const c_void);
    fn config_scheduled = envoy_dynamic_module_on_http_filter_config_scheduled(config: *mut c_void, module: *const c_void, event: u64);
    fn config_callout_done = envoy_dynamic_module_on_http_filter_config_http_callout_done(config: *mut c_void, module: *const c_void, id: u64, result: u32, headers: *const Header, header_count: usize, chunks: *const Buf, chunk_count: usize);
    fn new = envoy_dynamic_module_on_http_filter_new(config: *const c_void, stream: *mut c_void) -> *mut c_void;
    fn request_headers = envoy_dynamic_module_on_http_filter_request_headers(stream: *mut c_void, module: *mut c_void, end: bool) -> u32;
    fn request_body = envoy_dynamic_module_on_http_filter_request_body(stream: *mut c_void, module: *mut c_void, end: bool) -> u32;
    fn response_headers = envoy_dynamic_module_on_http_filter_response_headers(stream: *mut c_void, module: *mut c_void, end: bool) -> u32;
    fn response_trailers = envoy_dynamic_module_on_http_filter_response_trailers(stream: *mut c_void, module: *mut c_void) -> u32;
    fn stream_complete = envoy_dynamic_module_on_http_filter_stream_complete(stream: *mut c_void, module: *mut c_void);
    fn destroy = envoy_dynamic_module_on_http_filter_destroy(module: *mut c_void);
    fn scheduled = envoy_dynamic_module_on_http_filter_scheduled(stream: *mut c_void, module: *mut c_void, event: u64);
}
