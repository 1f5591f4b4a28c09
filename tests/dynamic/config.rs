//! Configurations of the filter.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

use diana_native::explored;

use crate::gateway::Gateway;
use crate::hooks::{self, Buf, Header};

/// A configuration of the filter. The module has its address.
pub struct Configuration {
    pub gateway: &'static Gateway,
    module: AtomicPtr<c_void>,
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.module.fmt(f)
    }
}

impl Configuration {
    /// `None` if the module rejects the document.
    pub fn new(gateway: &'static Gateway, document: &str) -> Option<Arc<Configuration>> {
        let config = Arc::new(Configuration { gateway, module: AtomicPtr::default() });
        // Copies, which the module may not keep.
        let (name, text) = (b"fake".to_vec(), document.as_bytes().to_vec());
        let module = explored::config_new(&gateway.module, config.address(), &name, &text);
        config.module.store(module.cast_mut(), Ordering::SeqCst);
        (!module.is_null()).then_some(config)
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

    pub fn destroy(self: Arc<Configuration>) {
        hooks::config_destroy(self.module.swap(ptr::null_mut(), Ordering::SeqCst));
    }

    /// An event that the module has committed.
    pub fn scheduled(self: &Arc<Configuration>, event: u64) {
        hooks::config_scheduled(self.address(), self.module(), event);
    }

    /// Gives a call of the configuration one of several replies.
    pub fn reply(self: &Arc<Configuration>, id: u64) {
        let (status, body): (_, &[u8]) = match id % 5 {
            0 => (None, b""),
            1 => (Some("503"), b"no healthy upstream"),
            2 => (Some("200"), b"-ERR out of memory\r\n"),
            3 => (Some("200"), b"*2\r\n$-1"),
            _ => (Some("twice"), b""),
        };
        self.reply_with(id, status, body);
    }

    /// Gives a call of the configuration this reply, or resets it without a status.
    pub fn reply_with(self: &Arc<Configuration>, id: u64, status: Option<&str>, body: &[u8]) {
        const SUCCESS: u32 = 0;
        const RESET: u32 = 1;
        let result = if status.is_some() { SUCCESS } else { RESET };
        let lent: Vec<(Vec<u8>, Vec<u8>)> =
            status.map(|it| (":status".into(), it.into())).into_iter().collect();
        let headers: Vec<Header> = lent
            .iter()
            .map(|(name, value)| Header { name: Buf::of(name), value: Buf::of(value) })
            .collect();
        // Each byte arrives alone.
        let bytes: Vec<Box<[u8]>> = body.iter().map(|byte| [*byte].into()).collect();
        let chunks: Vec<Buf> = bytes.iter().map(|byte| Buf::of(byte)).collect();
        let first = |is_empty: bool, list: *const Buf| if is_empty { ptr::null() } else { list };
        hooks::config_callout_done(
            self.address(),
            self.module(),
            id,
            result,
            if headers.is_empty() { ptr::null() } else { headers.as_ptr() },
            headers.len(),
            first(chunks.is_empty(), chunks.as_ptr()),
            chunks.len(),
        );
    }
}
