//! Variables of nginx that are keys of zones, as sources of Diana's actors.

use diana_policy::tree::Tree;

/// The key of a zone.
#[derive(Debug, Clone)]
pub(crate) struct KeySource {
    /// The name of the actor.
    name: String,
    /// Its sources.
    sources: Tree,
    /// The counted callers, for readers.
    pub(crate) counts: String,
    /// Whether every request has a value.
    is_always: bool,
}

impl KeySource {
    /// The actor.
    pub(crate) fn actor(&self) -> (String, Tree) {
        (self.name.clone(), self.sources.clone())
    }

    /// The treatment of requests without a value, and of those with an exempt address.
    pub(crate) fn without(&self, has_exempt: bool) -> String {
        let without = match self.is_always {
            true => "every request has one",
            false => "not limited, in both",
        };
        let exempt =
            if has_exempt { "; the exempt addresses are not limited, in both" } else { "" };
        format!("{without}{exempt}")
    }
}

/// The source for a variable. `None` if Diana cannot count by it.
pub(crate) fn source(variable: &str) -> Option<KeySource> {
    let map = |key: &str, value: Tree| Tree::Map(vec![(key.to_owned(), value)]);
    let list = |source: Tree| Tree::List(vec![source]);
    let build = |name: &str, source: Tree, counts: &str, is_always: bool| KeySource {
        name: name.into(),
        sources: list(source),
        counts: counts.into(),
        is_always,
    };
    let attribute =
        |part: &str, counts: &str| build(part, map("attribute", part.into()), counts, true);
    let of = |kind: &str, name: &str| {
        let actor = format!("{kind}-{name}").to_ascii_lowercase().replace('_', "-");
        build(&actor, map(kind, name.into()), &format!("the {kind} {name}"), false)
    };
    Some(match variable {
        "binary_remote_addr" | "remote_addr" => {
            // nginx counts IPv6 by whole addresses.
            let bits = Tree::Map(vec![("v6".into(), Tree::Int(128))]);
            build("address", map("client_address", bits), "client address", true)
        }
        "host" | "http_host" => attribute("host", "host"),
        "request_method" => attribute("method", "method"),
        "uri" => attribute("path", "path"),
        _ => {
            let (kind, name) = variable.split_once('_').filter(|(_, name)| !name.is_empty())?;
            match kind {
                // nginx writes hyphens of headers as underscores.
                "http" => of("header", &name.to_ascii_lowercase().replace('_', "-")),
                "cookie" => of("cookie", name),
                "arg" => of("query", name),
                _ => return None,
            }
        }
    })
}

/// How far nginx's rounding moves a rate by the minute, as the end of a sentence, or nothing.
pub(crate) fn rounding(per_minute: u64) -> String {
    let kept = per_minute * 1000 / 60;
    let (exact, rounded) = (per_minute * 1000, kept * 60);
    if exact == rounded {
        return String::new();
    }
    let lost = (exact - rounded) as f64 / exact as f64 * 100.0;
    let rounded = rounded as f64 / 1000.0;
    format!(
        "; nginx rounds {per_minute} a minute to {rounded}, {lost:.2} % less, and Diana does not"
    )
}
