//! Calls into a VM, and the actions after they return.

use wasmi::{WasmParams, WasmResults};

use super::guest::Action;
use super::trap::Trap;
use super::vm::Vm;

/// Maximum fuel of one call. Envoy has no such limit: it would hang.
const FUEL: u64 = 40_000_000_000;

/// Maximum nesting of calls. V8's stack overflows when one call responds to a few hundred streams,
/// since each response calls into the VM from within the previous one.
const DEPTH: u32 = 300;

impl Vm {
    /// Calls an export in context `id`, then runs its deferred actions. Does nothing if the module
    /// lacks the export.
    pub(crate) fn call<P, R>(&mut self, export: &str, id: u32, args: P) -> Result<Option<R>, Trap>
    where
        P: WasmParams,
        R: WasmResults,
    {
        let result = self.enter(export, id, args)?;
        self.run_actions()?;
        Ok(result.map(|(result, _)| result))
    }

    /// Calls an export. The second result is true if the call sent a local reply, which stops the
    /// stream for any return value.
    pub(crate) fn enter<P, R>(
        &mut self,
        export: &str,
        id: u32,
        args: P,
    ) -> Result<Option<(R, bool)>, Trap>
    where
        P: WasmParams,
        R: WasmResults,
    {
        if let Some(trap) = &self.dead {
            return Err(trap.clone());
        }
        let Some(function) = self.instance.get_func(&self.store, export) else {
            return Ok(None);
        };
        if self.depth == DEPTH {
            return Err(self.die(export, "Maximum call stack size exceeded"));
        }
        let function = match function.typed::<P, R>(&self.store) {
            Ok(function) => function,
            Err(error) => return Err(self.die(export, error)),
        };
        let guest = self.store.data_mut();
        guest.current = id;
        guest.effective = 0;
        guest.stopped = false;
        self.store.set_fuel(FUEL).expect("fuel is switched on");
        let result = function.call(&mut self.store, args);
        let used = FUEL - self.store.get_fuel().expect("fuel is switched on");
        let guest = self.store.data_mut();
        guest.most_deferred = guest.most_deferred.max(guest.actions.len());
        guest.fuel += used;
        guest.effective = 0;
        match result {
            Ok(result) => Ok(Some((result, guest.stopped))),
            Err(error) => Err(self.die(export, error)),
        }
    }

    /// Runs deferred actions in order, each followed by those that it defers itself.
    pub(crate) fn run_actions(&mut self) -> Result<(), Trap> {
        self.depth += 1;
        while let Some(action) = self.store.data_mut().actions.pop_front() {
            let id = match action {
                Action::Resume(id) => {
                    self.resume(id);
                    id
                }
                Action::Reply(id, reply) => {
                    self.reply(id, reply)?;
                    id
                }
            };
            self.end_neighbour(id)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn die(&mut self, export: &str, cause: impl std::fmt::Display) -> Trap {
        let trap = Trap::new(export, cause, &self.store.data().log);
        self.dead = Some(trap.clone());
        trap
    }
}
