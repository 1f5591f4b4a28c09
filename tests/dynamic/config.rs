//! Configurations, and the events of Envoy's main thread.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::hooks::{self, Buf, Header};

/// A configuration of the filter. The module has its address.
#[derive(Debug)]
pub struct Configuration {
    module: AtomicPtr<c_void>,
}

/// What happens next on the main thread.
#[derive(Debug)]
pub enum Event {
    Scheduled(Weak<Configuration>, u64),
    /// A call has a reply.
    Reply(Weak<Configuration>, u64),
}

static EVENTS: Mutex<VecDeque<Event>> = Mutex::new(VecDeque::new());

static LATEST: Mutex<Option<Arc<Configuration>>> = Mutex::new(None);

/// Earlier ones, which have streams.
static OLD: Mutex<Vec<Arc<Configuration>>> = Mutex::new(Vec::new());

impl Configuration {
    /// `None` if the module rejects the document.
    pub fn new(document: &str) -> Option<Arc<Configuration>> {
        let config = Arc::new(Configuration { module: AtomicPtr::default() });
        // Copies, which the module may not keep.
        let (name, text) = (b"fake".to_vec(), document.as_bytes().to_vec());
        let module = hooks::config_new(config.address(), Buf::of(&name), Buf::of(&text));
        config.module.store(module.cast_mut(), Ordering::SeqCst);
        (!module.is_null()).then_some(config)
    }

    /// The configuration of new streams.
    pub fn latest() -> Arc<Configuration> {
        LATEST.lock().unwrap().clone().unwrap()
    }

    /// Its address for the module.
    fn address(self: &Arc<Configuration>) -> *mut c_void {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// The pointer that the module returned for it.
    pub fn module(&self) -> *const c_void {
        self.module.load(Ordering::SeqCst)
    }

    /// The configuration at an address, which exists.
    pub fn at(address: *mut c_void) -> Weak<Configuration> {
        let address = address.cast_const().cast::<Configuration>();
        // SAFETY: the module has the address of a configuration in an `Arc`, which stays as it was.
        unsafe {
            Arc::increment_strong_count(address);
            Arc::downgrade(&Arc::from_raw(address))
        }
    }

    fn destroy(self: Arc<Configuration>) {
        hooks::config_destroy(self.module.swap(ptr::null_mut(), Ordering::SeqCst));
    }
}

/// Replaces the configuration of new streams.
pub fn set_latest(config: Arc<Configuration>) {
    let before = LATEST.lock().unwrap().replace(config);
    OLD.lock().unwrap().extend(before);
}

/// Does what the thread of the module wants each second: the latest configuration looks at what may change without an update.
pub fn look() {
    const LOOK: u64 = 1;
    later(Event::Scheduled(Arc::downgrade(&Configuration::latest()), LOOK));
}

/// Destroys the configurations without streams.
pub fn drain() {
    let drained: Vec<_> =
        OLD.lock().unwrap().extract_if(.., |config| Arc::strong_count(config) == 1).collect();
    drained.into_iter().for_each(Configuration::destroy);
}

/// Destroys all configurations. Their streams have ended.
pub fn end_all() {
    run_events();
    OLD.lock().unwrap().extend(LATEST.lock().unwrap().take());
    drain();
    assert!(OLD.lock().unwrap().is_empty(), "a stream is left");
    run_events();
}

/// Does something later on the main thread.
pub fn later(event: Event) {
    EVENTS.lock().unwrap().push_back(event);
}

/// Runs the events of the main thread. Those of destroyed configurations are dropped.
pub fn run_events() {
    let events = std::mem::take(&mut *EVENTS.lock().unwrap());
    for event in events {
        let (Event::Scheduled(config, _) | Event::Reply(config, _)) = &event;
        let Some(config) = config.upgrade().filter(|config| !config.module().is_null()) else {
            continue;
        };
        match event {
            Event::Scheduled(_, event) => {
                hooks::config_scheduled(config.address(), config.module(), event)
            }
            Event::Reply(_, id) => reply(&config, id),
        }
    }
}

/// Gives a call of the configuration one of several replies.
pub fn reply(config: &Arc<Configuration>, id: u64) {
    const SUCCESS: u32 = 0;
    const RESET: u32 = 1;
    let (result, status, body) = match id % 5 {
        0 => (RESET, None, ""),
        1 => (SUCCESS, Some("503"), "no healthy upstream"),
        2 => (SUCCESS, Some("200"), "-ERR out of memory\r\n"),
        3 => (SUCCESS, Some("200"), "*2\r\n$-1"),
        _ => (SUCCESS, Some("twice"), ""),
    };
    let lent: Vec<(Vec<u8>, Vec<u8>)> =
        status.map(|it| (":status".into(), it.into())).into_iter().collect();
    let headers: Vec<Header> = lent
        .iter()
        .map(|(name, value)| Header { name: Buf::of(name), value: Buf::of(value) })
        .collect();
    // Each byte arrives alone.
    let bytes: Vec<Box<[u8]>> = body.bytes().map(|byte| [byte].into()).collect();
    let chunks: Vec<Buf> = bytes.iter().map(|byte| Buf::of(byte)).collect();
    let first = |is_empty: bool, list: *const Buf| if is_empty { ptr::null() } else { list };
    hooks::config_callout_done(
        config.address(),
        config.module(),
        id,
        result,
        if headers.is_empty() { ptr::null() } else { headers.as_ptr() },
        headers.len(),
        first(chunks.is_empty(), chunks.as_ptr()),
        chunks.len(),
    );
}
