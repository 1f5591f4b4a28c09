//! The functions of Envoy that this module calls, in safe Rust. Envoy's SDK has them all, but no release, and needs libclang and
//! a clone of Envoy's repository.
//!
//! The declarations are those of Envoy 1.38. Since 1.40 Envoy never changes a released function. Functions that 1.38 lacks are
//! looked up by their names when the module is loaded, since a library with an unknown function cannot be loaded.
//!
//! Envoy owns the memory that a getter returns. It is valid until the end of the hook, or until the next setter. So getters
//! borrow a [`StreamCall`], and setters need it exclusively.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::slice;
use std::sync::OnceLock;

use diana_policy::headers::Headers;
use diana_policy::port::Call;
use diana_policy::time::Micros;
use diana_policy::{Metric, MetricKind};

/// Bytes of Envoy or of the module.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buf {
    ptr: *const u8,
    len: usize,
}

/// A header of the module.
#[repr(C)]
pub struct HeaderBytes {
    pub(crate) name: Buf,
    pub(crate) value: Buf,
}

impl Buf {
    const EMPTY: Buf = Buf { ptr: ptr::null(), len: 0 };

    fn of(bytes: &[u8]) -> Buf {
        Buf { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// # Safety
    /// The bytes must outlive `'b`.
    pub(crate) unsafe fn bytes<'b>(self) -> &'b [u8] {
        if self.ptr.is_null() {
            return &[];
        }
        // SAFETY: Envoy returns valid bytes with their length, and the caller chooses a lifetime in which they stay.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }
}

macro_rules! callbacks {
    ($($(#[$doc:meta])* fn $short:ident = $name:ident($($arg:ident: $kind:ty),*) $(-> $out:ty)?;)*) => {
        unsafe extern "C" {
            $($(#[$doc])* #[link_name = stringify!($name)] fn $short($($arg: $kind),*) $(-> $out)?;)*
        }
    };
}

callbacks! {
    fn log_line = envoy_dynamic_module_callback_log(level: u32, line: Buf);
    fn concurrency = envoy_dynamic_module_callback_get_concurrency() -> u32;
    fn is_validation_mode = envoy_dynamic_module_callback_is_validation_mode() -> bool;
    fn worker_index = envoy_dynamic_module_callback_http_filter_get_worker_index(filter: *mut c_void) -> u32;
    fn get_header = envoy_dynamic_module_callback_http_get_header(filter: *mut c_void, map: u32, name: Buf, out: *mut Buf, index: usize, total: *mut usize) -> bool;
    fn headers_size = envoy_dynamic_module_callback_http_get_headers_size(filter: *mut c_void, map: u32) -> usize;
    fn get_headers = envoy_dynamic_module_callback_http_get_headers(filter: *mut c_void, map: u32, out: *mut HeaderBytes) -> bool;
    fn add_header = envoy_dynamic_module_callback_http_add_header(filter: *mut c_void, map: u32, name: Buf, value: Buf) -> bool;
    fn set_header = envoy_dynamic_module_callback_http_set_header(filter: *mut c_void, map: u32, name: Buf, value: Buf) -> bool;
    fn clear_route_cache = envoy_dynamic_module_callback_http_clear_route_cache(filter: *mut c_void);
    fn route_config = envoy_dynamic_module_callback_get_most_specific_route_config(filter: *mut c_void) -> *const c_void;
    fn body_size = envoy_dynamic_module_callback_http_get_body_size(filter: *mut c_void, body: u32) -> usize;
    fn attribute_string = envoy_dynamic_module_callback_http_filter_get_attribute_string(filter: *mut c_void, id: u32, out: *mut Buf) -> bool;
    fn attribute_int = envoy_dynamic_module_callback_http_filter_get_attribute_int(filter: *mut c_void, id: u32, out: *mut u64) -> bool;
    fn metadata_string = envoy_dynamic_module_callback_http_get_metadata_string(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, out: *mut Buf) -> bool;
    fn metadata_number = envoy_dynamic_module_callback_http_get_metadata_number(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, out: *mut f64) -> bool;
    fn metadata_bool = envoy_dynamic_module_callback_http_get_metadata_bool(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, out: *mut bool) -> bool;
    fn metadata_keys_count = envoy_dynamic_module_callback_http_get_metadata_keys_count(filter: *mut c_void, source: u32, namespace: Buf) -> usize;
    fn metadata_keys = envoy_dynamic_module_callback_http_get_metadata_keys(filter: *mut c_void, source: u32, namespace: Buf, out: *mut Buf) -> bool;
    fn metadata_list_size = envoy_dynamic_module_callback_http_get_metadata_list_size(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, out: *mut usize) -> bool;
    fn metadata_list_number = envoy_dynamic_module_callback_http_get_metadata_list_number(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, index: usize, out: *mut f64) -> bool;
    fn metadata_list_bool = envoy_dynamic_module_callback_http_get_metadata_list_bool(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, index: usize, out: *mut bool) -> bool;
    fn metadata_list_string = envoy_dynamic_module_callback_http_get_metadata_list_string(filter: *mut c_void, source: u32, namespace: Buf, key: Buf, index: usize, out: *mut Buf) -> bool;
    fn get_filter_state = envoy_dynamic_module_callback_http_get_filter_state_bytes(filter: *mut c_void, key: Buf, out: *mut Buf) -> bool;
    fn typed_filter_state = envoy_dynamic_module_callback_http_get_filter_state_typed(filter: *mut c_void, key: Buf, out: *mut Buf) -> bool;
    fn set_filter_state = envoy_dynamic_module_callback_http_set_filter_state_bytes(filter: *mut c_void, key: Buf, value: Buf) -> bool;
    fn send_response = envoy_dynamic_module_callback_http_send_response(filter: *mut c_void, status: u32, headers: *const HeaderBytes, count: usize, body: Buf, details: Buf);
    fn continue_decoding = envoy_dynamic_module_callback_http_filter_continue_decoding(filter: *mut c_void);
    fn scheduler_new = envoy_dynamic_module_callback_http_filter_scheduler_new(filter: *mut c_void) -> *mut c_void;
    fn scheduler_commit = envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: *mut c_void, event: u64);
    fn scheduler_delete = envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: *mut c_void);
    fn config_scheduler_new = envoy_dynamic_module_callback_http_filter_config_scheduler_new(config: *mut c_void) -> *mut c_void;
    fn config_scheduler_commit = envoy_dynamic_module_callback_http_filter_config_scheduler_commit(scheduler: *mut c_void, event: u64);
    fn config_scheduler_delete = envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: *mut c_void);
    fn define_counter = envoy_dynamic_module_callback_http_filter_config_define_counter(config: *mut c_void, name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32;
    fn define_gauge = envoy_dynamic_module_callback_http_filter_config_define_gauge(config: *mut c_void, name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32;
    fn define_histogram = envoy_dynamic_module_callback_http_filter_config_define_histogram(config: *mut c_void, name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32;
    fn increment_counter = envoy_dynamic_module_callback_http_filter_increment_counter(filter: *mut c_void, id: usize, labels: *const Buf, count: usize, value: u64) -> u32;
    fn set_gauge = envoy_dynamic_module_callback_http_filter_set_gauge(filter: *mut c_void, id: usize, labels: *const Buf, count: usize, value: u64) -> u32;
    fn record_value = envoy_dynamic_module_callback_http_filter_record_histogram_value(filter: *mut c_void, id: usize, labels: *const Buf, count: usize, value: u64) -> u32;
    fn config_http_callout = envoy_dynamic_module_callback_http_filter_config_http_callout(config: *mut c_void, id: *mut u64, cluster: Buf, headers: *const HeaderBytes, count: usize, body: Buf, milliseconds: u64) -> u32;
    fn dlsym = dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A function of metrics, by a filter or by a configuration.
type MetricFunction = unsafe extern "C" fn(*mut c_void, usize, *const Buf, usize, u64) -> u32;

/// The functions of metrics without a request, which Envoy has since 1.39.
struct ConfigMetrics {
    counter: MetricFunction,
    gauge: MetricFunction,
    histogram: MetricFunction,
}

/// Finds the function of a name in Envoy.
fn find(name: &CStr) -> Option<*mut c_void> {
    /// Searches in the program and all its libraries.
    const DEFAULT: *mut c_void = ptr::null_mut();
    // SAFETY: the name ends with NUL.
    let found = unsafe { dlsym(DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn config_metrics() -> Option<&'static ConfigMetrics> {
    static FOUND: OnceLock<Option<ConfigMetrics>> = OnceLock::new();
    let find = |name| {
        let found = find(name)?;
        // SAFETY: Envoy declares the three functions with these arguments.
        Some(unsafe { std::mem::transmute::<*mut c_void, MetricFunction>(found) })
    };
    let all = || {
        Some(ConfigMetrics {
            counter: find(c"envoy_dynamic_module_callback_http_filter_config_increment_counter")?,
            gauge: find(c"envoy_dynamic_module_callback_http_filter_config_set_gauge")?,
            histogram: find(
                c"envoy_dynamic_module_callback_http_filter_config_record_histogram_value",
            )?,
        })
    };
    FOUND.get_or_init(all).as_ref()
}

/// Returns true if metrics can be changed without a request.
pub(crate) fn has_config_metrics() -> bool {
    config_metrics().is_some()
}

/// Returns true if Envoy reports how a stream ended. Otherwise it would log an error for each question.
pub(crate) fn reports_ends() -> bool {
    // By the same release.
    has_config_metrics()
}

/// The functions that read the runtime, which Envoy has since 1.40.
struct Runtime {
    bool: unsafe extern "C" fn(Buf, bool) -> bool,
    int: unsafe extern "C" fn(Buf, u64) -> u64,
}

fn runtime() -> Option<&'static Runtime> {
    static FOUND: OnceLock<Option<Runtime>> = OnceLock::new();
    let all = || {
        let bool = find(c"envoy_dynamic_module_callback_get_runtime_bool")?;
        let int = find(c"envoy_dynamic_module_callback_get_runtime_int")?;
        // SAFETY: Envoy declares both functions with these arguments.
        Some(unsafe {
            Runtime {
                bool: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Buf, bool) -> bool>(
                    bool,
                ),
                int: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Buf, u64) -> u64>(int),
            }
        })
    };
    FOUND.get_or_init(all).as_ref()
}

/// Returns true if modules can read the runtime.
pub(crate) fn has_runtime() -> bool {
    runtime().is_some()
}

/// A value of the runtime, or this one if it has none. Only on the main thread: another one gets this one.
pub(crate) fn runtime_bool(key: &str, default: bool) -> bool {
    // SAFETY: the key is valid during the call.
    runtime().map_or(default, |runtime| unsafe { (runtime.bool)(Buf::of(key.as_bytes()), default) })
}

/// As [`runtime_bool`].
pub(crate) fn runtime_int(key: &str, default: u64) -> u64 {
    // SAFETY: the key is valid during the call.
    runtime().map_or(default, |runtime| unsafe { (runtime.int)(Buf::of(key.as_bytes()), default) })
}

/// The functions of secrets, which Envoy has since 1.40.
struct Secrets {
    subscribe: unsafe extern "C" fn(*mut c_void, Buf, Buf) -> usize,
    get: unsafe extern "C" fn(*mut c_void, usize, *mut Buf) -> bool,
}

fn secrets() -> Option<&'static Secrets> {
    static FOUND: OnceLock<Option<Secrets>> = OnceLock::new();
    let all = || {
        let subscribe =
            find(c"envoy_dynamic_module_callback_http_filter_config_generic_secret_subscribe")?;
        let get = find(c"envoy_dynamic_module_callback_http_filter_config_get_generic_secret")?;
        // SAFETY: Envoy declares both functions with these arguments.
        Some(unsafe {
            Secrets {
                subscribe: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, Buf, Buf) -> usize,
                >(subscribe),
                get: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, usize, *mut Buf) -> bool,
                >(get),
            }
        })
    };
    FOUND.get_or_init(all).as_ref()
}

/// Returns true if modules can read secrets.
pub(crate) fn has_secrets() -> bool {
    secrets().is_some()
}

/// The version of the ABI for the Envoy that loads the module. Another one makes it log a warning.
pub(crate) fn version() -> *const c_char {
    let has_log_v2 = find(c"envoy_dynamic_module_callback_log_v2").is_some();
    if has_log_v2 { c"v0.2.0".as_ptr() } else { c"v0.1.0".as_ptr() }
}

/// Writes a line to Envoy's log. Every thread may.
pub(crate) fn log(level: LogLevel, line: &str) {
    // SAFETY: the text is valid during the call.
    unsafe { log_line(level as u32, Buf::of(line.as_bytes())) };
}

/// The severity of a log line in Envoy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogLevel {
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// The number of Envoy's workers. Only on the main thread.
pub(crate) fn workers() -> usize {
    // SAFETY: the hooks of configurations run on the main thread.
    unsafe { concurrency() as usize }
}

/// Returns true if Envoy only validates its configuration. Only on the main thread.
pub(crate) fn only_validates() -> bool {
    // SAFETY: as for `workers`.
    unsafe { is_validation_mode() }
}

/// A value that only one thread uses at a time.
pub(crate) struct Confined<T>(T);

// SAFETY: the value is in the mutex of a worker, and everything that refers to it, such as `Rc`s in streams, is only touched
// while that mutex is locked. So two threads never use it at the same time.
unsafe impl<T> Send for Confined<T> {}

impl<T> Confined<T> {
    pub(crate) fn new(value: T) -> Confined<T> {
        Confined(value)
    }

    pub(crate) fn get(&mut self) -> &mut T {
        &mut self.0
    }
}

/// The headers of a stream, and the trailers of its response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Map {
    Request = 0,
    Response = 2,
    Trailers = 3,
}

/// A stream in Envoy. It is valid on its worker's thread, until the hook `destroy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamPointer(pub(crate) *mut c_void);

impl StreamPointer {
    /// The stream, in a hook on its worker's thread, before its end.
    pub(crate) fn call<'h>(self) -> StreamCall<'h> {
        StreamCall { filter: self.0, hook: PhantomData }
    }
}

/// A stream during a hook.
pub(crate) struct StreamCall<'h> {
    filter: *mut c_void,
    hook: PhantomData<&'h ()>,
}

impl StreamCall<'_> {
    pub(crate) fn pointer(&self) -> StreamPointer {
        StreamPointer(self.filter)
    }

    /// The number of the worker.
    pub(crate) fn worker(&self) -> usize {
        // SAFETY: the stream is valid, as in all functions of this type.
        unsafe { worker_index(self.filter) as usize }
    }

    /// A value of a header, and the number of its values.
    pub(crate) fn header(&self, map: Map, name: &str, index: usize) -> Option<(&[u8], usize)> {
        let (mut out, mut total) = (Buf::EMPTY, 0);
        // SAFETY: the name and the destinations are valid.
        let found = unsafe {
            get_header(
                self.filter,
                map as u32,
                Buf::of(name.as_bytes()),
                &raw mut out,
                index,
                &raw mut total,
            )
        };
        // SAFETY: the value stays until a setter, which needs the call exclusively.
        found.then(|| (unsafe { out.bytes() }, total))
    }

    /// All headers. The list takes this memory.
    pub(crate) fn headers(&self, map: Map, memory: HeaderMemory) -> HeaderList<'_> {
        let mut list = memory.0;
        // SAFETY: see `worker`.
        let size = unsafe { headers_size(self.filter, map as u32) };
        list.reserve(size);
        // SAFETY: the list has room for all headers, and Envoy fills it if it returns true.
        unsafe {
            if get_headers(self.filter, map as u32, list.as_mut_ptr()) {
                list.set_len(size);
            }
        }
        HeaderList { list, call: PhantomData }
    }

