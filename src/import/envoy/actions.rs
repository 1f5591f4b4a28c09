//! The `rate_limits` of routes, which make descriptors of a request.

use diana_policy::port::Pseudo;
use diana_policy::tree::Tree;

use super::fields::{descend, flag, items, number, text};
use super::matchers;
use crate::condition::{RequestCondition, present};
use crate::key::KeySource;
use crate::manifest::ManifestNode;
use crate::routes::PathKind;
use crate::source::Origin;

/// Maximum number of optional actions of a rate limit.
const MOST_OPTIONAL: usize = 4;

/// Maximum number of conditions that exclude the values of other descriptors.
const MOST_EXCLUDED: usize = 1000;

/// An item of `rate_limits`: it makes a descriptor of each request that meets a condition.
#[derive(Debug, Clone)]
pub(crate) struct RateLimitActions {
    pub(crate) origin: Origin,
    pub(crate) stage: u64,
    /// Whether it has a `disable_key`, by which the runtime switches it off.
    pub(crate) has_disable_key: bool,
    /// The tokens of a request.
    pub(crate) cost: u64,
    /// The descriptors that it may make: several if actions are optional.
    pub(crate) made: Vec<MadeDescriptor>,
}

/// A descriptor that actions make of requests.
#[derive(Debug, Default, Clone)]
pub(crate) struct MadeDescriptor {
    pub(crate) condition: RequestCondition,
    pub(crate) entries: Vec<MadeEntry>,
}

/// An entry of such a descriptor.
#[derive(Debug, Clone)]
pub(crate) struct MadeEntry {
    pub(crate) key: String,
    pub(crate) value: MadeValue,
}

/// The value of such an entry.
#[derive(Debug, Clone)]
pub(crate) enum MadeValue {
    Fixed(String),
    /// A value of each request.
    Own(KeySource, OwnTest),
}

