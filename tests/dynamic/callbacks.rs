//! The functions of the fake Envoy, by the names of Envoy's own.

#![allow(unsafe_op_in_unsafe_fn, reason = "each function is one operation of the module")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::WORKERS;
use crate::config::Configuration;
use crate::gateway::{Event, Gateway};
use crate::hooks::{Buf, Header};
use crate::stream::{self, Outcome, Stream};

/// The log.
pub static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// While a test has it, a thread that logs a line about its pipe stops there.
pub static STOPS_AT_PIPE: Mutex<()> = Mutex::new(());

/// Panics in hooks.
pub static CAUGHT: AtomicUsize = AtomicUsize::new(0);

/// Streams with these numbers, modulo five, have a text or a number as plan in metadata.
pub const TEXT: u64 = 1;
pub const NUMBER: u64 = 2;

/// The number of the secret.
const SECRET: usize = 7;

const REQUEST: u32 = 0;
const RESPONSE: u32 = 2;

/// The stream of a pointer.
///
/// # Safety
/// No other reference to it may be alive: the hooks of the module have none.
unsafe fn of<'s>(stream: *mut c_void) -> &'s mut Stream {
    unsafe { &mut *stream.cast::<Stream>() }
}

/// The gateway of a configuration.
///
/// # Safety
/// The configuration exists.
unsafe fn gateway(config: *mut c_void) -> &'static Gateway {
    unsafe { (*config.cast_const().cast::<Configuration>()).gateway }
}

/// Writes a value that the module asked for.
///
/// # Safety
/// The module passes a valid destination.
unsafe fn give<T>(out: *mut T, value: Option<T>) -> bool {
    let is_there = value.is_some();
    value.into_iter().for_each(|value| unsafe { *out = value });
    is_there
}

