//! One root: a configuration of the plugin in this VM.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::ContextType;

use super::abi;
use super::calls::{HostCall, answer};
use super::http::Http;
use super::vm::worker;
use diana_core::port::Property;
use diana_worker::{Root, Stream};

pub(super) struct Plugin {
    /// The host, while it is calling about this root.
    host: HostCall,
    root: Root,
}

impl Plugin {
    /// By the host's number of it.
    pub(super) fn new(id: u32) -> Plugin {
        Plugin { host: HostCall { root: id }, root: Root::default() }
    }
}

impl Context for Plugin {
    fn on_http_call_response(&mut self, token: u32, headers: usize, size: usize, _: usize) {
        let Plugin { host, root } = self;
        answer(headers, size, |answer| root.answer(token, answer, worker(), host));
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.root.end(worker(), &self.host);
    }
}

impl RootContext for Plugin {
    fn on_configure(&mut self, size: usize) -> bool {
        let text = abi::buffer(abi::PLUGIN_CONFIGURATION, size).unwrap_or_default();
        let root_id = abi::property(Property::new(&["plugin_root_id"]).encoded());
        let root_id = root_id.unwrap_or_default();
        self.root.configure(&text, &root_id, worker(), &self.host)
    }

    fn on_tick(&mut self) {
        self.root.tick(worker(), &self.host);
    }

    fn create_http_context(&self, context_id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Http { stream: Stream::new(self.root.instance()?, context_id) }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}
