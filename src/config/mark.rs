//! `mark`: a request header that names the shadow rules that would have refused the request.

use super::actors::ActorSources;
use super::fields::Fields;
use super::response;
use diana_policy::remote::Own;
use diana_policy::{
    Condition, ConditionField, Except, IdentitySource, Limit, ResponseSource, Rule, Term,
};
use diana_request::identity;

/// Reports a header that has another use. It is removed from every request before the limits are
/// evaluated.
pub fn check(
    top: &Fields<'_>,
    own: &Own,
    limits: &[Limit],
    actors: &[ActorSources],
    except: &Except,
) {
    let Some(mark) = own.mark.as_deref() else { return };
    let by_actor =
        |known: &ActorSources| known.sources.iter().any(|source| source.header() == Some(mark));
    let is_used = response::is_reserved(mark)
        || own.explain.as_ref().is_some_and(|explain| *explain.header == *mark)
        || actors.iter().any(by_actor)
        || excepts(except, mark)
        || limits.iter().any(|limit| is_used_by_limit(limit, mark));
    if !is_used {
        return;
    }
    match top.get("mark") {
        Some(node) => {
            node.problem(format!("`{mark}` is read or set elsewhere; choose another header"));
        }
        // The `mark` belongs to the gateway, and this is a remote document.
        None => top.report(
            "limits",
            format!("`{mark}` is the header of the gateway's `mark`; choose another header"),
        ),
    }
}

fn is_used_by_limit(limit: &Limit, mark: &str) -> bool {
    let blocks = limit.matcher.any.iter().chain(&limit.matcher.unless);
    blocks.flat_map(|block| &block.values).any(|condition| reads_header(condition, mark))
        || excepts(&limit.except, mark)
        || limit.rules.iter().any(|rule| is_used_by_rule(rule, mark))
}

fn is_used_by_rule(rule: &Rule, mark: &str) -> bool {
    let is_header = |source: &IdentitySource| {
        identity::build(source).is_ok_and(|source| source.header() == Some(mark))
    };
    let is_cost =
        rule.cost_source.as_ref().is_some_and(|cost| cost.sources().iter().any(is_header));
    let response = rule.settling.as_ref().and_then(|settling| settling.response_cost.as_ref());
    let is_it = |term: &Term| matches!(&term.source, ResponseSource::Header(name) if name == mark);
    let is_in_response = response.is_some_and(|cost| cost.terms.iter().any(is_it));
    let hot = rule.hot.as_ref().and_then(|hot| hot.header.as_deref());
    is_cost
        || is_in_response
        || hot == Some(mark)
        || rule.over.as_ref().is_some_and(|over| *over.mark == *mark)
        || rule.response.headers.iter().any(|(name, _)| name == mark)
        || excepts(&rule.except, mark)
}

fn excepts(except: &Except, mark: &str) -> bool {
    except.any.iter().flat_map(|block| &block.values).any(|it| reads_header(it, mark))
}

fn reads_header(condition: &Condition, mark: &str) -> bool {
    matches!(&condition.field, ConditionField::Header(name) if name == mark)
}
