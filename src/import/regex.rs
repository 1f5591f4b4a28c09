//! Regular expressions that stand for some texts.

/// A regular expression that stands for some texts, and where they are in a value.
pub(crate) fn literal(regex: &str) -> Option<(&'static str, Vec<String>)> {
    let regex = regex.strip_prefix('*').unwrap_or(regex);
    let (begins, regex) = regex.strip_prefix('^').map_or((false, regex), |rest| (true, rest));
    let (ends, regex) = regex.strip_suffix('$').map_or((false, regex), |rest| (true, rest));
    let inner = regex.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    // Without parentheses an anchor belongs to one alternative only.
    if inner.is_none() && regex.contains('|') && (begins || ends) {
        return None;
    }
    let parts = inner.unwrap_or(regex).split('|');
    let plain = |part: &str| {
        let text = part.replace("\\.", ".").replace("\\-", "-").replace("\\/", "/");
        let is_special = |letter: char| "\\[](){}*+?|^$".contains(letter);
        let has_dot = part.replace("\\.", "").contains('.');
        (!text.is_empty() && !text.contains(is_special) && !has_dot).then_some(text)
    };
    let texts: Vec<String> = parts.map(plain).collect::<Option<_>>()?;
    let key = match (begins, ends) {
        (true, true) => "exact",
        (true, false) => "prefix",
        (false, true) => "suffix",
        (false, false) => "contains",
    };
    Some((key, texts))
}
