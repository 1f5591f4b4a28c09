//! Which plan requests have, by what is said of them.

use std::net::IpAddr;
use std::rc::Rc;

use hashbrown::HashTable;

use crate::identity::caller::Callers;
use crate::identity::sources::Sources;
use crate::identity::{self, Found, Mistake, Source};
use crate::key::{Key, Seed};
use crate::number::{digits, whole};
use crate::policy::{Actor, IdentitySource, Told};
use crate::port::Request;

/// All that is looked for in requests to choose among the plans of rules. Each is looked for at most once in a
/// request, however many rules go by it.
#[derive(Default)]
pub struct Choosers {
    all: Vec<Chooser>,
    /// Whether anything was found in the request in hand.
    is_used: bool,
}

struct Chooser {
    wanted: Wanted,
    by: By,
    /// Names of plans, as they stand in requests, and the number of each.
    names: HashTable<(Value, u32)>,
    count: u32,
    /// What the request in hand says, once it was asked.
    found: Option<Option<u64>>,
}

/// What was asked for, by which equal ones are known.
#[derive(PartialEq)]
enum Wanted {
    Sources(Vec<IdentitySource>),
    Caller(usize),
    Number(IdentitySource, bool),
}

enum By {
    Sources(Sources),
    Caller(usize),
    Number { source: Rc<dyn Source>, is_text: bool },
}

/// A value, and whether it is an address.
type Value = (bool, Box<[u8]>);

impl Choosers {
    /// Plans with these names, chosen by what the sources say, or by the value that the actor with this number is
    /// recognised by. The number of what chooses, and that of each name.
    ///
    /// # Errors
    /// Every mistake in the sources.
    pub fn of_names<'n>(
        &mut self,
        by: Option<&[IdentitySource]>,
        actor: Option<usize>,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(usize, Vec<u32>), Vec<Mistake>> {
        let (wanted, by) = match (by, actor) {
            (Some(sources), _) => {
                let actor = Actor { name: String::new(), sources: sources.to_vec() };
                (Wanted::Sources(actor.sources.clone()), By::Sources(Sources::new(&actor)?))
            }
            (None, Some(actor)) => (Wanted::Caller(actor), By::Caller(actor)),
            // Everybody as one has no value.
            (None, None) => (Wanted::Sources(Vec::new()), By::Caller(usize::MAX)),
        };
        let number = self.find(wanted, by);
        let chooser = self.all.get_mut(number);
        let numbers = chooser.map(|chooser| names.map(|name| chooser.number(name)).collect());
        Ok((number, numbers.unwrap_or_default()))
    }

    /// A number that trusted data says. The number of what tells it.
    ///
    /// # Errors
    /// Every mistake in its source.
    pub fn of_number(&mut self, told: &Told) -> Result<usize, Vec<Mistake>> {
        let (source, is_text) = (identity::build(&told.source)?, told.is_text);
        let wanted = Wanted::Number(told.source.clone(), is_text);
        Ok(self.find(wanted, By::Number { source, is_text }))
    }

    fn find(&mut self, wanted: Wanted, by: By) -> usize {
        if let Some(known) = self.all.iter().position(|known| known.wanted == wanted) {
            return known;
        }
        self.all.push(Chooser { wanted, by, names: HashTable::new(), count: 0, found: None });
        self.all.len() - 1
    }

    /// Whether headers are looked at.
    #[must_use]
    pub fn reads_headers(&self) -> bool {
        self.all.iter().any(|chooser| match &chooser.by {
            By::Sources(sources) => sources.reads_headers(),
            By::Number { source, .. } => source.reads_headers(),
            // The actor says so.
            By::Caller(_) => false,
        })
    }

    /// Forgets the request before.
    #[inline]
    pub fn begin(&mut self) {
        if std::mem::take(&mut self.is_used) {
            self.all.iter_mut().for_each(|chooser| chooser.found = None);
        }
    }

    /// What a request says: the number of a name, or the number that it tells; nothing if there is no such, or nobody
    /// can tell which of several values is meant.
    pub fn look(
        &mut self,
        chooser: usize,
        callers: &Callers,
        request: &dyn Request,
    ) -> Option<u64> {
        let chooser = self.all.get_mut(chooser)?;
        self.is_used = true;
        if let Some(found) = chooser.found {
            return found;
        }
        let found = chooser.ask(callers, request);
        chooser.found = Some(found);
        found
    }
}

impl Chooser {
    /// The number of a name of a plan.
    fn number(&mut self, name: &str) -> u32 {
        let text: Value = (false, name.as_bytes().into());
        if let Some(number) = self.find(text.0, &text.1) {
            return number;
        }
        self.count += 1;
        let address = name.parse::<IpAddr>().ok().map(|address| match address.to_canonical() {
            IpAddr::V4(address) => (true, Box::from(address.octets())),
            IpAddr::V6(address) => (true, Box::from(address.octets())),
        });
        for value in [Some(text), address].into_iter().flatten() {
            let hash = hash(value.0, &value.1);
            let rehash = |((is_address, value), _): &(Value, u32)| self::hash(*is_address, value);
            self.names.insert_unique(hash, (value, self.count), rehash);
        }
        self.count
    }

    fn find(&self, is_address: bool, value: &[u8]) -> Option<u32> {
        let is_it = |(known, _): &(Value, u32)| known.0 == is_address && *known.1 == *value;
        self.names.find(hash(is_address, value), is_it).map(|(_, number)| *number)
    }

    fn ask(&self, callers: &Callers, request: &dyn Request) -> Option<u64> {
        let found = match &self.by {
            By::Sources(sources) => sources.find(request).1,
            By::Caller(actor) => callers.value(*actor, request),
            By::Number { source, .. } => source.find(request),
        };
        let Found::Value(value) = found else { return None };
        match &self.by {
            By::Number { is_text: true, .. } => digits(&value),
            By::Number { .. } => whole(&value),
            By::Sources(_) | By::Caller(_) => self.find(value.is_address(), &value).map(u64::from),
        }
    }
}

fn hash(is_address: bool, value: &[u8]) -> u64 {
    Key::of(&Seed::PUBLIC, usize::from(is_address), value).hash
}
