//! Fields of Envoy's messages, which JSON and YAML write as `token_bucket` or as `tokenBucket`.

use diana_policy::tree::Tree;

use crate::manifest::ManifestNode;

/// Maximum number of wrappers around a message.
const MAX_DEPTH: usize = 4;

/// A field, by its name with underscores.
pub(crate) fn field<'m>(node: &ManifestNode<'m>, name: &str) -> Option<ManifestNode<'m>> {
    node.get(name).or_else(|| node.get(&camel(name)))
}

/// A field of a field and so on, by names separated by dots.
pub(crate) fn descend<'m>(node: &ManifestNode<'m>, path: &str) -> Option<ManifestNode<'m>> {
    path.split('.').try_fold(node.clone(), |node, name| field(&node, name))
}

/// The name that JSON gives to a field.
pub(crate) fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

/// The text of a field. Numbers and booleans are texts, too.
pub(crate) fn text(node: &ManifestNode<'_>, path: &str) -> Option<String> {
    match descend(node, path)?.tree() {
        Tree::Text(text) | Tree::Number(text) => Some(text.clone()),
        Tree::Int(value) => Some(value.to_string()),
        Tree::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The whole number of a field.
pub(crate) fn number(node: &ManifestNode<'_>, path: &str) -> Option<u64> {
    text(node, path)?.parse().ok()
}

/// The boolean of a field.
pub(crate) fn flag(node: &ManifestNode<'_>, path: &str) -> Option<bool> {
    text(node, path)?.parse().ok()
}

/// The items of a field that is a list.
pub(crate) fn items<'m>(node: &ManifestNode<'m>, path: &str) -> Vec<ManifestNode<'m>> {
    descend(node, path).map(|list| list.items()).unwrap_or_default()
}

/// The milliseconds of a duration such as `0.5s`.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let number = text.strip_suffix('s')?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = format!("{part:0<3}").get(..3)?.parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

/// A message in its wrappers.
pub(crate) enum TypedConfig<'m> {
    /// The name of its type, and its fields.
    Message(String, ManifestNode<'m>),
    /// It is switched off here.
    Off,
}

/// The message of a `typed_config`, with its type in `@type`, or in a struct with a type's name.
pub(crate) fn typed<'m>(node: &ManifestNode<'m>) -> Option<TypedConfig<'m>> {
    let mut node = node.clone();
    for _ in 0..MAX_DEPTH {
        let name = node.text_of("@type").unwrap_or_default().to_owned();
        if name.ends_with(".TypedStruct") {
            let name = text(&node, "type_url")?;
            return Some(TypedConfig::Message(name, field(&node, "value")?));
        }
        if !name.ends_with("envoy.config.route.v3.FilterConfig") {
            return Some(TypedConfig::Message(name, node));
        }
        if flag(&node, "disabled") == Some(true) {
            return Some(TypedConfig::Off);
        }
        node = field(&node, "config")?;
    }
    None
}
