//! Which plan requests have, by what is said of them.

use std::rc::Rc;

use hashbrown::HashTable;

use crate::identity::caller::Callers;
use crate::identity::sources::Sources;
use crate::identity::{self, Found, Mistake, Source};
use diana_policy::key::{Key, Seed};
use diana_policy::number::{digits, whole};
use diana_policy::port::Request;
use diana_policy::{Actor, IdentitySource, Told};

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
    /// Names of plans as sources read them, and the number of each.
    names: HashTable<(Reading, u32)>,
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

/// The number of a source, and the bytes by which it identifies callers.
type Reading = (usize, Box<[u8]>);

impl Choosers {
    /// Plans with these names, chosen by the value of the sources `by`, or else of the actor with this number among
    /// `callers`. Returns the number of the chooser, and that of each name.
    ///
    /// # Errors
    /// Every mistake in the sources.
    pub fn of_names<'n>(
        &mut self,
        by: Option<&[IdentitySource]>,
        (callers, actor): (&Callers, Option<usize>),
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
        let numbers =
            chooser.map(|chooser| names.map(|name| chooser.number(name, callers)).collect());
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
    /// The number of a plan's name, which is read as the sources read requests.
    fn number(&mut self, name: &str, callers: &Callers) -> u32 {
        let sources = self.sources(callers);
        let readings = sources.map_or_else(Vec::new, |sources| sources.readings(name.as_bytes()));
        let known = readings.iter().find_map(|(source, value)| self.find(*source, value));
        let number = known.unwrap_or(self.count + 1);
        self.count = self.count.max(number);
        for (source, value) in readings {
            if self.find(source, &value).is_none() {
                let rehash = |((source, value), _): &(Reading, u32)| self::hash(*source, value);
                let hash = hash(source, &value);
                self.names.insert_unique(hash, ((source, value.into()), number), rehash);
            }
        }
        number
    }

    /// The sources that choose.
    fn sources<'s>(&'s self, callers: &'s Callers) -> Option<&'s Sources> {
        match &self.by {
            By::Sources(sources) => Some(sources),
            By::Caller(actor) => callers.sources(*actor),
            By::Number { .. } => None,
        }
    }

    fn find(&self, source: usize, value: &[u8]) -> Option<u32> {
        let is_it = |(known, _): &(Reading, u32)| known.0 == source && *known.1 == *value;
        self.names.find(hash(source, value), is_it).map(|(_, number)| *number)
    }

    fn ask(&self, callers: &Callers, request: &dyn Request) -> Option<u64> {
        if let By::Number { source, is_text } = &self.by {
            let Found::Value(value) = source.find(request) else { return None };
            return if *is_text { digits(&value) } else { whole(&value) };
        }
        let sources = self.sources(callers)?;
        let (source, Found::Value(value)) = sources.find(request) else { return None };
        self.find(source, &sources.hashed(source, &value)).map(u64::from)
    }
}

fn hash(source: usize, value: &[u8]) -> u64 {
    Key::of(&Seed::PUBLIC, source, value).hash
}
