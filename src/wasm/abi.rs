//! The host's functions as they are. No answer of the host is unexpected. Every call gets valid slices; what the host
//! returns was allocated by `proxy_on_memory_allocate`, as a boxed slice of exactly the size it names or in the buffer
//! that is lent.

#![allow(unsafe_code)]

pub(super) mod metrics;

const OK: u32 = 0;
const BAD_ARGUMENT: u32 = 2;

/// Levels of the log, in the numbering of the ABI.
pub(super) const INFO: u32 = 2;
/// Something needs a look.
pub(super) const WARN: u32 = 3;
/// Something does not work.
pub(super) const ERROR: u32 = 4;
/// The VM is about to die.
pub(super) const CRITICAL: u32 = 5;

/// Request headers, in the numbering of the ABI.
pub(super) const REQUEST_HEADERS: u32 = 0;
/// Response headers.
pub(super) const RESPONSE_HEADERS: u32 = 2;
/// Headers of the answer to a call.
pub(super) const CALL_HEADERS: u32 = 6;
/// The body of the answer to a call.
pub(super) const CALL_BODY: u32 = 4;
/// The plugin's configuration.
pub(super) const PLUGIN_CONFIGURATION: u32 = 7;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_get_property(path: *const u8, size: usize, data: *mut *mut u8, len: *mut usize)
    -> u32;
    fn proxy_set_property(path: *const u8, size: usize, data: *const u8, len: usize) -> u32;
    fn proxy_get_header_map_value(
        map: u32,
        name: *const u8,
        size: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_add_header_map_value(
        map: u32,
        name: *const u8,
        size: usize,
        value: *const u8,
        len: usize,
    ) -> u32;
    fn proxy_replace_header_map_value(
        map: u32,
        name: *const u8,
        size: usize,
        value: *const u8,
        len: usize,
    ) -> u32;
    fn proxy_remove_header_map_value(map: u32, name: *const u8, size: usize) -> u32;
    fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, len: *mut usize) -> u32;
    fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_len: usize,
        body: *const u8,
        body_len: usize,
        headers: *const u8,
        headers_len: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        size: usize,
        data: *mut *mut u8,
        len: *mut usize,
        cas: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(
        key: *const u8,
        size: usize,
        data: *const u8,
        len: usize,
        cas: u32,
    ) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_set_effective_context(context: u32) -> u32;
    fn proxy_continue_stream(stream_type: u32) -> u32;
    fn proxy_log(level: u32, line: *const u8, size: usize) -> u32;
    fn proxy_http_call(
        cluster: *const u8,
        size: usize,
        headers: *const u8,
        headers_len: usize,
        body: *const u8,
        body_len: usize,
        trailers: *const u8,
        trailers_len: usize,
        timeout: u32,
        token: *mut u32,
    ) -> u32;
}

/// Runs a call that returns bytes; nothing if the host has none.
fn returned(call: impl FnOnce(*mut *mut u8, *mut usize) -> u32) -> Option<Vec<u8>> {
    let mut data: *mut u8 = std::ptr::null_mut();
    let mut len: usize = 0;
    let status = call(&raw mut data, &raw mut len);
    if status != OK {
        return None;
    }
    if data.is_null() {
        return Some(Vec::new());
    }
    // SAFETY: the host allocated `len` bytes by `allocate`, and hands them over.
    Some(unsafe { Vec::from_raw_parts(data, len, len) })
}

/// Allocates `size` bytes, which the host fills.
pub(super) fn allocate(size: usize) -> *mut u8 {
    Box::into_raw(Box::<[u8]>::new_uninit_slice(size)).cast()
}

pub(super) fn property(path: &[u8]) -> Option<Vec<u8>> {
    // SAFETY: see the module.
    returned(|data, len| unsafe { proxy_get_property(path.as_ptr(), path.len(), data, len) })
}

pub(super) fn set_property(path: &str, value: &[u8]) -> bool {
    // SAFETY: see the module.
    let status =
        unsafe { proxy_set_property(path.as_ptr(), path.len(), value.as_ptr(), value.len()) };
    status == OK
}

/// The client's address and port.
pub(super) fn source_address() -> Option<Vec<u8>> {
    let path = b"source\0address";
    // SAFETY: see the module.
    returned(|data, len| unsafe { proxy_get_property(path.as_ptr(), path.len(), data, len) })
}

/// The first value of a header.
pub(super) fn header(map: u32, name: &str) -> Option<Vec<u8>> {
    // SAFETY: see the module.
    returned(|data, len| unsafe {
        proxy_get_header_map_value(map, name.as_ptr(), name.len(), data, len)
    })
}