    /// Adds a value to a header.
    pub(crate) fn add_header(&mut self, map: Map, name: &str, value: &[u8]) {
        // SAFETY: both texts are valid. A failure means that the host has no headers any more.
        unsafe { add_header(self.filter, map as u32, Buf::of(name.as_bytes()), Buf::of(value)) };
    }

    /// Removes a header of the request.
    pub(crate) fn remove_header(&mut self, name: &str) {
        // SAFETY: the name is valid, and no value removes the header.
        unsafe {
            set_header(self.filter, Map::Request as u32, Buf::of(name.as_bytes()), Buf::EMPTY)
        };
    }

    /// Makes Envoy select the route again, since the request has other headers.
    pub(crate) fn clear_route_cache(&mut self) {
        // SAFETY: see `worker`.
        unsafe { clear_route_cache(self.filter) };
    }

    /// An attribute that is text.
    pub(crate) fn text(&self, attribute: StreamAttribute) -> Option<&[u8]> {
        let mut out = Buf::EMPTY;
        // SAFETY: the destination is valid, and the value stays as that of a header.
        unsafe {
            attribute_string(self.filter, attribute as u32, &raw mut out).then(|| out.bytes())
        }
    }

    /// The name of the route for the headers as they are.
    pub(crate) fn route(&self) -> Option<&[u8]> {
        // The attribute alone would be that of the former route after a change of headers. This filter
        // has no configuration of routes, but to find it Envoy selects the route again if it must.
        // SAFETY: see `worker`.
        unsafe { route_config(self.filter) };
        self.text(StreamAttribute::RouteName)
    }

