//! A trip as commands.

use std::fmt::{self, Write};

use super::pack::Array;
use super::resp::{command, word};
use super::text::{DIGEST, TEXT};
use super::{Ask, Back, Charge, Login, Script, Trip};
use crate::key::{Key, Seed};
use crate::redis::part::Part;

impl Login {
    /// Commands that it takes.
    pub(super) fn commands(&self) -> usize {
        usize::from(self.password.is_some()) + usize::from(self.db > 0)
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(password) = &self.password {
            command(out, 2 + usize::from(self.username.is_some()));
            word(out, b"AUTH");
            self.username.iter().for_each(|name| word(out, name.as_bytes()));
            word(out, password.as_bytes());
        }
        if self.db > 0 {
            command(out, 2);
            word(out, b"SELECT");
            word(out, self.db.to_string().as_bytes());
        }
    }
}

impl Trip {
    /// The bytes to be sent. Redis closes the connection after its answer.
    #[must_use]
    pub fn pipeline(&self, login: &Login, script: Script) -> Vec<u8> {
        let mut out = Vec::new();
        login.write(&mut out);
        let charges = || self.asks.iter().flat_map(|ask| &ask.rules);
        let keys = 3 + charges().count();
        command(&mut out, 3 + keys + 4);
        let [name, what]: [&[u8]; 2] = match script {
            Script::Digest => [b"EVALSHA", DIGEST],
            Script::Text => [b"EVAL", TEXT],
        };
        word(&mut out, name);
        word(&mut out, what);
        word(&mut out, keys.to_string().as_bytes());
        let mut key = format!("diana:{}:", Part::Whole.tag(&self.namespace));
        let prefix = key.len();
        let mut write_key = |name: fmt::Arguments| {
            key.truncate(prefix);
            // Writing to a string cannot fail.
            _ = key.write_fmt(name);
            word(&mut out, key.as_bytes());
        };
        write_key(format_args!("seed"));
        write_key(format_args!("clock"));
        write_key(format_args!("gateways"));
        for Charge { identity, caller, numbers, .. } in charges() {
            match numbers.daily {
                Some(shape) => {
                    write_key(format_args!("{identity:016x}:{:x}", shape.piece(*caller).0));
                }
                None => {
                    let Key { hash, spread } = caller;
                    write_key(format_args!("{identity:016x}:{hash:016x}{spread:016x}"));
                }
            }
        }
        let now = self.now.map(|now| now.to_string()).unwrap_or_default();
        word(&mut out, now.as_bytes());
        word(&mut out, format!("{:016x}", self.gateway).as_bytes());
        let Seed { k0, k1 } = self.seed;
        word(&mut out, format!("{k0:016x}{k1:016x}").as_bytes());
        let mut numbers = Array::default();
        self.asks.iter().for_each(|ask| ask.pack(&mut numbers));
        word(&mut out, &numbers.finish());
        command(&mut out, 1);
        word(&mut out, b"QUIT");
        out
    }
}

impl Ask {
    fn pack(&self, to: &mut Array) {
        to.count(self.rules.len() as u64);
        to.count(self.delay);
        self.rules.iter().for_each(|charge| charge.pack(to));
    }
}

impl Charge {
    fn pack(&self, to: &mut Array) {
        let Charge { caller, numbers, cost, grain, want, soon, keys, back, .. } = *self;
        let [shadow, tentative] = [self.shadow, self.tentative].map(u64::from);
        let Back { receipt, term, block, left } = back;
        numbers.pack(caller, to);
        [cost, grain, want, soon, shadow, tentative, keys, receipt, term, block, left]
            .into_iter()
            .for_each(|number| to.count(number));
    }
}