/// How a condition requires one value.
#[derive(Debug, Clone)]
pub(crate) enum OwnTest {
    /// A header or a parameter, by the kind of conditions and the name.
    Named(&'static str, String),
    /// An item of a list.
    Listed(&'static str),
    Path,
    /// No condition does.
    None(String),
}

impl RateLimitActions {
    /// A text that is the same for rate limits with the same effect.
    pub(crate) fn contents(&self) -> String {
        let RateLimitActions { origin: _, stage, has_disable_key, cost, made } = self;
        format!("{stage} {has_disable_key} {cost} {made:?}")
    }
}

/// The values of an entry that a descriptor is for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WantedValue<'w> {
    One(&'w str),
    /// All, each with a count.
    Each,
    /// Those of a pattern in which `*` stands for any text, each with a count or all with one.
    Like(&'w str, ValueSharing),
}

/// Whether values share a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueSharing {
    No,
    Yes,
}

impl MadeValue {
    /// The value of all requests, or an empty one.
    pub(crate) fn fixed(&self) -> &str {
        if let MadeValue::Fixed(value) = self { value } else { "" }
    }

    /// The condition that the value is one of a pattern in which `*` stands for any text.
    ///
    /// # Errors
    /// Why no entry expresses it.
    fn is_like(&self, pattern: &str) -> Result<Option<RequestCondition>, String> {
        let why = || Err(format!("it depends on values like `{pattern}`"));
        let parts: Vec<&str> = pattern.split('*').collect();
        match self {
            MadeValue::Fixed(own) => Ok(is_like(&parts, own).then(RequestCondition::default)),
            MadeValue::Own(_, test) => match (test, parts.as_slice()) {
                (OwnTest::Named(kind, name), parts) => {
                    let test = |key: &str, text: &str| Tree::Map(vec![(key.into(), text.into())]);
                    let test = match parts {
                        ["", ""] => present(true),
                        [begin, ""] => test("prefix", begin),
                        ["", end] => test("suffix", end),
                        ["", part, ""] => test("contains", part),
                        _ => return why(),
                    };
                    Ok(Some(RequestCondition::of_test(kind, name, test)))
                }
                (_, ["", ""]) => Ok(Some(RequestCondition::default())),
                (OwnTest::Path, [begin, ""]) if begin.starts_with('/') && !begin.contains('?') => {
                    Ok(Some(RequestCondition::of_path(begin, PathKind::Text, false)))
                }
                _ => why(),
            },
        }
    }

    /// The condition that the value is one of these.
    ///
    /// # Errors
    /// Why no entry expresses it.
    fn is_one_of(&self, values: &[&str]) -> Result<Option<RequestCondition>, String> {
        let test = match self {
            MadeValue::Own(_, test) => test,
            MadeValue::Fixed(own) => {
                return Ok(values.contains(&&**own).then(RequestCondition::default));
            }
        };
        Ok(Some(match (test, values) {
            (OwnTest::Named(kind, name), [value]) => {
                RequestCondition::of_test(kind, name, Tree::from(*value))
            }
            (OwnTest::Named(kind, name), values) => {
                let list = Tree::List(values.iter().copied().map(Tree::from).collect());
                RequestCondition::of_test(kind, name, Tree::Map(vec![("in".into(), list)]))
            }
            (OwnTest::Listed(key), values) => RequestCondition::of_list(key, values),
            (OwnTest::Path, [path]) if path.starts_with('/') && !path.contains('?') => {
                RequestCondition::of_path(path, PathKind::Exact, false)
            }
            (OwnTest::Path, _) => {
                return Err(format!("it depends on the path `{}`", values.join("`, `")));
            }
            (OwnTest::None(what), _) => return Err(format!("it depends on one value of {what}")),
        }))
    }
}

/// The requests with a descriptor.
#[derive(Debug, Default, Clone)]
pub(crate) struct Fit {
    pub(crate) condition: RequestCondition,
    /// That the counted values are there.
    presence: RequestCondition,
    /// The values that each have a count.
    pub(crate) sources: Vec<KeySource>,
}

impl Fit {
    /// Requires that an entry has one of some values. Returns false if it never has.
    ///
    /// # Errors
    /// Why no entry expresses it.
    pub(crate) fn add(
        &mut self,
        made: &MadeValue,
        wanted: WantedValue<'_>,
    ) -> Result<bool, String> {
        let test = match wanted {
            WantedValue::One(value) => made.is_one_of(&[value])?,
            WantedValue::Like(pattern, _) => made.is_like(pattern)?,
            WantedValue::Each => Some(RequestCondition::default()),
        };
        let Some(test) = test else { return Ok(false) };
        self.condition.and(&test)?;
        if let (
            WantedValue::Each | WantedValue::Like(_, ValueSharing::No),
            MadeValue::Own(source, test),
        ) = (wanted, made)
        {
            if let OwnTest::Named(kind, name) = test {
                self.presence.and(&RequestCondition::of_test(kind, name, present(true)))?;
            }
            self.sources.push(source.clone());
        }
        Ok(true)
    }

    /// Requires that an entry has none of some values, and none of some patterns.
    ///
    /// # Errors
    /// Why no entry expresses it.
    pub(crate) fn exclude(
        &mut self,
        made: &MadeValue,
        values: &[&str],
        patterns: &[&str],
    ) -> Result<(), String> {
        let at_once = match made {
            MadeValue::Own(_, OwnTest::Path) => 1,
            _ => values.len().max(1),
        };
        if values.len() / at_once + patterns.len() > MOST_EXCLUDED {
            return Err("it excludes too many values of other descriptors".into());
        }
        let values = values.chunks(at_once).map(|values| made.is_one_of(values));
        for other in values.chain(patterns.iter().map(|pattern| made.is_like(pattern))) {
            if let Some(other) = other? {
                self.condition.and_not(other)?;
            }
        }
        Ok(())
    }

    /// The condition that a request has the descriptor.
    ///
    /// # Errors
    /// Why no entry expresses it.
    pub(crate) fn whole(&self) -> Result<RequestCondition, String> {
        let mut whole = self.condition.clone();
        whole.and(&self.presence)?;
        Ok(whole)
    }
}

impl MadeDescriptor {
    /// The requests with a descriptor of these keys and values. A value that is `None` stands for
    /// all. `None` if no request has it.
    ///
    /// # Errors
    /// Why no entry expresses it.
    pub(crate) fn fits(&self, entries: &[(String, Option<String>)]) -> Result<Option<Fit>, String> {
        let is_same = |((key, _), made): (&(String, Option<String>), &MadeEntry)| *key == made.key;
        if entries.len() != self.entries.len() || !entries.iter().zip(&self.entries).all(is_same) {
            return Ok(None);
        }
        let mut fit = self.whole();
        for ((_, wanted), made) in entries.iter().zip(&self.entries) {
            let wanted = wanted.as_deref().map_or(WantedValue::Each, WantedValue::One);
            if !fit.add(&made.value, wanted)? {
                return Ok(None);
            }
        }
        Ok(Some(fit))
    }

    /// The requests with any descriptor of these actions.
    pub(crate) fn whole(&self) -> Fit {
        Fit { condition: self.condition.clone(), ..Fit::default() }
    }
}

/// Returns true if a text is one of a pattern with these parts, between which any texts stand.
fn is_like(parts: &[&str], text: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return false };
    let Some((last, middle)) = rest.split_last() else { return text == *first };
    let Some(text) = text.strip_prefix(first) else { return false };
    let Some(mut text) = text.strip_suffix(last) else { return false };
    for part in middle {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    true
}

/// The actions of a rate limit.
///
/// # Errors
/// Why no rule expresses it.
pub(crate) fn read(
    node: &ManifestNode<'_>,
    cluster: Option<&str>,
) -> Result<RateLimitActions, String> {
    if flag(node, "apply_on_stream_done") == Some(true) {
        return Err("it is charged at the end of a stream; see `cost` with `response`".into());
    }
    if descend(node, "hits_addend.format").is_some() {
        return Err("a format chooses its cost; see `cost` with `header` or `metadata`".into());
    }
    let mut made = vec![MadeDescriptor::default()];
    for action in items(node, "actions") {
        let Some((kind, fields)) = action.pairs().into_iter().next() else {
            return Err("it has an action without a kind".into());
        };
        let (own, is_optional) = own_action(kind, &fields, cluster)?;
        if is_optional && made.len() < 1 << MOST_OPTIONAL {
            let mut absent = made.clone();
            for descriptor in &mut absent {
                if let MadeValue::Own(_, OwnTest::Named(kind, name)) = &own.value {
                    descriptor.condition.and(&RequestCondition::of_test(
                        kind,
                        name,
                        present(false),
                    ))?;
                }
            }
            extend(&mut made, &own);
            made.extend(absent);
            continue;
        }
        let condition = action_condition(kind, &fields)?;
        for descriptor in &mut made {
            descriptor.condition.and(&condition)?;
        }
        extend(&mut made, &own);
    }
    Ok(RateLimitActions {
        origin: node.origin(),
        stage: number(node, "stage").unwrap_or(0),
        has_disable_key: text(node, "disable_key").is_some_and(|key| !key.is_empty()),
        cost: number(node, "hits_addend.number").unwrap_or(1),
        made,
    })
}

fn extend(made: &mut [MadeDescriptor], entry: &MadeEntry) {
    made.iter_mut().for_each(|descriptor| descriptor.entries.push(entry.clone()));
}

/// The condition under which an action makes an entry.
fn action_condition(kind: &str, node: &ManifestNode<'_>) -> Result<RequestCondition, String> {
    let is_inverted = flag(node, "expect_match") == Some(false);
    match kind {
        "header_value_match" | "headerValueMatch" => {
            matchers::inverted(matchers::headers(&items(node, "headers"))?, is_inverted)
        }
        "query_parameter_value_match" | "queryParameterValueMatch" => {
            let parameters = matchers::parameters(&items(node, "query_parameters"))?;
            matchers::inverted(parameters, is_inverted)
        }
        "remote_address_match" | "remoteAddressMatch" => {
            let nets = matchers::ranges(node, "address_matcher.ranges");
            let nets: Vec<&str> = nets.iter().map(String::as_str).collect();
            let is_inverted = flag(node, "address_matcher.invert_match") == Some(true);
            matchers::inverted(RequestCondition::of_list("addresses", &nets), is_inverted)
        }
        _ => Ok(RequestCondition::default()),
    }
}

/// The entry of an action, and whether it is left out where the request has no value.
fn own_action(
    kind: &str,
    node: &ManifestNode<'_>,
    cluster: Option<&str>,
) -> Result<(MadeEntry, bool), String> {
    let key = |default: &str| text(node, "descriptor_key").unwrap_or_else(|| default.into());
    let value = || MadeValue::Fixed(text(node, "descriptor_value").unwrap_or_default());
    let is_optional = flag(node, "skip_if_absent") == Some(true);
    let entry = |key: String, value: MadeValue| MadeEntry { key, value };
    let fixed = |default: &str| Ok((entry(key(default), value()), false));
    match kind {
        "generic_key" | "genericKey" => fixed("generic_key"),
        "header_value_match" | "headerValueMatch" => fixed("header_match"),
        "query_parameter_value_match" | "queryParameterValueMatch" => fixed("query_match"),
        "remote_address_match" | "remoteAddressMatch" => fixed("remote_address_match"),
        "remote_address" | "remoteAddress" => {
            let value = MadeValue::Own(KeySource::address(), OwnTest::Listed("addresses"));
            Ok((entry("remote_address".into(), value), false))
        }
        "masked_remote_address" | "maskedRemoteAddress" => {
            let bits = |field: &str, default: u8| {
                number(node, field).and_then(|it| it.try_into().ok()).unwrap_or(default)
            };
            let (v4, v6) = (bits("v4_prefix_mask_len", 32), bits("v6_prefix_mask_len", 128));
            let value = MadeValue::Own(
                KeySource::network(v4.min(32), v6.min(128)),
                OwnTest::Listed("addresses"),
            );
            Ok((entry("masked_remote_address".into(), value), false))
        }
        "request_headers" | "requestHeaders" => {
            let name = text(node, "header_name").unwrap_or_default().to_ascii_lowercase();
            let (source, test) = match name.as_str() {
                ":path" => (KeySource::part(Pseudo::Path), OwnTest::Path),
                ":method" => (KeySource::part(Pseudo::Method), OwnTest::Listed("methods")),
                ":authority" | "host" => {
                    (KeySource::part(Pseudo::Authority), OwnTest::Listed("hosts"))
                }
                name if name.is_empty() || name.starts_with(':') => {
                    return Err(format!("Diana does not count by the header `{name}`"));
                }
                name => (KeySource::header(name), OwnTest::Named("headers", name.into())),
            };
            Ok((entry(key(""), MadeValue::Own(source, test)), is_optional))
        }
        "query_parameters" | "queryParameters" => {
            let name = text(node, "query_parameter_name").unwrap_or_default();
            let value = MadeValue::Own(KeySource::query(&name), OwnTest::Named("query", name));
            Ok((entry(key(""), value), is_optional))
        }
        "metadata" | "dynamic_metadata" | "dynamicMetadata" => {
            if text(node, "source").is_some_and(|source| source != "DYNAMIC" && source != "0") {
                return Err("it reads the metadata of a route".into());
            }
            if text(node, "default_value").is_some_and(|value| !value.is_empty()) || is_optional {
                return Err("it has a default for absent metadata".into());
            }
            let mut path: Vec<String> = text(node, "metadata_key.key").into_iter().collect();
            path.extend(items(node, "metadata_key.path").iter().filter_map(|it| text(it, "key")));
            let source = KeySource::metadata(&path);
            Ok((entry(key(""), MadeValue::Own(source, OwnTest::None("metadata".into()))), false))
        }
        "destination_cluster" | "destinationCluster" => {
            let cluster = cluster.ok_or("it depends on the cluster of the route")?;
            Ok((entry("destination_cluster".into(), MadeValue::Fixed(cluster.into())), false))
        }
        other => Err(format!("no rule counts by the action `{other}`")),
    }
}

/// The value of a descriptor's entry in a configuration; none if it stands for all.
pub(crate) fn wanted(node: &ManifestNode<'_>) -> (String, Option<String>) {
    let value = text(node, "value").filter(|value| !value.is_empty());
    (text(node, "key").unwrap_or_default(), value)
}
