//! The composition.

use std::collections::BTreeMap;

use diana_config::Reader;
use diana_config::resource::PolicyTargetRef;
use diana_policy::remote::MOST_KEYS;
use diana_policy::tree::Tree;

use crate::form::{self, PolicyForm, PolicyReason, PolicyRefusal};
use crate::objects::{AcceptedSpec, AttachedRoute, Namespace, Platform, PolicyObject};
use crate::{routes, text};

/// Bytes of a document, at most: gateways read no larger one.
const MOST_BYTES: usize = 1 << 20;

const NO_ROOM: &str = "the document of the platform has no room for the newest policies; the platform may lower `keys`, or its teams \
                       may remove rules";

/// A document, and what became of each policy.
#[derive(Debug, PartialEq, Eq)]
pub struct Composition {
    /// The document for the gateways.
    pub document: String,
    /// All policies, by namespace and name.
    pub policies: Vec<PolicyStatus>,
}

/// What became of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyStatus {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The generation that was read.
    pub generation: i64,
    /// Why it is not accepted, if it is not.
    pub refusal: Option<PolicyRefusal>,
    /// The form that the document contains.
    pub in_force: Option<AcceptedSpec>,
}

/// A policy with its entries in the document.
struct PolicyDraft {
    status: PolicyStatus,
    entries: Vec<Tree>,
}

impl Platform {
    /// The entries of its document.
    pub(crate) fn entries(&self) -> &[Tree] {
        form::items(self.document.get("limits").unwrap_or(&self.document))
    }
}

/// Composes the document of a platform and its policies. Of two policies that exclude each
/// other, the older one is accepted.
#[must_use]
pub fn compose(
    platform: &Platform,
    policies: &[PolicyObject],
    routes: &[AttachedRoute],
    namespaces: &[Namespace],
) -> Composition {
    let mut order: Vec<&PolicyObject> = policies.iter().collect();
    order.sort_by_key(|policy| (policy.created, &policy.namespace, &policy.name));
    let mut places =
        Placement { platform, routes, rules: BTreeMap::new(), replaced: BTreeMap::new() };
    let is_selected = |policy: &PolicyObject| {
        let labels = namespaces.iter().find(|it| it.name == policy.namespace).map(|it| &it.labels);
        labels.is_some_and(|labels| platform.rights.namespaces.selects(labels))
    };
    let drafts =
        order.into_iter().map(|policy| places.draft(policy, is_selected(policy))).collect();
    fitting(platform, drafts)
}

/// What older policies have taken.
struct Placement<'c> {
    platform: &'c Platform,
    routes: &'c [AttachedRoute],
    /// The rules of each namespace.
    rules: BTreeMap<String, usize>,
    /// The policy that replaces a default on a route.
    replaced: BTreeMap<(String, String, PolicyTargetRef), String>,
}

impl Placement<'_> {
    /// The newest form of a policy that is accepted, and why newer ones are not.
    fn draft(&mut self, policy: &PolicyObject, is_selected: bool) -> PolicyDraft {
        let PolicyObject { namespace, name, generation, spec, .. } = policy;
        let mut status = PolicyStatus {
            namespace: namespace.clone(),
            name: name.clone(),
            generation: *generation,
            refusal: None,
            in_force: None,
        };
        if !is_selected {
            status.refusal = Some(PolicyRefusal::not_allowed(format!(
                "the platform allows no policies in the namespace `{namespace}`; its labels decide it"
            )));
            return PolicyDraft { status, entries: Vec::new() };
        }
        let newest = AcceptedSpec { generation: *generation, spec: spec.clone() };
        let before = policy.in_force.iter().filter(|before| before.generation != *generation);
        for form in [&newest].into_iter().chain(before) {
            match self.place(policy, &form.spec) {
                Ok((entries, missing)) => {
                    status.refusal = status.refusal.or(missing);
                    status.in_force = Some(form.clone());
                    return PolicyDraft { status, entries };
                }
                Err(refusal) => status.refusal = status.refusal.or(Some(refusal)),
            }
        }
        PolicyDraft { status, entries: Vec::new() }
    }

    /// The entries of a form for its routes, and the routes that are missing.
    fn place(
        &mut self,
        policy: &PolicyObject,
        spec: &Tree,
    ) -> Result<(Vec<Tree>, Option<PolicyRefusal>), PolicyRefusal> {
        let form = form::read(self.platform, policy, spec)?;
        let (found, missing) = self.found(policy, &form);
        let tests =
            found.iter().map(|route| routes::tests(self.platform.plane, route, self.routes));
        let tests =
            tests.collect::<Result<Vec<_>, _>>().map_err(PolicyRefusal::not_allowed)?.concat();
        let used = self.rules.get(&policy.namespace).copied().unwrap_or(0);
        let most = self.platform.rights.rules;
        if used + form.rules > most {
            return Err(PolicyRefusal::not_allowed(format!(
                "the policies of a namespace may have {most} rules, and older ones of `{}` have {used}; this one has {}",
                policy.namespace, form.rules
            )));
        }
        self.replace(policy, &form)?;
        self.rules.insert(policy.namespace.clone(), used + form.rules);
        // Without a route, no request is limited.
        let entries = form.entries.into_iter().filter(|_| !tests.is_empty());
        Ok((entries.map(|entry| routes::restrict(entry, &tests)).collect(), missing))
    }

    /// The routes of a form that exist, and a refusal with the others.
    fn found(
        &self,
        policy: &PolicyObject,
        form: &PolicyForm,
    ) -> (Vec<&AttachedRoute>, Option<PolicyRefusal>) {
        let of = |target: &PolicyTargetRef| {
            let is_it = |route: &&AttachedRoute| {
                route.namespace == policy.namespace && route.target == *target
            };
            self.routes.iter().find(is_it)
        };
        let missing: Vec<String> = form
            .targets
            .iter()
            .filter(|target| of(target).is_none())
            .map(|PolicyTargetRef { kind, name }| format!("{kind} `{name}`"))
            .collect();
        let refusal = (!missing.is_empty()).then(|| PolicyRefusal {
            reason: PolicyReason::TargetNotFound,
            message: format!(
                "found no {} in the namespace `{}` that is attached to a gateway of the platform; other routes of the policy are \
                 limited",
                missing.join(", "),
                policy.namespace
            ),
        });
        (form.targets.iter().filter_map(of).collect(), refusal)
    }

    /// Takes the defaults that a form replaces, on its routes.
    fn replace(&mut self, policy: &PolicyObject, form: &PolicyForm) -> Result<(), PolicyRefusal> {
        let key = |other: &String, target: &PolicyTargetRef| {
            (other.clone(), policy.namespace.clone(), target.clone())
        };
        let mut keys: Vec<_> = form
            .replaces
            .iter()
            .flat_map(|other| form.targets.iter().map(move |target| key(other, target)))
            .collect();
        keys.sort();
        keys.dedup();
        for taken in &keys {
            if let Some(older) = self.replaced.get(taken) {
                let (default, _, target) = taken;
                return Err(PolicyRefusal {
                    reason: PolicyReason::Conflicted,
                    message: format!(
                        "the policy `{older}` is older and replaces `{default}` on the {} `{}`, too; remove it from `replaces`",
                        target.kind, target.name
                    ),
                });
            }
        }
        self.replaced.extend(keys.into_iter().map(|key| (key, policy.name.clone())));
        Ok(())
    }
}

