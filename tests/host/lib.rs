//! A proxy-wasm host with Envoy's semantics. Tests set its clock and observe all effects of the
//! module.

pub mod answer;
pub mod call_out;
pub mod clock;
mod entry;
pub mod guest;
mod imports;
mod memory;
pub mod metrics;
pub mod pairs;
pub mod request;
pub mod shared_data;
pub mod status;
mod stream;
pub mod timer;
pub mod trap;
pub mod vm;

use std::cell::{RefCell, RefMut};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;

use fastrand::Rng;
use wasmi::{CompilationMode, Config, Engine, Linker, Module};

use clock::Clock;
use guest::{Guest, Outside};
use metrics::{Kind, Metrics};
use shared_data::SharedData;
use trap::StartError;
use vm::Vm;

/// A proxy process: the shared state of its VMs, and the module that they run.
pub struct Host {
    outside: Rc<Outside>,
    module: Module,
    linker: Linker<Guest>,
    random: Rng,
    fixed_random: Option<u128>,
}

/// All VMs of a proxy.
pub struct Proxy {
    /// Configured and called by timers, without requests.
    pub main: Vm,
    pub workers: Vec<Vm>,
}

impl Proxy {
    /// All of its VMs.
    pub fn vms(&mut self) -> impl Iterator<Item = &mut Vm> {
        [&mut self.main].into_iter().chain(&mut self.workers)
    }

    /// Fires the timers of all VMs now.
    pub fn tick(&mut self) {
        self.vms().for_each(Vm::fire);
    }

    /// The log lines of all VMs.
    pub fn log(&mut self) -> Vec<String> {
        self.vms().flat_map(|vm| vm.log()).collect()
    }

    /// Advances the clocks, and fires timers when they expire.
    pub fn run(&mut self, micros: u64) {
        let mut vms: Vec<&mut Vm> = self.workers.iter_mut().chain([&mut self.main]).collect();
        timer::run_all(&mut vms, micros).unwrap_or_else(|trap| panic!("{trap}"));
    }
}

/// The plugin's root id.
pub const ROOT_ID: &str = "shop";

impl Host {
    /// A host of the shipped module. Equal seeds produce equal runs.
    pub fn new(seed: u64) -> Host {
        static SHIPPED: OnceLock<Module> = OnceLock::new();
        Host::of(SHIPPED.get_or_init(shipped).clone(), seed)
    }

    /// A host of another module, in binary or text form.
    pub fn with_module(wasm: &str, seed: u64) -> Result<Host, StartError> {
        let module = Module::new(&engine(), wasm);
        let module = module.map_err(|error| StartError::Unloadable(error.to_string()))?;
        Ok(Host::of(module, seed))
    }

    fn of(module: Module, seed: u64) -> Host {
        let mut random = Rng::with_seed(seed);
        let outside = Outside {
            clock: Clock::new(&mut random),
            shared_data: RefCell::new(SharedData::default()),
            interruption: RefCell::new(None),
            metrics: RefCell::new(Metrics::default()),
            environment: RefCell::new(BTreeMap::new()),
            clusters: RefCell::new(BTreeMap::new()),
        };
        let linker = imports::linker(module.engine());
        Host { outside: Rc::new(outside), module, linker, random, fixed_random: None }
    }

    /// The callbacks that the module exports, sorted by name.
    pub fn callbacks(&self) -> Vec<&str> {
        let names = self.module.exports().map(|export| export.name());
        let mut names: Vec<&str> = names.filter(|name| name.starts_with("proxy_on_")).collect();
        names.sort_unstable();
        names
    }

    /// Starts one VM with a configuration.
    pub fn start_vm(&mut self, config: &str) -> Result<Vm, StartError> {
        let (outside, seed) = (Rc::clone(&self.outside), self.random.u64(..));
        let mut vm = Vm::load(&self.module, &self.linker, outside, ROOT_ID, seed)?;
        vm.guest().fixed_random = self.fixed_random;
        vm.configure(config)?;
        Ok(vm)
    }

    /// Subsequently started VMs get these random bits at every read, and timers without delay.
    pub fn fix_random(&mut self, bits: u128) {
        self.fixed_random = Some(bits);
    }

    /// Starts all VMs of a proxy, after a temporary one has validated the configuration.
    pub fn start_proxy(&mut self, workers: usize, config: &str) -> Result<Proxy, StartError> {
        drop(self.start_vm(config)?);
        let main = self.start_vm(config)?;
        let workers = (0..workers).map(|_| self.start_vm(config)).collect::<Result<_, _>>()?;
        Ok(Proxy { main, workers })
    }

    pub fn clock(&self) -> &Clock {
        &self.outside.clock
    }

    /// Advances the clocks.
    pub fn advance(&self, micros: u64) {
        self.outside.clock.advance(micros);
    }

    /// Runs `other` during the next call of a VM, after `accesses` accesses to shared data.
    pub fn interrupt_after(&self, accesses: u32, other: Box<dyn FnOnce()>) {
        *self.outside.interruption.borrow_mut() = Some((accesses, other));
    }

    /// Removes the interruption if it has not run.
    pub fn take_interruption(&self) -> Option<Box<dyn FnOnce()>> {
        self.outside.interruption.take().map(|(_, other)| other)
    }

    /// The value of a counter or gauge, if it was defined.
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.outside.metrics.borrow().get(name, Kind::Counter)
    }

    pub fn gauge(&self, name: &str) -> Option<u64> {
        self.outside.metrics.borrow().get(name, Kind::Gauge)
    }

    /// The names of all metrics, for messages.
    pub fn metrics(&self) -> Vec<String> {
        self.outside.metrics.borrow().names().map(str::to_owned).collect()
    }

    /// The shared data of all VMs.
    pub fn shared_data(&self) -> RefMut<'_, SharedData> {
        self.outside.shared_data.borrow_mut()
    }

    /// The number of keys in shared data.
    pub fn shared_keys(&self) -> usize {
        self.outside.shared_data.borrow().keys()
    }

    /// Sets an environment variable of VMs.
    pub fn set_environment(&self, name: &str, value: &str) {
        self.outside.environment.borrow_mut().insert(name.into(), value.into());
    }

    /// Adds a cluster, so that it can be called.
    pub fn add_cluster(&self, name: &str) {
        self.outside.clusters.borrow_mut().insert(name.into(), true);
    }

    /// Removes all endpoints of a cluster, which still exists.
    pub fn empty_cluster(&self, name: &str) {
        self.outside.clusters.borrow_mut().insert(name.into(), false);
    }
}

fn engine() -> Engine {
    let mut config = Config::default();
    config.consume_fuel(true);
    // Compiling on first use would be charged to the first request.
    config.compilation_mode(CompilationMode::Eager);
    config.set_max_recursion_depth(10_000);
    Engine::new(&config)
}

fn shipped() -> Module {
    let path = std::env::var_os("DIANA_WASM").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/diana.wasm"),
        PathBuf::from,
    );
    let bytes = std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; `make build` makes it, DIANA_WASM names another", path.display())
    });
    Module::new(&engine(), bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