    /// An attribute that is a number.
    pub(crate) fn number(&self, attribute: StreamAttribute) -> Option<u64> {
        let mut out = 0;
        // SAFETY: the destination is valid.
        unsafe { attribute_int(self.filter, attribute as u32, &raw mut out).then_some(out) }
    }

    /// The bytes of the body of the request that have arrived with this hook.
    pub(crate) fn request_chunk(&self) -> u64 {
        const RECEIVED_REQUEST_BODY: u32 = 0;
        // SAFETY: see `worker`.
        unsafe { body_size(self.filter, RECEIVED_REQUEST_BODY) as u64 }
    }

    /// Returns true if dynamic metadata has a value, of whatever type. The getters of values log an
    /// error for each value that is missing.
    pub(crate) fn has_metadata(&self, namespace: &[u8], key: &[u8]) -> bool {
        let namespace = Buf::of(namespace);
        // SAFETY: the name is valid.
        let count = unsafe { metadata_keys_count(self.filter, 0, namespace) };
        let mut keys = vec![Buf::EMPTY; count];
        // SAFETY: the list has room for all keys, and a key stays as the value of a header does.
        count > 0
            && unsafe { metadata_keys(self.filter, 0, namespace, keys.as_mut_ptr()) }
            && keys.iter().any(|known| unsafe { known.bytes() } == key)
    }