/// The document with as many of the oldest policies as gateways accept.
fn fitting(platform: &Platform, mut drafts: Vec<PolicyDraft>) -> Composition {
    let keys = read(platform, &text(platform, &[])).unwrap_or_default();
    let fits = |count: usize| {
        let text = text(platform, drafts.get(..count)?);
        read(platform, &text).filter(|with| *with >= keys).map(|_| text)
    };
    // To write a text takes much less time than to read it.
    let is_small = |count: usize| {
        drafts.get(..count).filter(|drafts| text(platform, drafts).len() <= MOST_BYTES).map(|_| ())
    };
    let most = greatest(drafts.len(), is_small).map_or(0, |(count, ())| count);
    let best = greatest(most, fits).unwrap_or_else(|| (0, text(platform, &[])));
    for draft in drafts.iter_mut().skip(best.0) {
        draft.status.in_force = None;
        draft.status.refusal.get_or_insert_with(|| PolicyRefusal::not_allowed(NO_ROOM.into()));
    }
    let mut policies: Vec<_> = drafts.into_iter().map(|draft| draft.status).collect();
    policies
        .sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    Composition { document: best.1, policies }
}

/// The greatest count of policies up to `most` that fits, if there is one above 0. Mostly all of them
/// fit.
fn greatest<T>(most: usize, fits: impl Fn(usize) -> Option<T>) -> Option<(usize, T)> {
    let (mut best, mut beyond, mut next) = (None, most + 1, most);
    while next > best.as_ref().map_or(0, |(count, _)| *count) {
        match fits(next) {
            Some(found) => best = Some((next, found)),
            None => beyond = next,
        }
        next = best.as_ref().map_or(0, |(count, _)| *count).midpoint(beyond);
    }
    best
}

/// The text of the document with some policies.
fn text(platform: &Platform, drafts: &[PolicyDraft]) -> String {
    let mut sorted: Vec<&PolicyDraft> = drafts.iter().collect();
    sorted.sort_by(|one, other| {
        let key = |draft: &PolicyDraft| (draft.status.namespace.clone(), draft.status.name.clone());
        key(one).cmp(&key(other))
    });
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for PolicyDraft { status, entries } in &sorted {
        *rules.entry(&status.namespace).or_default() += form::rules(entries).count();
    }
    let sized = |draft: &&PolicyDraft| {
        let rules = rules.get(&*draft.status.namespace).copied().unwrap_or(0).max(1);
        let keys = (platform.rights.callers / rules).clamp(1, MOST_KEYS);
        draft.entries.iter().map(move |entry| form::with_keys(entry, keys)).collect::<Vec<_>>()
    };
    let entries: Vec<Tree> = sorted.iter().flat_map(sized).collect();
    let limits: Vec<&Tree> = platform.entries().iter().chain(&entries).collect();
    text::of(&platform.document, &limits)
}

/// The callers for which each rule has room, if gateways accept the document.
fn read(platform: &Platform, text: &str) -> Option<usize> {
    let policy = Reader::remote(platform.own.clone()).policy(text.as_bytes()).ok()?;
    (text.len() <= MOST_BYTES).then_some(policy.keys)
}
