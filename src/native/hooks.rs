//! The hooks that Envoy calls. No panic leaves them, and no reference to a filter is alive while a change of a stream may call further
//! hooks.

#![allow(unsafe_code)]
#![allow(missing_docs, reason = "the hooks are Envoy's interface")]

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::LazyLock;

use crate::abi::{self, Buf, ConfigCall, HeaderBytes, Map, StreamPointer, list};
use crate::calls::CallReply;
use crate::config::FilterConfig;
use crate::faults;
use crate::filter::{self, HttpFilter};
use crate::module::Module;
use crate::response;
use diana_policy::headers::Headers;
use diana_policy::port::ANSWER_HEADERS;
use diana_worker::Next;

/// The module of this process. Configurations have a reference to it, and filters that of their configuration.
static MODULE: LazyLock<Module> = LazyLock::new(Module::default);

/// The filter of a stream. `None` if it could not be created.
///
/// # Safety
/// The pointer must come from `on_http_filter_new`, and the stream must not have been destroyed.
unsafe fn filter<'h>(filter: *mut HttpFilter) -> Option<&'h mut HttpFilter> {
    // SAFETY: Envoy calls the hooks of a stream on one thread, and none within another: replies and continuations, which call
    // hooks, come after the last use of the reference.
    unsafe { filter.as_mut() }
}

/// Runs a hook of a stream, with the pointer that Envoy passes. `None` after a panic.
fn of_stream<T>(
    hook: &'static str,
    module: *mut HttpFilter,
    run: impl FnOnce(&mut HttpFilter) -> T,
) -> Option<T> {
    // SAFETY: see `filter`.
    let done = faults::caught(hook, || unsafe { filter(module) }.map(run));
    if done.is_none()
        // SAFETY: see `filter`.
        && let Some(filter) = unsafe { filter(module) }
    {
        filter.module.recover(hook);
    }
    done.flatten()
}

/// The configuration of a hook.
///
/// # Safety
/// The pointer must come from `config_new`, and the configuration must not have been destroyed.
unsafe fn configuration<'h>(config: *const FilterConfig) -> Option<&'h FilterConfig> {
    // SAFETY: a configuration exists until its hook `destroy`, and is only shared.
    unsafe { config.as_ref() }
}

const CONTINUE: u32 = 0;
/// The request waits, its body is buffered, and no more is read from the client when the buffer is full.
const STOP_ALL_AND_WATERMARK: u32 = 4;

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    let version = || {
        faults::install();
        abi::version()
    };
    MODULE.guarded("program_init", version).unwrap_or(ptr::null())
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    config: *mut c_void,
    name: Buf,
    text: Buf,
) -> *const FilterConfig {
    // SAFETY: Envoy passes texts that stay during the call.
    let (name, text) = unsafe { (name.bytes(), text.bytes()) };
    config_new(&MODULE, config, name, text)
}

