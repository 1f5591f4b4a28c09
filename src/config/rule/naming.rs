//! Default names of rules: `<url>-<actor>-<unit>-<algo>[-2]`, or `<url>-<actor>-in_flight[-2]`.

use std::borrow::Cow;

use crate::actors::ActorSources;
use crate::fields::NameIndex;
use crate::values::LONGEST;
use diana_policy::{Limit, Prefix, Rule};

/// Sets the names of rules without one. `taken` holds the configured names, each with the number
/// for the next rule of that name.
pub fn fill(limits: &mut [Limit], actors: &[ActorSources], mut taken: NameIndex<'_>) {
    for Limit { urls, rules, .. } in limits {
        let Some(url) = urls.first() else { continue };
        for rule in rules.iter_mut().filter(|rule| rule.name.is_empty()) {
            rule.name = free(&base(url, rule, actors), &mut taken);
        }
    }
}

/// `base`, or the first of `base-2`, `base-3`, … that is free.
fn free(base: &str, taken: &mut NameIndex<'_>) -> String {
    let mut number = taken.get(base).copied().unwrap_or(2);
    let mut name = base.to_string();
    while taken.contains_key(name.as_str()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    taken.insert(Cow::Owned(name.clone()), 2);
    taken.insert(Cow::Owned(base.into()), number);
    name
}

fn base(url: &Prefix, rule: &Rule, actors: &[ActorSources]) -> String {
    let names: Vec<&str> = rule
        .actor
        .iter()
        .filter_map(|&index| actors.get(index))
        .map(|known| known.actor.name.as_str())
        .collect();
    let actor = if names.is_empty() { "all".into() } else { names.join("-") };
    let algo = rule.algo.to_ascii_lowercase();
    let tail = match rule.is_in_flight() {
        true => format!("-{algo}"),
        false => format!("-{}-{algo}", rule.quota.unit.name()),
    };
    // Room for `-` and a number of five digits.
    let room = LONGEST.saturating_sub(tail.len() + 6);
    let url = cut(&slug(url.path()), room.saturating_sub(actor.len() + 1).max(room / 2));
    format!("{}{tail}", cut(&format!("{url}-{actor}"), room))
}

/// A path in the alphabet of names: `/share/qq` becomes `share-qq`, and `/` becomes `root`.
fn slug(path: &[u8]) -> String {
    let mut slug = String::new();
    for byte in path {
        match byte.to_ascii_lowercase() {
            plain @ (b'a'..=b'z' | b'0'..=b'9' | b'_') => slug.push(char::from(plain)),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    match slug {
        "" if path.len() <= 1 => "root".into(),
        "" => "path".into(),
        _ => slug.into(),
    }
}

/// The first `length` characters of ASCII text.
fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}