    /// A value of dynamic metadata that is text.
    pub(crate) fn metadata_text(&self, namespace: &[u8], key: &[u8]) -> Option<&[u8]> {
        let mut out = Buf::EMPTY;
        // SAFETY: the names and the destination are valid, and the value stays as that of a header.
        unsafe {
            metadata_string(self.filter, 0, Buf::of(namespace), Buf::of(key), &raw mut out)
                .then(|| out.bytes())
        }
    }

    /// A value of dynamic metadata that is a number.
    pub(crate) fn metadata_number(&self, namespace: &[u8], key: &[u8]) -> Option<f64> {
        let mut out = 0.0;
        // SAFETY: the names and the destination are valid.
        unsafe {
            metadata_number(self.filter, 0, Buf::of(namespace), Buf::of(key), &raw mut out)
                .then_some(out)
        }
    }

    /// A value of dynamic metadata that is true or false.
    pub(crate) fn metadata_flag(&self, namespace: &[u8], key: &[u8]) -> Option<bool> {
        let mut out = false;
        // SAFETY: the names and the destination are valid.
        unsafe {
            metadata_bool(self.filter, 0, Buf::of(namespace), Buf::of(key), &raw mut out)
                .then_some(out)
        }
    }

    /// The number of items of a value of dynamic metadata that is a list.
    pub(crate) fn list_size(&self, namespace: &[u8], key: &[u8]) -> Option<usize> {
        let mut out = 0;
        // SAFETY: the names and the destination are valid.
        unsafe {
            metadata_list_size(self.filter, 0, Buf::of(namespace), Buf::of(key), &raw mut out)
                .then_some(out)
        }
    }

