//! An HTTP filter that lets every request pass, with every export that the SDK gives it.

use proxy_wasm::traits::{Context, HttpContext};

proxy_wasm::main! {{
    proxy_wasm::set_http_context(|_, _| Box::new(Noop));
}}

struct Noop;

impl Context for Noop {}
impl HttpContext for Noop {}
