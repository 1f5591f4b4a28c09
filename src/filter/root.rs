//! One configuration of the plugin in one VM.

use std::cell::RefCell;
use std::rc::Rc;

use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{ContextType, LogLevel};

use super::http::Stream;
use super::stats::HostMetrics;
use super::{abi, host};
use crate::config;
use crate::engine::Engine;
use crate::key::KeyHasher;
use crate::port::{Metrics, Property};
use crate::time::{Micros, SECOND};

/// How often counts are handed to the host, in milliseconds.
const FLUSH: u32 = 1000;

/// How many different configurations can be told apart at once.
const NEWS_SLOTS: u64 = 8;

/// How long an accepted configuration is no news, in ticks: all workers get it within that time.
const NEWS_FOR: Micros = 10 * SECOND;

#[derive(Default)]
pub(super) struct Root {
    engine: Option<Rc<RefCell<Engine>>>,
    namespace: Rc<str>,
}

impl Context for Root {}

impl Drop for Root {
    fn drop(&mut self) {
        abi::set_tick_period(0);
        self.retire();
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        let text = abi::buffer(abi::PLUGIN_CONFIGURATION, size).unwrap_or_default();
        let root_id = abi::property(Property::new(&["plugin_root_id"]).encoded());
        let root_id = sanitise(&root_id.unwrap_or_default());
        match config::parse(&text) {
            Ok(policy) => {
                let namespace = policy.namespace.clone().unwrap_or(root_id);
                self.namespace = namespace.into();
                if self.is_news(&text) {
                    HostMetrics.count(&format!("diana.{}.config.accepted", self.namespace), 1);
                    for line in &policy.warnings {
                        abi::log(LogLevel::Warn as u32, line);
                    }
                    abi::log(LogLevel::Info as u32, &policy.summary());
                }
                self.retire();
                let engine = Engine::new(policy, host::seed(&self.namespace));
                self.engine = Some(Rc::new(RefCell::new(engine)));
                abi::set_tick_period(FLUSH);
                true
            }
            Err(problems) => {
                HostMetrics.count(&format!("diana.{root_id}.config.rejected"), 1);
                let text = format!("configuration rejected:\n{problems}");
                text.lines().for_each(|line| abi::log(LogLevel::Error as u32, line));
                false
            }
        }
    }

    fn on_tick(&mut self) {
        self.with_engine(|engine| engine.flush(&self.namespace, &mut HostMetrics));
    }

    fn create_http_context(&self, _context_id: u32) -> Option<Box<dyn HttpContext>> {
        let engine = self.engine.clone()?;
        let namespace = self.namespace.clone();
        Some(Box::new(Stream { engine, namespace, fields: Vec::new() }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

impl Root {
    fn retire(&self) {
        self.with_engine(|engine| engine.retire(&self.namespace, &mut HostMetrics));
    }

    fn with_engine(&self, act: impl FnOnce(&mut Engine)) {
        if let Some(mut engine) =
            self.engine.as_ref().and_then(|engine| engine.try_borrow_mut().ok())
        {
            act(&mut engine);
        }
    }

    /// Whether this configuration was not accepted a moment ago. Every worker gets it, and the main
    /// thread; one of them tells.
    fn is_news(&self, text: &[u8]) -> bool {
        let mut hasher = KeyHasher::public();
        hasher.part(0, text);
        let digest = hasher.finish().hash;
        // A fixed number of slots, since shared data is never freed.
        let key = format!("diana/1/{}/config/{}", self.namespace, digest % NEWS_SLOTS);
        let now = abi::monotonic();
        let known = abi::shared_data(&key).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
        let known = known.map_or(0, u128::from_le_bytes);
        let is_news = (known >> 64) as u64 != digest || now.saturating_sub(known as u64) > NEWS_FOR;
        if is_news {
            let told = u128::from(digest) << 64 | u128::from(now);
            abi::set_shared_data(&key, &told.to_le_bytes(), 0);
        }
        is_news
    }
}

/// A name that metrics and shared data can bear.
fn sanitise(root_id: &[u8]) -> String {
    let name: String = root_id
        .iter()
        .map(
            |&byte| {
                if byte.is_ascii_alphanumeric() || byte == b'-' { char::from(byte) } else { '_' }
            },
        )
        .collect();
    if name.is_empty() { "diana".into() } else { name }
}