    /// An item of a list in dynamic metadata that is text.
    pub(crate) fn list_text(&self, namespace: &[u8], key: &[u8], index: usize) -> Option<&[u8]> {
        let (namespace, key, mut out) = (Buf::of(namespace), Buf::of(key), Buf::EMPTY);
        // SAFETY: the names and the destination are valid, and the value stays as that of a header.
        unsafe {
            metadata_list_string(self.filter, 0, namespace, key, index, &raw mut out)
                .then(|| out.bytes())
        }
    }

    /// Returns true if an item of a list in dynamic metadata is a number.
    pub(crate) fn is_list_number(&self, namespace: &[u8], key: &[u8], index: usize) -> bool {
        let (namespace, key, mut out) = (Buf::of(namespace), Buf::of(key), 0.0);
        // SAFETY: the names and the destination are valid.
        unsafe { metadata_list_number(self.filter, 0, namespace, key, index, &raw mut out) }
    }

    /// Returns true if an item of a list in dynamic metadata is true or false.
    pub(crate) fn is_list_flag(&self, namespace: &[u8], key: &[u8], index: usize) -> bool {
        let (namespace, key, mut out) = (Buf::of(namespace), Buf::of(key), false);
        // SAFETY: the names and the destination are valid.
        unsafe { metadata_list_bool(self.filter, 0, namespace, key, index, &raw mut out) }
    }

