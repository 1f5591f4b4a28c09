//! One VM: a worker's, the main thread's, or the throw-away one that validates a configuration.

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
    /// Loads the module and runs its initialisation; nothing is configured yet.
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

    /// Puts a configuration into force: requests from now on are its; streams that are open stay
    /// with the root that they began on. A refused one changes nothing, and one that is live
    /// already is taken up again without asking the module.
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

    /// The root that gets the requests from now on, until a configuration is put into force.
    pub fn in_force(&self) -> u32 {
        self.root
    }

    /// All roots, those that drain included.
    pub fn roots(&mut self) -> Vec<u32> {
        self.guest().roots.keys().copied().collect()
    }

    /// Sends the requests from now on to another root of this VM, as they come by another listener.
    pub fn turn_to(&mut self, root: u32) {
        assert!(self.guest().roots.contains_key(&root), "root {root} is live");
        self.root = root;
    }

    /// The end of the drain time after a change: roots that are not in force end, and with them
    /// the streams that are still theirs.
    pub fn end_drain(&mut self) -> Result<(), Trap> {
        let in_force = self.root;
        let old = self.guest().roots.keys().copied().filter(|id| *id != in_force);
        old.collect::<Vec<u32>>().into_iter().try_for_each(|id| self.end_root(id))
    }

    /// Ends one root, and with it the streams that are still its own.
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
        // Nobody is told of the answers to its calls.
        self.guest().call_outs.open.retain(|call| call.root != id);
        Ok(())
    }

    /// Calls over HTTP that await an answer.
    pub fn call_outs(&mut self) -> &[CallOut] {
        &self.guest().call_outs.open
    }

    /// Answers the oldest call over HTTP.
    pub fn answer_call_out(&mut self, response: Response) -> Result<(), Trap> {
        self.answer_call_out_at(0, response)
    }

    /// Answers another one of them.
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

    /// Bytes of memory that the module has.
    pub fn memory(&self) -> usize {
        let memory = self.store.data().memory.expect("the module is loaded");
        memory.data_size(&self.store)
    }

    /// How often a timer has fired.
    pub fn ticks(&self) -> u64 {
        self.store.data().ticks
    }

    /// Most requests that one call let go on or answered.
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

    /// Host calls and fuel since the counting began.
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