// The module calls all of them as Envoy's interface demands it.
macro_rules! callbacks {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $kind:ty),*) $(-> $out:ty)? $body:block)*) => {
        $($(#[$doc])* #[unsafe(no_mangle)] pub unsafe extern "C" fn $name($($arg: $kind),*) $(-> $out)? $body)*
    };
}

callbacks! {
    /// The module also logs each panic of this process.
    fn envoy_dynamic_module_callback_log(_level: u32, line: Buf) {
        let line = String::from_utf8(line.copied()).unwrap();
        if line.contains("panic") {
            println!("{line}");
        }
        CAUGHT.fetch_add(usize::from(line.contains("was caught")), Ordering::SeqCst);
        let is_about_pipe = line.starts_with("pipe `@ended-");
        LOG.lock().unwrap().push(line);
        if is_about_pipe {
            drop(STOPS_AT_PIPE.lock().unwrap());
        }
    }

    fn envoy_dynamic_module_callback_get_concurrency() -> u32 { WORKERS as u32 }

    fn envoy_dynamic_module_callback_is_validation_mode() -> bool { false }

    fn envoy_dynamic_module_callback_http_filter_get_worker_index(stream: *mut c_void) -> u32 { of(stream).worker as u32 }

    fn envoy_dynamic_module_callback_http_get_header(stream: *mut c_void, map: u32, name: Buf, out: *mut Buf, index: usize, total: *mut usize) -> bool {
        let (stream, name) = (of(stream), name.copied());
        let values: Vec<_> = headers(stream, map).iter().filter(|(known, _)| *known == name).map(|(_, value)| value.clone()).collect();
        if !total.is_null() { *total = values.len() };
        give(out, values.get(index).map(|value| stream.lend(value)))
    }

    fn envoy_dynamic_module_callback_http_get_headers_size(stream: *mut c_void, map: u32) -> usize { headers(of(stream), map).len() }

    fn envoy_dynamic_module_callback_http_get_headers(stream: *mut c_void, map: u32, out: *mut Header) -> bool {
        let stream = of(stream);
        for (place, (name, value)) in headers(stream, map).clone().iter().enumerate() {
            *out.add(place) = Header { name: stream.lend(name), value: stream.lend(value) };
        }
        true
    }

    fn envoy_dynamic_module_callback_http_add_header(pointer: *mut c_void, map: u32, name: Buf, value: Buf) -> bool {
        let stream = of(pointer);
        headers(stream, map).push((name.copied(), value.copied()));
        stream.config.gateway.marked.fetch_add(1, Ordering::SeqCst);
        stream.take_back();
        stream::begin_another(pointer.cast());
        true
    }

    fn envoy_dynamic_module_callback_http_set_header(stream: *mut c_void, map: u32, name: Buf, value: Buf) -> bool {
        let (stream, name) = (of(stream), name.copied());
        let headers = headers(stream, map);
        headers.retain(|(known, _)| *known != name);
        if !value.ptr.is_null() { headers.push((name, value.copied())) };
        stream.take_back();
        true
    }

    fn envoy_dynamic_module_callback_http_clear_route_cache(_stream: *mut c_void) {}

    fn envoy_dynamic_module_callback_get_most_specific_route_config(_stream: *mut c_void) -> *const c_void { std::ptr::null() }

    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(stream: *mut c_void, id: u32, out: *mut Buf) -> bool {
        let stream = of(stream);
        let name = |name: &[u8]| stream.request.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let value = match id {
            0 => name(b":path"),
            2 => name(b":authority"),
            4 => name(b":method"),
            16 if !stream.response.is_empty() => Some(b"via_upstream".to_vec()),
            61 => name(b"x-route"),
            24 => Some(format!("192.0.2.{}:4711", stream.id % 3).into()),
            _ => None,
        };
        give(out, value.map(|value| stream.lend(&value)))
    }

    fn envoy_dynamic_module_callback_http_filter_get_attribute_int(stream: *mut c_void, id: u32, out: *mut u64) -> bool {
        const CODE: u32 = 15;
        give(out, (id == CODE && !of(stream).response.is_empty()).then_some(200))
    }

    fn envoy_dynamic_module_callback_http_get_body_size(stream: *mut c_void, body: u32) -> usize {
        assert_eq!(body, 0, "the received body of the request");
        of(stream).chunk
    }

    fn envoy_dynamic_module_callback_http_get_metadata_string(stream: *mut c_void, _source: u32, _namespace: Buf, _key: Buf, out: *mut Buf) -> bool {
        let stream = of(stream);
        give(out, (stream.id % 5 == TEXT).then(|| stream.lend(b"gold")))
    }

    fn envoy_dynamic_module_callback_http_get_metadata_number(stream: *mut c_void, _source: u32, _namespace: Buf, _key: Buf, out: *mut f64) -> bool {
        give(out, (of(stream).id % 5 == NUMBER).then_some(2.5))
    }

    fn envoy_dynamic_module_callback_http_get_metadata_bool(stream: *mut c_void, _source: u32, _namespace: Buf, _key: Buf, out: *mut bool) -> bool {
        give(out, (of(stream).id % 5 == 3).then_some(true))
    }

    fn envoy_dynamic_module_callback_http_get_metadata_keys_count(stream: *mut c_void, _source: u32, _namespace: Buf) -> usize {
        usize::from(of(stream).id % 5 > 0)
    }

    fn envoy_dynamic_module_callback_http_get_metadata_keys(stream: *mut c_void, _source: u32, _namespace: Buf, out: *mut Buf) -> bool {
        let stream = of(stream);
        give(out, (stream.id % 5 > 0).then(|| stream.lend(b"plan")))
    }

    fn envoy_dynamic_module_callback_http_get_metadata_list_size(stream: *mut c_void, _source: u32, _namespace: Buf, _key: Buf, out: *mut usize) -> bool {
        give(out, (of(stream).id % 5 == 4).then_some(2))
    }

    fn envoy_dynamic_module_callback_http_get_metadata_list_string(stream: *mut c_void, _source: u32, _namespace: Buf, _key: Buf, index: usize, out: *mut Buf) -> bool {
        let stream = of(stream);
        give(out, Some(stream.lend([&b"gold"[..], b"silver"][index])))
    }

    fn envoy_dynamic_module_callback_http_get_metadata_list_number(stream: *mut c_void, _source: u32, _namespace: Buf, _key: Buf, index: usize, _out: *mut f64) -> bool {
        assert!(of(stream).id % 5 == 4 && index < 2);
        false
    }

    fn envoy_dynamic_module_callback_http_get_metadata_list_bool(stream: *mut c_void, source: u32, namespace: Buf, key: Buf, index: usize, _out: *mut bool) -> bool {
        envoy_dynamic_module_callback_http_get_metadata_list_number(stream, source, namespace, key, index, std::ptr::null_mut())
    }

    fn envoy_dynamic_module_callback_http_get_filter_state_bytes(stream: *mut c_void, key: Buf, out: *mut Buf) -> bool {
        let stream = of(stream);
        let value = stream.state.get(&key.copied()).cloned();
        give(out, value.map(|value| stream.lend(&value)))
    }

    fn envoy_dynamic_module_callback_http_get_filter_state_typed(stream: *mut c_void, key: Buf, out: *mut Buf) -> bool {
        envoy_dynamic_module_callback_http_get_filter_state_bytes(stream, key, out)
    }

    fn envoy_dynamic_module_callback_http_set_filter_state_bytes(pointer: *mut c_void, key: Buf, value: Buf) -> bool {
        let stream = of(pointer);
        stream.state.insert(key.copied(), value.copied());
        stream.take_back();
        stream::begin_another(pointer.cast());
        true
    }

    fn envoy_dynamic_module_callback_http_send_response(pointer: *mut c_void, status: u32, headers: *const Header, count: usize, body: Buf, details: Buf) {
        let headers = if count == 0 { &[] } else { std::slice::from_raw_parts(headers, count) };
        let bytes: usize = headers.iter().map(|header| header.name.copied().len() + header.value.copied().len()).sum();
        assert!(bytes + body.copied().len() > 0 && details.copied().starts_with(b"diana_"));
        assert_eq!((of(pointer).outcome, status), (Outcome::Open, 503));
        assert!(!of(pointer).has_ended);
        of(pointer).outcome = Outcome::Refused;
        of(pointer).reply = headers.iter().map(|header| (header.name.copied(), header.value.copied())).collect();
        stream::end_neighbour(pointer.cast());
        if of(pointer).is_hasty {
            stream::end(pointer.cast());
        }
    }

    fn envoy_dynamic_module_callback_http_filter_continue_decoding(pointer: *mut c_void) {
        assert_eq!(of(pointer).outcome, Outcome::Open);
        assert!(!of(pointer).has_ended);
        of(pointer).outcome = Outcome::Passed;
        stream::end_neighbour(pointer.cast());
        if of(pointer).is_hasty {
            stream::respond(pointer.cast());
            stream::end(pointer.cast());
        }
    }

    fn envoy_dynamic_module_callback_http_filter_scheduler_new(stream: *mut c_void) -> *mut c_void {
        let stream = of(stream);
        Box::into_raw(Box::new((stream.queue.clone(), stream.id))).cast()
    }

    fn envoy_dynamic_module_callback_http_filter_scheduler_commit(scheduler: *mut c_void, event: u64) {
        let (queue, id) = &*scheduler.cast::<StreamScheduler>();
        queue.lock().unwrap().push_back((*id, event));
    }

    fn envoy_dynamic_module_callback_http_filter_scheduler_delete(scheduler: *mut c_void) {
        drop(Box::from_raw(scheduler.cast::<StreamScheduler>()));
    }

    fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(config: *mut c_void) -> *mut c_void {
        Box::into_raw(Box::new((gateway(config), Configuration::at(config)))).cast()
    }

    fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(scheduler: *mut c_void, event: u64) {
        let (gateway, config) = &*scheduler.cast::<ConfigScheduler>();
        gateway.later(Event::Scheduled(config.clone(), event));
    }

    fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: *mut c_void) {
        drop(Box::from_raw(scheduler.cast::<ConfigScheduler>()));
    }

    fn envoy_dynamic_module_callback_get_runtime_bool(key: Buf, default: bool) -> bool {
        let key = key.copied();
        assert!(key.starts_with(b"diana.") && key.ends_with(b".disabled"));
        default
    }

    fn envoy_dynamic_module_callback_get_runtime_int(key: Buf, default: u64) -> u64 {
        let key = key.copied();
        assert!(key.starts_with(b"diana.") && key.ends_with(b".enforce"));
        default
    }

    fn envoy_dynamic_module_callback_http_filter_config_generic_secret_subscribe(_config: *mut c_void, name: Buf, sds: Buf) -> usize {
        assert!(name.copied() == b"password" && sds.copied().is_empty());
        SECRET
    }

    /// The value is often another one, so that the module applies its document again.
    fn envoy_dynamic_module_callback_http_filter_config_get_generic_secret(config: *mut c_void, id: usize, out: *mut Buf) -> bool {
        assert_eq!(id, SECRET);
        let gateway = gateway(config);
        let number = gateway.looks.fetch_add(1, Ordering::SeqCst);
        let mut value = gateway.secret.lock().unwrap();
        *value = number.to_string().into_bytes();
        give(out, Some(Buf::of(&value)));
        !number.is_multiple_of(3)
    }

    fn envoy_dynamic_module_callback_http_filter_config_define_counter(_config: *mut c_void, name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32 {
        define(name, labels, count, id)
    }

    fn envoy_dynamic_module_callback_http_filter_config_define_gauge(_config: *mut c_void, name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32 {
        define(name, labels, count, id)
    }

    fn envoy_dynamic_module_callback_http_filter_config_define_histogram(_config: *mut c_void, name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32 {
        define(name, labels, count, id)
    }

    fn envoy_dynamic_module_callback_http_filter_increment_counter(_stream: *mut c_void, id: usize, labels: *const Buf, count: usize, _value: u64) -> u32 {
        change(id, labels, count)
    }

    fn envoy_dynamic_module_callback_http_filter_set_gauge(_stream: *mut c_void, id: usize, labels: *const Buf, count: usize, _value: u64) -> u32 {
        change(id, labels, count)
    }

    fn envoy_dynamic_module_callback_http_filter_record_histogram_value(_stream: *mut c_void, id: usize, labels: *const Buf, count: usize, _value: u64) -> u32 {
        change(id, labels, count)
    }

    fn envoy_dynamic_module_callback_http_filter_config_increment_counter(config: *mut c_void, id: usize, labels: *const Buf, count: usize, _value: u64) -> u32 {
        gateway(config).changes.fetch_add(1, Ordering::SeqCst);
        change(id, labels, count)
    }

    fn envoy_dynamic_module_callback_http_filter_config_set_gauge(_config: *mut c_void, id: usize, labels: *const Buf, count: usize, _value: u64) -> u32 {
        change(id, labels, count)
    }

    fn envoy_dynamic_module_callback_http_filter_config_record_histogram_value(_config: *mut c_void, id: usize, labels: *const Buf, count: usize, _value: u64) -> u32 {
        change(id, labels, count)
    }

    fn envoy_dynamic_module_callback_http_filter_config_http_callout(config: *mut c_void, id: *mut u64, cluster: Buf, headers: *const Header, count: usize, body: Buf, milliseconds: u64) -> u32 {
        const NO_CLUSTER: u32 = 2;
        let body = body.copied();
        assert!(cluster.copied() == b"redis" && count > 0 && !headers.is_null() && !body.is_empty() && milliseconds > 0);
        let gateway = gateway(config);
        let number = gateway.callouts.fetch_add(1, Ordering::SeqCst) as u64;
        let config = Configuration::at(config);
        *id = number;
        if let Some(kept) = &mut *gateway.kept.lock().unwrap() {
            kept.push((config, number, body));
            return 0;
        }
        match number % 11 {
            0 => return NO_CLUSTER,
            1 => config.upgrade().iter().for_each(|config| config.reply(number)),
            _ => gateway.later(Event::Reply(config, number)),
        }
        0
    }
}

type ConfigScheduler = (&'static Gateway, Weak<Configuration>);

type StreamScheduler = (Arc<crate::worker::Queue>, u64);

fn headers(stream: &mut Stream, map: u32) -> &mut Vec<(Vec<u8>, Vec<u8>)> {
    match map {
        REQUEST => &mut stream.request,
        RESPONSE => &mut stream.response,
        _ => &mut stream.trailers,
    }
}

/// The name and the labels of a new metric.
unsafe fn define(name: Buf, labels: *const Buf, count: usize, id: *mut usize) -> u32 {
    assert!(!name.copied().is_empty());
    // SAFETY: as for all callbacks.
    unsafe { *id = count };
    change(count, labels, count)
}

/// A metric with this number of labels, which is its id here.
fn change(id: usize, labels: *const Buf, count: usize) -> u32 {
    assert_eq!(id, count);
    // SAFETY: as for all callbacks.
    let labels = unsafe { std::slice::from_raw_parts(labels, count) };
    labels.iter().for_each(|label| assert!(!label.copied().is_empty()));
    0
}