    /// An entry of the filter state.
    pub(crate) fn filter_state(&self, key: &[u8]) -> Option<&[u8]> {
        let mut out = Buf::EMPTY;
        // SAFETY: the key and the destination are valid, and the value stays as that of a header.
        unsafe { get_filter_state(self.filter, Buf::of(key), &raw mut out).then(|| out.bytes()) }
    }

    /// An entry of the filter state of any type, as text. Copied, since Envoy before 1.40 has one
    /// buffer for all of them.
    pub(crate) fn typed_filter_state(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut out = Buf::EMPTY;
        // SAFETY: the key and the destination are valid, and the value stays until the next getter.
        unsafe {
            typed_filter_state(self.filter, Buf::of(key), &raw mut out).then(|| out.bytes().into())
        }
    }

    /// Sets an entry of the filter state, unless it is read-only.
    pub(crate) fn set_filter_state(&mut self, key: &str, value: &[u8]) {
        // SAFETY: both texts are valid.
        unsafe { set_filter_state(self.filter, Buf::of(key.as_bytes()), Buf::of(value)) };
    }

    /// Responds to the request. The stream may end within.
    pub(crate) fn respond(self, status: u16, headers: &Headers, body: &[u8], details: &str) {
        let header = |(name, value): (&str, &str)| HeaderBytes {
            name: Buf::of(name.as_bytes()),
            value: Buf::of(value.as_bytes()),
        };
        let headers: Vec<HeaderBytes> = headers.iter().map(header).collect();
        let (body, details) = (Buf::of(body), Buf::of(details.as_bytes()));
        // SAFETY: all texts are valid, and the call is not used any more.
        unsafe {
            send_response(
                self.filter,
                status.into(),
                headers.as_ptr(),
                headers.len(),
                body,
                details,
            )
        };
    }

