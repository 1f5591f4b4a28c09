//! A root: one configuration of the plugin in this VM.

use proxy_wasm::hostcalls;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{BufferType, ContextType};

use super::calls::{HostCall, answer};
use super::http::Http;
use super::vm::worker;
use super::{raw, step};
use diana_policy::port::Property;
use diana_worker::Root;

/// A root context of the SDK. It is dropped when the host deletes it.
pub(super) struct Plugin {
    /// The host during a call about this root.
    host: HostCall,
    root: Root,
}

impl Plugin {
    /// A root without a configuration, with the host's number for it.
    pub(super) fn new(id: u32) -> Plugin {
        Plugin { host: HostCall { root: id, context: id }, root: Root::default() }
    }
}

impl Context for Plugin {
    fn on_http_call_response(&mut self, token: u32, headers: usize, size: usize, _: usize) {
        let Plugin { host, root } = self;
        step::take_all(answer(headers, size, |it| root.on_reply(token, it, worker(), host)));
    }
}

impl RootContext for Plugin {
    fn on_configure(&mut self, size: usize) -> bool {
        let text = hostcalls::get_buffer(BufferType::PluginConfiguration, 0, size);
        let root_id = raw::property(Property::new(&["plugin_root_id"]).encoded());
        let (text, root_id) =
            (text.ok().flatten().unwrap_or_default(), root_id.unwrap_or_default());
        self.root.configure(&text, &root_id, worker(), &self.host)
    }

    fn on_tick(&mut self) {
        step::take_all(self.root.tick(worker(), &self.host));
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Http::new(id, self.root.instance().cloned())))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.root.end(worker(), &self.host);
    }
}