pub(super) fn add_header(map: u32, name: &str, value: &str) -> bool {
    // SAFETY: see the module.
    let status = unsafe {
        proxy_add_header_map_value(map, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    };
    status == OK
}

/// Sets a header, whatever values it had.
pub(super) fn set_header(map: u32, name: &str, value: &str) {
    // SAFETY: see the module.
    _ = unsafe {
        proxy_replace_header_map_value(map, name.as_ptr(), name.len(), value.as_ptr(), value.len())
    };
}

/// Takes all values of a header off.
pub(super) fn remove_header(map: u32, name: &str) {
    // SAFETY: see the module. What is not there need not be taken off.
    _ = unsafe { proxy_remove_header_map_value(map, name.as_ptr(), name.len()) };
}

/// All headers, still serialised.
pub(super) fn headers(map: u32) -> Option<Vec<u8>> {
    // SAFETY: see the module.
    returned(|data, len| unsafe { proxy_get_header_map_pairs(map, data, len) })
}

pub(super) fn buffer(buffer: u32, max: usize) -> Option<Vec<u8>> {
    // SAFETY: see the module.
    returned(|data, len| unsafe { proxy_get_buffer_bytes(buffer, 0, max, data, len) })
}

/// Answers the request. `headers` are serialised; a request that Envoy takes for gRPC gets `grpc_status`.
pub(super) fn reply(
    status: u32,
    details: &str,
    body: &[u8],
    headers: &[u8],
    grpc_status: i32,
) -> bool {
    // SAFETY: see the module.
    let status = unsafe {
        proxy_send_local_response(
            status,
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            grpc_status,
        )
    };
    status == OK
}

/// Calls a cluster, with serialised headers, for so many milliseconds. The token that the answer bears.
///
/// # Errors
///
/// The reason why nothing was sent.
pub(super) fn call(
    cluster: &str,
    headers: &[u8],
    body: &[u8],
    timeout: u32,
) -> Result<u32, &'static str> {
    let mut token = 0;
    // SAFETY: see the module. No bytes are no trailers.
    let status = unsafe {
        proxy_http_call(
            cluster.as_ptr(),
            cluster.len(),
            headers.as_ptr(),
            headers.len(),
            body.as_ptr(),
            body.len(),
            body.as_ptr(),
            0,
            timeout,
            &raw mut token,
        )
    };
    match status {
        OK => Ok(token),
        BAD_ARGUMENT => Err("Envoy knows no such cluster"),
        _ => Err("the cluster has no endpoint that could be asked"),
    }
}

/// A value that all workers share, and the number of its last write.
pub(super) fn shared_data(key: &str) -> Option<(Vec<u8>, u32)> {
    let mut cas = 0;
    // SAFETY: see the module.
    let bytes = returned(|data, len| unsafe {
        proxy_get_shared_data(key.as_ptr(), key.len(), data, len, &raw mut cas)
    });
    bytes.map(|bytes| (bytes, cas))
}

/// Writes shared data, whatever was there before unless `cas` says otherwise.
pub(super) fn set_shared_data(key: &str, value: &[u8], cas: u32) -> bool {
    // SAFETY: see the module.
    let status =
        unsafe { proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas) };
    status == OK
}

/// Lets a paused request go on, whatever context the host is calling about; `root` is the context
/// that further calls are about.
pub(super) fn resume(stream: u32, root: u32) {
    const REQUEST: u32 = 0;
    // SAFETY: no memory is involved. A stream that has ended needs nothing more.
    _ = unsafe {
        proxy_set_effective_context(stream) == OK && proxy_continue_stream(REQUEST) == OK
    };
    // SAFETY: as above.
    _ = unsafe { proxy_set_effective_context(root) };
}

/// Makes another context the one that further calls are about. Whether there is such a context; what is
/// asked about a stream that has ended fails in any case.
pub(super) fn set_effective_context(context: u32) -> bool {
    // SAFETY: no memory is involved.
    let status = unsafe { proxy_set_effective_context(context) };
    status == OK
}

pub(super) fn set_tick_period(milliseconds: u32) {
    // SAFETY: see the module. The host has no reason to refuse.
    _ = unsafe { proxy_set_tick_period_milliseconds(milliseconds) };
}

/// Writes a line to the host's log.
pub(super) fn log(level: u32, line: &str) {
    // SAFETY: see the module. There is nowhere to report that a line could not be logged.
    _ = unsafe { proxy_log(level, line.as_ptr(), line.len()) };
}