    /// Continues the waiting request. The stream may end within.
    pub(crate) fn resume(self) {
        // SAFETY: the call is not used any more.
        unsafe { continue_decoding(self.filter) };
    }

    /// A scheduler of the stream.
    pub(crate) fn scheduler(&self) -> Scheduler {
        // SAFETY: see `worker`.
        Scheduler(unsafe { scheduler_new(self.filter) })
    }

    /// Changes a metric.
    pub(crate) fn change(&self, kind: MetricKind, id: usize, labels: &[String], value: u64) {
        let function = match kind {
            MetricKind::Counter => increment_counter,
            MetricKind::Gauge => set_gauge,
            MetricKind::Histogram => record_value,
        };
        let labels: Vec<Buf> = labels.iter().map(|label| Buf::of(label.as_bytes())).collect();
        // SAFETY: the configuration of this stream has defined the id, with as many labels.
        unsafe { function(self.filter, id, labels.as_ptr(), labels.len(), value) };
    }
}

/// All headers of a stream. They stay as the value of a header does.
pub(crate) struct HeaderList<'c> {
    list: Vec<HeaderBytes>,
    call: PhantomData<&'c ()>,
}

impl<'c> HeaderList<'c> {
    /// The values of a header.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &'c [u8]> {
        // Envoy stores names in lower case.
        // SAFETY: names and values stay for the lifetime of the list.
        self.list
            .iter()
            .filter(move |header| unsafe { header.name.bytes() } == name.as_bytes())
            .map(|header| unsafe { header.value.bytes() })
    }

    /// The memory of the list.
    pub(crate) fn into_memory(mut self) -> HeaderMemory {
        self.list.clear();
        HeaderMemory(self.list)
    }
}

/// Memory for all headers of a stream: its allocation would cost a tenth of a decision.
#[derive(Default)]
pub(crate) struct HeaderMemory(Vec<HeaderBytes>);

/// Attributes of a stream, by Envoy's numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StreamAttribute {
    RequestPath = 0,
    RequestHost = 2,
    RequestMethod = 4,
    ResponseCode = 15,
    ResponseCodeDetails = 16,
    ResponseFlags = 17,
    ResponseSize = 21,
    SourceAddress = 24,
    UriSanPeerCertificate = 37,
    Sha256PeerCertificate = 38,
    RouteName = 61,
}

/// Calls the hook `scheduled` of a stream on its worker's thread.
pub(crate) struct Scheduler(*mut c_void);

// SAFETY: Envoy permits every thread to commit an event. After the end of the stream this has no effect.
unsafe impl Send for Scheduler {}

impl Scheduler {
    pub(crate) fn commit(&self, event: u64) {
        // SAFETY: the scheduler exists until it is dropped.
        unsafe { scheduler_commit(self.0, event) };
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { scheduler_delete(self.0) };
    }
}

/// A configuration of the filter, in a hook on the main thread.
pub(crate) struct ConfigCall(pub(crate) *mut c_void);

impl ConfigCall {
    /// Defines a metric, only while the configuration is created. Returns its id.
    pub(crate) fn define(&self, metric: Metric) -> Option<usize> {
        let function = match metric.kind() {
            MetricKind::Counter => define_counter,
            MetricKind::Gauge => define_gauge,
            MetricKind::Histogram => define_histogram,
        };
        let name = metric.plain();
        let labels: Vec<Buf> =
            metric.labels().iter().map(|label| Buf::of(label.as_bytes())).collect();
        let mut id = 0;
        // SAFETY: all texts and the destination are valid.
        let result = unsafe {
            function(self.0, Buf::of(name.as_bytes()), labels.as_ptr(), labels.len(), &raw mut id)
        };
        (result == 0).then_some(id)
    }

