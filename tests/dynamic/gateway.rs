//! A fake Envoy with a module of its own: its configurations, and the events of its main thread.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, Weak};

use diana_native::explored::Module;

use crate::config::Configuration;
use crate::hooks;

/// All of them, since their modules stay until the end of the process.
static GATEWAYS: Mutex<Vec<&Gateway>> = Mutex::new(Vec::new());

/// A task of the main thread.
#[derive(Debug)]
pub enum Event {
    Scheduled(Weak<Configuration>, u64),
    /// A call has a reply.
    Reply(Weak<Configuration>, u64),
}

pub type KeptCall = (Weak<Configuration>, u64, Vec<u8>);

#[derive(Default)]
pub struct Gateway {
    pub module: Module,
    events: Mutex<VecDeque<Event>>,
    latest: Mutex<Option<Arc<Configuration>>>,
    /// Earlier ones, which have streams.
    old: Mutex<Vec<Arc<Configuration>>>,
    /// Changes of metrics without a stream.
    pub changes: AtomicUsize,
    /// Calls of the main thread.
    pub callouts: AtomicUsize,
    /// Calls to which a test replies: the configuration of each, its number and its body.
    pub kept: Mutex<Option<Vec<KeptCall>>>,
    /// Requests that the module has marked.
    pub marked: AtomicUsize,
    /// How often the module has read the secret.
    pub looks: AtomicUsize,
    /// The latest value of the secret.
    pub secret: Mutex<Vec<u8>>,
}

impl Gateway {
    pub fn start() -> &'static Gateway {
        hooks::program_init();
        let gateway: &Gateway = Box::leak(Box::default());
        GATEWAYS.lock().unwrap().push(gateway);
        gateway
    }

    /// The configuration of new streams.
    pub fn latest(&self) -> Arc<Configuration> {
        self.latest.lock().unwrap().clone().unwrap()
    }

    /// Replaces the configuration of new streams. `None` if the module rejects the document.
    pub fn update(&'static self, document: &str) -> Option<()> {
        let config = Configuration::new(self, document)?;
        let before = self.latest.lock().unwrap().replace(config);
        self.old.lock().unwrap().extend(before);
        Some(())
    }

    /// The latest configuration looks at its switches and secrets, as the thread of the module demands each second.
    pub fn look(&self) {
        const LOOK: u64 = 1;
        self.later(Event::Scheduled(Arc::downgrade(&self.latest()), LOOK));
    }

    /// Destroys the configurations without streams.
    pub fn drain(&self) {
        let is_unused = |config: &mut Arc<Configuration>| Arc::strong_count(config) == 1;
        let drained: Vec<_> = self.old.lock().unwrap().extract_if(.., is_unused).collect();
        drained.into_iter().for_each(Configuration::destroy);
    }

    /// Destroys all configurations. Their streams have ended.
    pub fn end(&self) {
        self.run_events();
        let latest = self.latest.lock().unwrap().take();
        self.old.lock().unwrap().extend(latest);
        self.drain();
        assert!(self.old.lock().unwrap().is_empty(), "a stream is left");
        self.run_events();
    }

    /// Does something later on the main thread.
    pub fn later(&self, event: Event) {
        self.events.lock().unwrap().push_back(event);
    }

    /// Whether the main thread has work.
    pub fn has_events(&self) -> bool {
        !self.events.lock().unwrap().is_empty()
    }

    /// Runs the events of the main thread. Those of destroyed configurations are dropped.
    pub fn run_events(&self) {
        let events = mem::take(&mut *self.events.lock().unwrap());
        for event in events {
            let (Event::Scheduled(config, _) | Event::Reply(config, _)) = &event;
            let Some(config) = config.upgrade().filter(|config| !config.module().is_null()) else {
                continue;
            };
            match event {
                Event::Scheduled(_, event) => config.scheduled(event),
                Event::Reply(_, id) => config.reply(id),
            }
        }
    }
}
