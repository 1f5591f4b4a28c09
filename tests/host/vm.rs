//! One VM: of a worker, of the main thread, or the temporary one that validates a configuration.

use std::rc::Rc;

use wasmi::{Instance, Linker, Module, Store};

use super::call_out::{CallOut, Response};
use super::guest::{Calls, Guest, Outside, Root};
use super::timer::Timer;
use super::trap::{StartError, Trap};

pub struct Vm {
    pub(crate) store: Store<Guest>,
    pub(crate) instance: Instance,
    pub(crate) dead: Option<Trap>,
    pub(crate) depth: u32,
    last_id: u32,
    root: u32,
}

impl Vm {
    /// Loads and initialises the module, without a configuration.
    pub(crate) fn load(
        module: &Module,
        linker: &Linker<Guest>,
        outside: Rc<Outside>,
        root_id: &str,
        seed: u64,
    ) -> Result<Vm, StartError> {
        let unloadable = |error: wasmi::Error| StartError::Unloadable(error.to_string());
        let guest = Guest::new(outside, root_id.into(), seed);
        let mut store = Store::new(module.engine(), guest);
        store.limiter(|guest| &mut guest.limits);
        store.set_fuel(u64::MAX).map_err(unloadable)?;
        let instance = linker.instantiate_and_start(&mut store, module).map_err(unloadable)?;
        store.data_mut().memory = instance.get_memory(&store, "memory");
        let allocate = ["proxy_on_memory_allocate", "malloc"]
            .into_iter()
            .find_map(|name| instance.get_typed_func(&store, name).ok());
        store.data_mut().allocate = allocate;
        let mut vm = Vm { store, instance, dead: None, depth: 0, last_id: 0, root: 0 };
        vm.call::<_, ()>("_initialize", 0, ())?;
        vm.guest().restricted = false;
        Ok(vm)
    }

    /// Applies a configuration to new requests. Open streams stay with their root. A refused
    /// configuration changes nothing. One that is already live is reused without a call of the
    /// module.
    pub fn configure(&mut self, config: &str) -> Result<(), StartError> {
        let live = self.guest().roots.iter().find(|(_, root)| root.config == config);
        if let Some((id, _)) = live {
            self.root = *id;
            return Ok(());
        }
        let id = self.next_id();
        let logged = self.log().len();
        let root = Root { config: config.into(), timer: Timer::default(), configuring: true };
        self.guest().roots.insert(id, root);
        self.call::<_, ()>("proxy_on_context_create", id, (id, 0_u32))?;
        let started = self.call::<_, u32>("proxy_on_vm_start", id, (id, 0_u32))?;
        let size = u32::try_from(config.len()).expect("a configuration is far below 4 GiB");
        let accepted = started != Some(0)
            && self.call::<_, u32>("proxy_on_configure", id, (id, size))? != Some(0);
        self.guest().roots.entry(id).and_modify(|root| root.configuring = false);
        if !accepted {
            self.guest().roots.remove(&id);
            return Err(StartError::Refused(self.log().split_off(logged)));
        }
        self.root = id;
        Ok(())
    }

    /// The root of new requests, until the next configuration.
    pub fn in_force(&self) -> u32 {
        self.root
    }

    /// All roots, including those that drain.
    pub fn roots(&mut self) -> Vec<u32> {
        self.guest().roots.keys().copied().collect()
    }

    /// Sends new requests to another root of this VM, as another listener does.
    pub fn turn_to(&mut self, root: u32) {
        assert!(self.guest().roots.contains_key(&root), "root {root} is live");
        self.root = root;
    }

    /// Ends the drain time after a change: old roots end, together with their streams.
    pub fn end_drain(&mut self) -> Result<(), Trap> {
        let in_force = self.root;
        let old = self.guest().roots.keys().copied().filter(|id| *id != in_force);
        old.collect::<Vec<u32>>().into_iter().try_for_each(|id| self.end_root(id))
    }

    /// Ends one root, together with its streams.
    pub fn end_root(&mut self, id: u32) -> Result<(), Trap> {
        let streams = self.guest().streams.iter().filter(|(_, stream)| stream.root == id);
        let streams: Vec<u32> = streams.map(|(stream, _)| *stream).collect();
        for stream in streams {
            self.finish(stream)?;
            self.guest().end(stream);
        }
        let done = self.call::<_, u32>("proxy_on_done", id, id)?;
        assert_ne!(done, Some(0), "this host does not wait for proxy_done");
        self.call::<_, ()>("proxy_on_delete", id, id)?;
        self.guest().roots.remove(&id);
        // Replies to its calls are dropped.
        self.guest().call_outs.open.retain(|call| call.root != id);
        Ok(())
    }

    /// Pending HTTP calls.
    pub fn call_outs(&mut self) -> &[CallOut] {
        &self.guest().call_outs.open
    }

    /// Answers the oldest HTTP call.
    pub fn answer_call_out(&mut self, response: Response) -> Result<(), Trap> {
        self.answer_call_out_at(0, response)
    }

    /// Answers the HTTP call at an index.
    pub fn answer_call_out_at(&mut self, place: usize, response: Response) -> Result<(), Trap> {
        let call = self.guest().call_outs.open.remove(place);
        let headers = u32::try_from(response.headers.len()).expect("few headers");
        let body = u32::try_from(response.body.len()).expect("a short body");
        self.guest().call_outs.response = Some(response);
        let args = (call.root, call.token, headers, body, 0_u32);
        self.call::<_, ()>("proxy_on_http_call_response", call.root, args)?;
        self.guest().call_outs.response = None;
        Ok(())
    }

    /// The module's memory in bytes.
    pub fn memory(&self) -> usize {
        let memory = self.store.data().memory.expect("the module is loaded");
        memory.data_size(&self.store)
    }

    /// The number of expired timers.
    pub fn ticks(&self) -> u64 {
        self.store.data().ticks
    }

    /// Maximum number of requests that one call resumed or responded to.
    pub fn most_at_once(&self) -> usize {
        self.store.data().most_deferred
    }

    /// The log without its first `lines` lines.
    pub fn log_from(&self, lines: usize) -> &[String] {
        self.store.data().log.get(lines..).unwrap_or_default()
    }

    pub fn log(&self) -> Vec<String> {
        self.store.data().log.clone()
    }

    /// Host calls and fuel since the counters were reset.
    pub fn counted(&self) -> (&Calls, u64) {
        (&self.store.data().calls, self.store.data().fuel)
    }

    pub fn start_counting(&mut self) {
        self.guest().calls.clear();
        self.guest().fuel = 0;
    }

    pub(crate) fn guest(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    pub(crate) fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }
}