    /// Changes a metric without a request, if Envoy can.
    pub(crate) fn change(&self, kind: MetricKind, id: usize, labels: &[String], value: u64) {
        let Some(metrics) = config_metrics() else { return };
        let function = match kind {
            MetricKind::Counter => metrics.counter,
            MetricKind::Gauge => metrics.gauge,
            MetricKind::Histogram => metrics.histogram,
        };
        let labels: Vec<Buf> = labels.iter().map(|label| Buf::of(label.as_bytes())).collect();
        // SAFETY: this configuration has defined the id, with as many labels.
        unsafe { function(self.0, id, labels.as_ptr(), labels.len(), value) };
    }

    /// Makes an HTTP call. Returns Envoy's number of it.
    ///
    /// # Errors
    /// The problem with the cluster.
    pub(crate) fn http_call(&self, call: &Call) -> Result<u64, &'static str> {
        const MILLISECOND: Micros = 1000;
        let header = |(name, value): &(String, String)| HeaderBytes {
            name: Buf::of(name.as_bytes()),
            value: Buf::of(value.as_bytes()),
        };
        let headers: Vec<HeaderBytes> = call.headers.iter().map(header).collect();
        let (cluster, body) = (Buf::of(call.destination.name().as_bytes()), Buf::of(&call.body));
        let (mut id, timeout) = (0, call.timeout.div_ceil(MILLISECOND).max(1));
        // SAFETY: all texts and the destination are valid.
        let result = unsafe {
            config_http_callout(
                self.0,
                &raw mut id,
                cluster,
                headers.as_ptr(),
                headers.len(),
                body,
                timeout,
            )
        };
        match result {
            0 => Ok(id),
            2 => Err("Envoy has no such cluster"),
            _ => Err("the cluster has no available endpoint"),
        }
    }

    /// Subscribes to a secret, only while the configuration is created. `sds` is the source from which Envoy gets it, as JSON, or
    /// empty for a static one. Returns Envoy's number of it.
    pub(crate) fn subscribe(&self, name: &str, sds: &str) -> Option<usize> {
        const NONE: usize = 0;
        let (name, sds) = (Buf::of(name.as_bytes()), Buf::of(sds.as_bytes()));
        // SAFETY: both texts are valid.
        let id = secrets().map_or(NONE, |it| unsafe { (it.subscribe)(self.0, name, sds) });
        (id != NONE).then_some(id)
    }

    /// The value of a secret, once Envoy has received it.
    pub(crate) fn secret(&self, id: usize) -> Option<String> {
        let mut out = Buf::EMPTY;
        // SAFETY: the destination is valid, and Envoy keeps the value during the hook.
        let bytes = unsafe { (secrets()?.get)(self.0, id, &raw mut out).then(|| out.bytes())? };
        // Files often end with a line break.
        let text = str::from_utf8(bytes).ok()?.trim_end_matches(['\r', '\n']);
        (!text.is_empty()).then(|| text.into())
    }

    /// A scheduler of the configuration.
    pub(crate) fn scheduler(&self) -> ConfigScheduler {
        // SAFETY: the configuration is valid.
        ConfigScheduler(unsafe { config_scheduler_new(self.0) })
    }
}

/// Calls the hook `scheduled` of a configuration on the main thread.
pub(crate) struct ConfigScheduler(*mut c_void);

// SAFETY: as for `Scheduler`.
unsafe impl Send for ConfigScheduler {}

impl ConfigScheduler {
    pub(crate) fn commit(&self, event: u64) {
        // SAFETY: the scheduler exists until it is dropped.
        unsafe { config_scheduler_commit(self.0, event) };
    }
}

impl Drop for ConfigScheduler {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { config_scheduler_delete(self.0) };
    }
}

/// A list of Envoy, which may be null if it is empty.
///
/// # Safety
/// The list must outlive `'l`.
pub(crate) unsafe fn list<'l, T>(first: *const T, count: usize) -> &'l [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: Envoy returns a valid list with its length, and the caller chooses a lifetime in which it stays.
    unsafe { slice::from_raw_parts(first, count) }
}
