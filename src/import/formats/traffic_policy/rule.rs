//! A rule of a BackendTrafficPolicy.

use diana_policy::tree::Tree;

use crate::condition::{RequestCondition, present};
use crate::envoy::fields::{flag, items, number, text};
use crate::envoy::matchers::{StringTest, inverted};
use crate::gateway_routes::text_or;
use crate::key::KeySource;
use crate::manifest::ManifestNode;
use crate::routes::PathKind;
use crate::source::Origin;
use crate::windows;

/// A rule.
#[derive(Debug)]
pub(super) struct PolicyRule {
    pub(super) origin: Origin,
    /// The requests that it is for.
    pub(super) condition: RequestCondition,
    /// That the counted values are there.
    presence: RequestCondition,
    pub(super) sources: Vec<KeySource>,
    pub(super) requests: u64,
    pub(super) seconds: u64,
    pub(super) cost: RequestCost,
    /// Whether it has no selectors.
    pub(super) is_default: bool,
    pub(super) is_shared: bool,
    pub(super) is_shadow: bool,
}

/// The cost of a request.
#[derive(Debug)]
pub(super) enum RequestCost {
    Fixed(u64),
    /// Metadata of the response has it.
    Response {
        reserve: u64,
        path: Vec<String>,
    },
}

impl PolicyRule {
    /// The condition that the rule is for a request.
    ///
    /// # Errors
    /// Why no entry expresses it.
    pub(super) fn whole(&self) -> Result<RequestCondition, String> {
        let mut whole = self.condition.clone();
        whole.and(&self.presence)?;
        Ok(whole)
    }

    /// Reads a rule.
    ///
    /// # Errors
    /// Why no rule of Diana expresses it.
    pub(super) fn read(node: &ManifestNode<'_>) -> Result<PolicyRule, String> {
        let requests = number(node, "limit.requests").ok_or("found no `limit.requests`")?;
        let seconds = windows::seconds(&text(node, "limit.unit").unwrap_or_default())?;
        let mut rule = PolicyRule {
            origin: node.origin(),
            condition: RequestCondition::default(),
            presence: RequestCondition::default(),
            sources: Vec::new(),
            requests,
            seconds,
            cost: cost(node)?,
            is_default: items(node, "clientSelectors").is_empty(),
            is_shared: flag(node, "shared") == Some(true),
            is_shadow: flag(node, "shadowMode") == Some(true),
        };
        for selector in items(node, "clientSelectors") {
            for header in items(&selector, "headers") {
                rule.select("headers", &header)?;
            }
            for parameter in items(&selector, "queryParams") {
                rule.select("query", &parameter)?;
            }
            rule.select_others(&selector)?;
        }
        Ok(rule)
    }

    /// Adds a header or a parameter.
    fn select(&mut self, kind: &'static str, node: &ManifestNode<'_>) -> Result<(), String> {
        let name = text_or(node, "name", "");
        let name = if kind == "headers" { name.to_ascii_lowercase() } else { name };
        let value = text(node, "value").unwrap_or_default();
        let test = match text(node, "type").as_deref() {
            Some("Distinct") => {
                self.presence.and(&RequestCondition::of_test(kind, &name, present(true)))?;
                self.sources.push(match kind {
                    "headers" => KeySource::header(&name),
                    _ => KeySource::query(&name),
                });
                return Ok(());
            }
            Some("RegularExpression") => StringTest::of_regex(&value)?.tree()?,
            _ => Tree::Text(value),
        };
        let condition = RequestCondition::of_test(kind, &name, test);
        self.condition.and(&inverted(condition, flag(node, "invert") == Some(true))?)
    }

    /// Adds methods, a path and a network.
    fn select_others(&mut self, node: &ManifestNode<'_>) -> Result<(), String> {
        let methods = items(node, "methods");
        let names: Vec<String> = methods.iter().filter_map(|it| text(it, "value")).collect();
        if methods.iter().any(|it| flag(it, "invert") == Some(true)) {
            return Err("it is for all methods but some".into());
        }
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.condition.and(&RequestCondition::of_list("methods", &names))?;
        }
        if let Some(path) = node.get("path") {
            let value = text_or(&path, "value", "/");
            let kind = match text(&path, "type").as_deref() {
                Some("Exact") => PathKind::Exact,
                Some("RegularExpression") => PathKind::Regex,
                _ => PathKind::Prefix,
            };
            let condition = RequestCondition::of_path(&value, kind, false);
            self.condition.and(&inverted(condition, flag(&path, "invert") == Some(true))?)?;
        }
        if let Some(net) = node.get("sourceCIDR") {
            let value = text_or(&net, "value", "0.0.0.0/0");
            let condition = RequestCondition::of_list("addresses", &[&value]);
            self.condition.and(&inverted(condition, flag(&net, "invert") == Some(true))?)?;
            if text(&net, "type").as_deref() == Some("Distinct") {
                self.sources.push(KeySource::address());
            }
        }
        Ok(())
    }
}

/// Reads the cost of a request.
fn cost(node: &ManifestNode<'_>) -> Result<RequestCost, String> {
    let metadata = |which: &str| -> Vec<String> {
        let part = |key: &str| text(node, &format!("cost.{which}.metadata.{key}"));
        ["namespace", "key"].into_iter().filter_map(part).collect()
    };
    if !metadata("request").is_empty() {
        return Err("metadata of the request has its cost; see `cost` with `metadata`".into());
    }
    let reserve = number(node, "cost.request.number").unwrap_or(1);
    match metadata("response") {
        path if path.is_empty() => match number(node, "cost.response.number") {
            None | Some(0) => Ok(RequestCost::Fixed(reserve)),
            Some(_) => Err("it is charged a number at the end of the response".into()),
        },
        path => Ok(RequestCost::Response { reserve, path }),
    }
}
