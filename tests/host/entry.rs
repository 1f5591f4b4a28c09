//! Every call into a VM, and what happens when it returns.

use wasmi::{WasmParams, WasmResults};

use super::guest::Action;
use super::trap::Trap;
use super::vm::Vm;

/// What one call may use up before it counts as hanging. Envoy has no such limit: it would hang.
const FUEL: u64 = 40_000_000_000;

/// How deeply calls may nest: V8's stack overflows when a few hundred streams are answered in one
/// call, since each answer calls into the VM from within the previous one.
const DEPTH: u32 = 300;

impl Vm {
    /// Calls an export in context `id`, then runs what it deferred. An export that the module does
    /// not have is not called.
    pub(crate) fn call<P, R>(&mut self, export: &str, id: u32, args: P) -> Result<Option<R>, Trap>
    where
        P: WasmParams,
        R: WasmResults,
    {
        let result = self.enter(export, id, args)?;
        self.run_actions()?;
        Ok(result.map(|(result, _)| result))
    }

    /// Calls an export. The second result says whether it sent a local reply, after which the
    /// stream goes no further whatever the export returned.
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

    /// Runs what calls have deferred, each in turn and each with whatever it defers itself.
    pub(crate) fn run_actions(&mut self) -> Result<(), Trap> {
        self.depth += 1;
        while let Some(action) = self.store.data_mut().actions.pop_front() {
            match action {
                Action::Resume(id) => self.resume(id),
                Action::Reply(id, reply) => self.reply(id, reply)?,
            }
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