/// Builds a configuration of a module.
pub(crate) fn config_new(
    module: &'static Module,
    config: *mut c_void,
    name: &[u8],
    text: &[u8],
) -> *const FilterConfig {
    let build = || FilterConfig::new(module, &ConfigCall(config), name, text);
    let built = module.guarded("config_new", build).flatten();
    built.map_or(ptr::null(), |config| Box::into_raw(Box::new(config)))
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: *mut FilterConfig) {
    if config.is_null() {
        return;
    }
    // SAFETY: Envoy passes the pointer of `config_new` back, once.
    let config = unsafe { Box::from_raw(config) };
    config.module.guarded("config_destroy", || config.end());
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_scheduled(
    call: *mut c_void,
    config: *const FilterConfig,
    event: u64,
) {
    // SAFETY: see `configuration`.
    let Some(config) = (unsafe { configuration(config) }) else { return };
    let scheduled = || config.scheduled(&ConfigCall(call), event);
    if config.module.guarded("config_scheduled", scheduled).is_none() {
        config.module.metrics.miss();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_config_http_callout_done(
    _call: *mut c_void,
    config: *const FilterConfig,
    id: u64,
    result: u32,
    headers: *const HeaderBytes,
    header_count: usize,
    chunks: *const Buf,
    chunk_count: usize,
) {
    const SUCCESS: u32 = 0;
    // SAFETY: see `configuration`.
    let Some(&FilterConfig { module, number, .. }) = (unsafe { configuration(config) }) else {
        return;
    };
    module.guarded("http_callout_done", || {
        // SAFETY: Envoy passes lists and texts that stay during the call.
        let (headers, chunks) = unsafe { (list(headers, header_count), list(chunks, chunk_count)) };
        let header = |name: &[u8]| {
            let mut texts =
                headers.iter().map(|header| unsafe { (header.name.bytes(), header.value.bytes()) });
            texts.find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        let status =
            header(b":status").and_then(|status| str::from_utf8(status).ok()?.parse().ok());
        let read = |name: &'static str| Some((name, header(name.as_bytes())?.to_vec()));
        let read = ANSWER_HEADERS.into_iter().filter_map(read).collect();
        let body: Vec<u8> =
            chunks.iter().flat_map(|chunk| unsafe { chunk.bytes() }).copied().collect();
        let status = status.filter(|_| result == SUCCESS);
        let call = module.calls.take(number, id, status)?;
        module.deliver(call, CallReply { status, body, headers: read });
        Some(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_new(
    config: *const FilterConfig,
    stream: *mut c_void,
) -> *mut HttpFilter {
    // SAFETY: see `configuration`.
    let Some(config) = (unsafe { configuration(config) }) else { return ptr::null_mut() };
    let call = StreamPointer(stream).call();
    let built = config.module.guarded("new", || HttpFilter::new(config, &call));
    // Without a filter Envoy would respond with 500.
    Box::into_raw(Box::new(built.unwrap_or_else(|| HttpFilter::failed(config))))
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    stream: *mut c_void,
    module: *mut HttpFilter,
    _end: bool,
) -> u32 {
    let decided =
        of_stream("request_headers", module, |it| it.request(&mut StreamPointer(stream).call()));
    // SAFETY: see `filter`.
    let step_of_fault = || unsafe { filter(module) }.map(|it| it.step_of_fault());
    let Some(step) = decided.or_else(step_of_fault) else { return CONTINUE };
    // SAFETY: see `filter`.
    let Some(own) = unsafe { filter(module) }.map(|it| it.module) else { return CONTINUE };
    let applied = own.guarded("effects", || step.apply(&mut StreamPointer(stream).call()));
    match applied.or_else(|| Some(step_of_fault()?.next)) {
        None | Some(Next::Continue) => CONTINUE,
        Some(Next::Wait) => STOP_ALL_AND_WATERMARK,
        Some(Next::Reply(reply)) => {
            // The stream may end within, and free the filter.
            own.guarded("response", || response::send(*reply, StreamPointer(stream).call()));
            STOP_ALL_AND_WATERMARK
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_request_body(
    stream: *mut c_void,
    module: *mut HttpFilter,
    _end: bool,
) -> u32 {
    of_stream("request_body", module, |it| it.request_body(&StreamPointer(stream).call()));
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    stream: *mut c_void,
    module: *mut HttpFilter,
    end: bool,
) -> u32 {
    let mut call = StreamPointer(stream).call();
    let fields = of_stream("response_headers", module, |it| it.response(end, &call));
    for (name, value) in fields.iter().flatten().flat_map(Headers::iter) {
        call.add_header(Map::Response, name, value.as_bytes());
    }
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(
    stream: *mut c_void,
    module: *mut HttpFilter,
) -> u32 {
    of_stream("response_trailers", module, |it| it.trailers(&StreamPointer(stream).call()));
    CONTINUE
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(
    stream: *mut c_void,
    module: *mut HttpFilter,
) {
    of_stream("stream_complete", module, |it| it.end(Some(&StreamPointer(stream).call())));
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_destroy(module: *mut HttpFilter) {
    of_stream("destroy", module, |it| it.end(None));
    if !module.is_null() {
        // SAFETY: Envoy passes the pointer of `new` back, once.
        let filter = unsafe { Box::from_raw(module) };
        filter.module.guarded("destroy", || drop(filter));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(
    stream: *mut c_void,
    module: *mut HttpFilter,
    event: u64,
) {
    // SAFETY: see `filter`.
    let found = unsafe { filter(module) }.and_then(|it| Some((it.module, it.cell()?)));
    let done = of_stream("scheduled", module, |it| it.scheduled(event, StreamPointer(stream)));
    if done.is_none() {
        // SAFETY: see `filter`.
        let missed = || unsafe { filter(module) }.map(|it| it.missed(event, StreamPointer(stream)));
        _ = catch_unwind(AssertUnwindSafe(missed));
    }
    if let Some((module, cell)) = found {
        // The stream may end within, and free the filter.
        module.guarded("scheduled", || filter::act(cell));
    }
}

/// Hooks that Envoy requires, and this module does not need.
macro_rules! unused {
    ($($name:ident($($arg:ty),*) $(-> $out:ty)?;)*) => {
        $(#[unsafe(no_mangle)] pub extern "C" fn $name($(_: $arg),*) $(-> $out)? { $(<$out>::default())? })*
    };
}

unused! {
    envoy_dynamic_module_on_http_filter_request_trailers(*mut c_void, *mut c_void) -> u32;
    envoy_dynamic_module_on_http_filter_response_body(*mut c_void, *mut c_void, bool) -> u32;
    envoy_dynamic_module_on_http_filter_http_callout_done(*mut c_void, *mut c_void, u64, u32, *const c_void, usize, *const c_void, usize);
    envoy_dynamic_module_on_http_filter_http_stream_headers(*mut c_void, *mut c_void, u64, *const c_void, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(*mut c_void, *mut c_void, u64, *const c_void, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(*mut c_void, *mut c_void, u64, *const c_void, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(*mut c_void, *mut c_void, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(*mut c_void, *mut c_void, u64, u32);
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(*mut c_void, *mut c_void);
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(*mut c_void, *mut c_void);
}
