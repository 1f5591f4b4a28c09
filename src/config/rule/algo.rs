//! The algorithm of a rule. Its keys are declared in the registry of algorithms.

use std::sync::Arc;

use super::cost::{self, Cost};
use super::{limit, settling};
use crate::fields::Fields;
use crate::hint;
use crate::mapping::Allowed::{self, Duration, Whole};
use crate::mapping::{MappingKey, optional};
use crate::node::Node;
use crate::starts::{self, PeriodStarts};
use crate::values;
use diana_algorithm::Form;
use diana_algorithm::{Algorithm, Conflict, Entry, REGISTRY, Setting};
use diana_policy::time::Unit;
use diana_policy::{CostSource, MAX_DRAINED, NumberSource, Quota, Scope, Settling, Zone};

/// The keys of all algorithms, without duplicates.
pub(crate) fn of_algorithms(is_wanted: fn(&Setting) -> bool) -> Vec<MappingKey> {
    let mut keys: Vec<MappingKey> = Vec::new();
    for setting in REGISTRY.iter().flat_map(|entry| entry.keys).filter(|it| is_wanted(it)) {
        if keys.iter().all(|key| key.name != setting.name) {
            keys.push(optional(setting.name, allowed_by(setting)));
        }
    }
    keys
}

/// The allowed values of an algorithm's key.
fn allowed_by(setting: &Setting) -> Allowed {
    match setting.form {
        Form::Number => Whole(setting.min, setting.max),
        Form::Duration => Duration(setting.min, setting.max),
    }
}

/// A rule's algorithm and its parameters.
pub struct RuleAlgorithm {
    /// The quota.
    pub quota: Quota,
    /// The source of the `rpu` in trusted data, if there is one.
    pub limit_source: Option<NumberSource>,
    /// The source of the first day of a month in trusted data, if there is one.
    pub month_source: Option<NumberSource>,
    /// The source of the cost in requests, if there is one.
    pub cost_source: Option<CostSource>,
    /// The settlement of reservations, if there is one.
    pub settling: Option<Settling>,
    /// The entry of the algorithm in the registry.
    pub entry: &'static Entry,
    /// The algorithm.
    pub algorithm: Arc<dyn Algorithm>,
}

impl RuleAlgorithm {
    /// Returns true if the rule limits concurrent requests.
    pub fn is_in_flight(&self) -> bool {
        self.settling.as_ref().is_some_and(|settling| settling.is_slot)
    }

    /// Makes room for large plans. A caller's state has the same format under all of them.
    pub fn widen(&mut self) {
        let quota = Quota { is_wide: true, ..self.quota };
        let keeps_used = self.entry.keeps_used(self.settling.as_ref());
        if let Ok(algorithm) = self.entry.algorithm(&quota, keeps_used) {
            (self.quota, self.algorithm) = (quota, algorithm);
        }
    }
}

/// Reads the algorithm of a rule for a scope.
pub fn read(
    fields: &Fields<'_>,
    (zone, outer): (Zone, &PeriodStarts),
    scope: Scope,
) -> Option<RuleAlgorithm> {
    let entry = entry(fields);
    if scope == Scope::Global {
        refuse_local(fields, entry);
    }
    let unit = unit(fields);
    let limit = limit::read(fields);
    let rpu = limit.as_ref().map(|limit| limit.most);
    let cost = cost::read(fields);
    let (options, mut wrong) = options(fields, entry);
    let common = [("unit", unit.is_none()), ("rpu", rpu.is_none()), ("cost", cost.is_none())];
    wrong.extend(common.iter().filter(|(_, wrong)| *wrong).map(|(key, _)| *key));
    if let (Some(unit), Some(entry)) = (unit, entry)
        && unit.varies()
        && !entry.by_calendar
    {
        refuse_varying(fields, unit, entry);
        wrong.push("unit");
    }
    let entry = entry?;
    // Defaults replace invalid values, so that conflicts of the other keys are reported too.
    let Cost { most: cost, cost_source, response } = cost.unwrap_or(Cost::ONE);
    let settling = settling::read(fields, response, cost);
    let (unit, rpu) = (unit.unwrap_or(Unit::Second), rpu.unwrap_or(1));
    let PeriodStarts { starts, month } = starts::read(fields, outer);
    let used = settling.as_ref().and_then(|settling| settling.response_cost.as_ref());
    let most = used.map_or(0, |used| used.most).max(rpu).max(cost);
    let is_wide = most > MAX_DRAINED;
    let quota = Quota { unit, rpu, cost, is_wide, zone, starts, ..options };
    starts::check(fields, &quota, entry.by_calendar);
    if settling.is_some() {
        settling::check(fields, &quota, entry);
    }
    match entry.algorithm(&quota, entry.keeps_used(settling.as_ref())) {
        Ok(algorithm) if wrong.is_empty() => {
            let limit_source = limit.and_then(|limit| limit.source);
            return Some(RuleAlgorithm {
                quota,
                limit_source,
                month_source: month.filter(|_| quota.unit.varies()),
                cost_source,
                settling,
                entry,
                algorithm,
            });
        }
        Ok(_) => {}
        Err(conflicts) => {
            for Conflict { key, with, message } in conflicts {
                if !wrong.iter().any(|wrong| *wrong == key || with.contains(wrong)) {
                    fields.report(key, message);
                }
            }
        }
    }
    None
}

