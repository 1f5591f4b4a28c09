//! An HTTP filter that passes every request, with all exports of the SDK. Configured as `reply`, it
//! responds to every request, with a response of the same size as Diana's refusals.

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

proxy_wasm::main! {{
    proxy_wasm::set_root_context(|_| Box::new(Root { replies: false }));
}}

struct Root {
    replies: bool,
}

impl Context for Root {}
impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        self.replies = self.get_plugin_configuration().as_deref() == Some(b"reply");
        true
    }

    fn create_http_context(&self, _id: u32) -> Option<Box<dyn HttpContext>> {
        Some(if self.replies { Box::new(Reply) } else { Box::new(Noop) })
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

struct Noop;

impl Context for Noop {}
impl HttpContext for Noop {}

struct Reply;

impl Context for Reply {}
impl HttpContext for Reply {
    fn on_http_request_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        let state = "refused rule=limits[0].rules[0] scope=local mode=enforced wait=86399.123456s \
                     limit=1 remaining=0 reset=86399.123456s key=0123456789abcdef";
        self.set_property(vec!["diana"], Some(state.as_bytes()));
        let headers = vec![
            ("ratelimit-policy", "\"limits[0].rules[0]\";q=1;w=86400"),
            ("ratelimit", "\"limits[0].rules[0]\";r=0;t=86399"),
            ("x-envoy-ratelimited", "true"),
            ("retry-after", "86399"),
            ("content-type", "text/plain"),
        ];
        self.send_http_response(503, headers, Some(b"rate limit exceeded"));
        Action::Pause
    }
}
