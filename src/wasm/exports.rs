//! What the host calls. It calls every one of these that there is, for each request, so an empty one would cost a crossing.

#![allow(
    unsafe_code,
    reason = "of a name that is not mangled the compiler cannot tell that it is the only one"
)]

use super::{abi, contexts, http, plugin, system};

/// How the host learns which version of the ABI this is.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_abi_version_0_2_1() {}

/// Before anything else.
#[unsafe(no_mangle)]
pub extern "C" fn _initialize() {
    system::initialize();
    std::panic::set_hook(Box::new(|panic| abi::log(abi::CRITICAL, &panic.to_string())));
}

/// Memory for what the host hands over, which [`abi`] takes back.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    abi::allocate(size)
}

/// A root begins, or a stream of one.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_context_create(id: u32, root: u32) {
    if root == 0 { contexts::begin_root(id) } else { contexts::begin_stream(id, root) }
}

/// A root or a stream has ended.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_delete(id: u32) {
    if contexts::is_root(id) {
        contexts::take_root(id).into_iter().for_each(|root| plugin::end(id, root));
    } else {
        contexts::end_stream(id, http::end);
    }
}

/// Whether the configuration is in force.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_configure(root: u32, size: usize) -> bool {
    contexts::with_root(root, |it| plugin::configure(root, it, size)).unwrap_or(false)
}

/// The timer of a root.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_tick(root: u32) {
    contexts::with_root(root, |it| plugin::tick(root, it));
}

/// The answer to a call of a root.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_http_call_response(
    root: u32,
    token: u32,
    headers: usize,
    size: usize,
    _trailers: usize,
) {
    contexts::with_root(root, |it| plugin::answer(root, it, token, (headers, size)));
}

/// Whether the request is to wait, which it does also when it was answered.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_request_headers(id: u32, _headers: usize, _is_all: bool) -> bool {
    !contexts::request(id, http::begin, http::request)
}

/// Whether the response is to wait.
#[unsafe(no_mangle)]
pub extern "C" fn proxy_on_response_headers(id: u32, _headers: usize, _is_all: bool) -> bool {
    contexts::with_stream(id, http::response);
    false
}