fn entry(fields: &Fields<'_>) -> Option<&'static Entry> {
    let Some(node) = fields.get("algo") else { return REGISTRY.first() };
    let names: Vec<&str> = REGISTRY.iter().flat_map(Entry::names).collect();
    let allowed: Vec<String> =
        REGISTRY.iter().map(|entry| format!("{} ({})", entry.short, entry.long)).collect();
    let name = names.get(node.choice(&names, &allowed.join(", "))?)?;
    REGISTRY.iter().find(|entry| entry.names().contains(name))
}

/// Reports features that Redis does not support: the algorithm, except for daily quotas, or a key.
fn refuse_local(fields: &Fields<'_>, entry: Option<&'static Entry>) {
    let refuse = |what: &str| {
        let message =
            format!("`{what}` is not available with `scope: global`; allowed: local, gateway");
        fields.report("scope", message);
    };
    if let Some(Entry { short, codec: None, .. }) = entry
        && fields.get("quota").is_none()
    {
        refuse(&format!("algo: {short}"));
    }
    let mut names: Vec<&str> = Vec::new();
    for key in keys(entry).into_iter().filter(|key| !key.global) {
        if fields.get(key.name).is_some() && !names.contains(&key.name) {
            names.push(key.name);
        }
    }
    names.into_iter().for_each(refuse);
}

/// Reports `month` or `year` for an algorithm that requires a fixed length.
fn refuse_varying(fields: &Fields<'_>, unit: Unit, entry: &Entry) {
    let able = REGISTRY.iter().filter(|entry| entry.by_calendar).map(|entry| entry.short);
    let (able, name) = (able.collect::<Vec<_>>().join(", "), unit.name());
    let message = format!(
        "{name}s differ in length, which `algo: {}` does not support; allowed: a duration such as `30d`, or `{name}` with algo \
         {able}",
        entry.short
    );
    fields.report("unit", message);
}

fn unit(fields: &Fields<'_>) -> Option<Unit> {
    let node = fields.require("unit")?;
    if values::ticks(node.tree()).is_some() {
        return fields.number("unit").map(Unit::of);
    }
    let hint = hint::duration(node.tree(), &fields.allowed("unit"));
    if hint.is_empty() {
        return fields.choice("unit", &Unit::ALL);
    }
    node.reject_with(&hint, &fields.allowed("unit"));
    None
}

/// The optional keys of `entry`. An unknown algorithm may have the keys of any other.
fn keys(entry: Option<&'static Entry>) -> Vec<&'static Setting> {
    match entry {
        Some(entry) => entry.keys.iter().collect(),
        None => REGISTRY.iter().flat_map(|entry| entry.keys).collect(),
    }
}

/// A quota with the optional keys of `entry`. Invalid keys are listed and left out of it.
pub fn options(fields: &Fields<'_>, entry: Option<&'static Entry>) -> (Quota, Vec<&'static str>) {
    let mut quota = Quota::new(Unit::Second, 0);
    let mut wrong = Vec::new();
    let known = keys(entry);
    for name in fields.more().iter().map(|key| key.name) {
        let Some(node) = fields.get(name) else { continue };
        let Some(key) = known.iter().find(|key| key.name == name) else {
            entry.iter().for_each(|entry| misplaced(node, name, entry));
            wrong.push(name);
            continue;
        };
        let value = values::number(node, &allowed_by(key));
        if value.is_none() {
            wrong.push(name);
        }
        *(key.field)(&mut quota) = value;
    }
    (quota, wrong)
}

/// Reports a key of other algorithms.
fn misplaced(node: &Node<'_>, name: &str, entry: &Entry) {
    let takes = |entry: &&Entry| entry.keys.iter().any(|key| key.name == name);
    let takers: Vec<&str> = REGISTRY.iter().filter(takes).map(|entry| entry.short).collect();
    let (short, takers) = (entry.short, takers.join(", "));
    node.key_problem(format!("not allowed with `algo: {short}`; it is a key of {takers}"));
}
