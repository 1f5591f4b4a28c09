//! `actors`: the kinds of callers.

use std::rc::Rc;

use super::fields::Fields;
use super::mapping::Allowed::{Any, Either, Flag, List, Map};
use super::mapping::{Allowed, Mapping, optional};
use super::native;
use super::node::Node;
use super::values::{self, is_name};
use super::values::{TEXT, TEXTS};
use diana_policy::tree::Tree;
use diana_policy::{Actor, IdentitySource};
use diana_request::identity::{
    self, Mistake, REGISTRY, Source, ValueForm, client_address, folded, header,
};

/// Sources of an actor.
pub const SOURCES: Allowed =
    List("a list of sources such as `[{header: x-tenant}, {client_address: {}}]`", &Map(&SOURCE));

/// A source. Its kind builds and validates it.
pub static SOURCE: Mapping = Mapping {
    name: "source",
    what: "a mapping such as `{header: x-tenant}`",
    keys: &[],
    more: || {
        let kinds = identity::REGISTRY.iter();
        let keys = kinds.flat_map(|kind| [&[(kind.name, kind.form)], kind.options].concat());
        let keys = keys.chain(folded::OPTIONS.iter().copied());
        keys.map(|(name, form)| optional(name, written_as(form))).collect()
    },
};

fn written_as(form: ValueForm) -> Allowed {
    match form {
        ValueForm::Text => TEXT,
        ValueForm::Texts => TEXTS,
        ValueForm::TextOrTexts => Either(&[TEXT, TEXTS]),
        ValueForm::Flag => Flag,
        ValueForm::Any => Any,
    }
}

/// An actor with its sources.
#[derive(Debug)]
pub struct ActorSources {
    /// The actor.
    pub actor: Actor,
    /// Its sources.
    pub sources: Vec<Rc<dyn Source>>,
    /// Whether one client can pose as many callers. One source that clients choose is enough, since
    /// they also choose whether it has a value.
    pub is_caller_chosen: bool,
    /// Whether it is the client address, which clients cannot choose.
    pub is_address: bool,
}

/// A source and its configuration.
pub type ReadSource = (IdentitySource, Rc<dyn Source>);

/// The names of the default actors, and of no actor.
pub const STANDARD: [&str; 4] = ["account", "device", "address", "all"];

/// Reads `actors`. The default actors come first, overridden or not.
pub fn read(top: &Fields<'_>) -> Vec<ActorSources> {
    let address = || (client_address::KIND.name, Tree::Null);
    let by_header = |name: &str| (header::KIND.name, Tree::Text(name.into()));
    let mut known = vec![
        standard("account", vec![by_header("x-account-id")]),
        standard("device", vec![by_header("x-device-id"), address()]),
        standard("address", vec![address()]),
    ];
    let standards = known.len();
    for (name, value) in top.named("actors") {
        let actor = describe(name, sources(&value));
        if !check_name(name, &value) {
            continue;
        }
        match known.iter_mut().take(standards).find(|known| known.actor.name == name) {
            Some(standard) => *standard = actor,
            None => known.push(actor),
        }
    }
    known
}

fn standard(name: &str, sources: Vec<(&'static str, Tree)>) -> ActorSources {
    let built = |(kind, value)| build(IdentitySource { kind, value, options: Vec::new() }).ok();
    describe(name, sources.into_iter().filter_map(built).collect())
}

fn build(wanted: IdentitySource) -> Result<ReadSource, Vec<Mistake>> {
    identity::build(&wanted).map(|source| (wanted, source))
}

fn describe(name: &str, built: Vec<ReadSource>) -> ActorSources {
    let is_address = |(wanted, _): &ReadSource| wanted.kind == client_address::KIND.name;
    let is_address = built.iter().all(is_address);
    let (wanted, sources): (_, Vec<Rc<dyn Source>>) = built.into_iter().unzip();
    ActorSources {
        is_caller_chosen: sources.iter().any(|source| source.is_caller_chosen()),
        is_address,
        actor: Actor { name: name.into(), sources: wanted },
        sources,
    }
}

fn check_name(name: &str, node: &Node<'_>) -> bool {
    if name == "actor" || name == "all" {
        node.key_problem(format!("`{name}` is reserved; choose another name"));
    } else if !is_name(name) {
        node.key_problem(format!("not a valid name, allowed: {}", values::NAME));
    } else {
        return true;
    }
    false
}

/// Reports a header that is also a source of an actor. Such a header is removed from every request
/// before the limits are evaluated.
pub fn refuse_actor_header(actors: &[ActorSources], header: &str, node: &Node<'_>) {
    let is_read =
        |known: &&ActorSources| known.sources.iter().any(|it| it.header() == Some(header));
    if let Some(ActorSources { actor, .. }) = actors.iter().find(is_read) {
        let name = &actor.name;
        node.problem(format!("actor `{name}` is read from this header; choose another header"));
    }
}

/// Reads and builds a list of sources.
pub fn sources(node: &Node<'_>) -> Vec<ReadSource> {
    let items = node.list(&SOURCES).unwrap_or_default();
    if *node.tree() == Tree::List(Vec::new()) {
        node.problem(format!("found an empty list, allowed: {SOURCES}"));
    }
    items.iter().filter_map(source).collect()
}

/// Reads and builds a source.
pub fn source(node: &Node<'_>) -> Option<ReadSource> {
    let kinds: Vec<&str> = REGISTRY.iter().map(|kind| kind.name).collect();
    let pairs = node.pairs(&SOURCE.what)?;
    let found: Vec<_> =
        REGISTRY.iter().filter(|kind| pairs.iter().any(|(key, _)| *key == kind.name)).collect();
    let [kind] = found.as_slice() else {
        for (key, value) in pairs.iter().filter(|(key, _)| !kinds.contains(key)) {
            value.unknown_key(key, &kinds);
        }
        // A value that is not a mapping has been reported already.
        if !found.is_empty() || pairs.is_empty() {
            let (count, kinds) = (found.len(), kinds.join(", "));
            node.problem(format!("found {count} sources, allowed: exactly one of {kinds}"));
        }
        return None;
    };
    let (mut value, mut options) = (Tree::Null, Vec::new());
    let folds = if matches!(kind.form, ValueForm::Any) { &[] } else { folded::OPTIONS };
    let mut known = vec![kind.name];
    known.extend(kind.options.iter().chain(folds).map(|(name, _)| *name));
    for (key, node) in &pairs {
        if *key == kind.name {
            value = node.tree().clone();
        } else if known.contains(key) {
            options.push((key.to_string(), node.tree().clone()));
        } else {
            node.unknown_key(key, &known);
        }
    }
    match build(IdentitySource { kind: kind.name, value, options }) {
        Ok(built) => {
            native::check_source(node, &built.0);
            Some(built)
        }
        Err(mistakes) => {
            for mistake in mistakes {
                node.descend(&mistake.key).problem(mistake.message);
            }
            None
        }
    }
}
