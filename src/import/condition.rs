//! Conditions on requests, as keys of an entry.

use diana_policy::tree::Tree;

use crate::paths;
use crate::routes::{Covered, PathKind, covered_path};

/// Properties that a request must have, all of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RequestCondition {
    path: Option<PathTest>,
    /// The keys of a block of `match`.
    block: Vec<(String, Tree)>,
    /// Conditions that must not hold.
    without: Vec<RequestCondition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PathTest {
    text: String,
    kind: PathKind,
    ignore_case: bool,
}

/// Keys of an entry, and remarks about its paths.
pub(crate) type EntryKeys = (Vec<(&'static str, Tree)>, Vec<String>);

impl RequestCondition {
    /// The condition that a request is one of a list: of `methods`, `hosts`, `addresses` or routes.
    pub(crate) fn of_list(key: &str, list: &[&str]) -> RequestCondition {
        let list = list.iter().copied().map(Tree::from).collect();
        RequestCondition {
            block: vec![(key.into(), Tree::List(list))],
            ..RequestCondition::default()
        }
    }

    /// The condition that one of the `headers`, parameters of the `query` or `cookies` passes a test.
    pub(crate) fn of_test(kind: &str, name: &str, test: Tree) -> RequestCondition {
        let tests = Tree::Map(vec![(name.into(), test)]);
        RequestCondition { block: vec![(kind.into(), tests)], ..RequestCondition::default() }
    }

    /// The condition that the name of the route begins with one of these texts.
    pub(crate) fn of_route_prefixes(prefixes: &[String]) -> RequestCondition {
        let prefix = |text: &String| Tree::Map(vec![("prefix".into(), Tree::Text(text.clone()))]);
        let list = Tree::List(prefixes.iter().map(prefix).collect());
        RequestCondition { block: vec![("route".into(), list)], ..RequestCondition::default() }
    }

    /// The condition that the path is this one, or begins with it.
    pub(crate) fn of_path(text: &str, kind: PathKind, ignore_case: bool) -> RequestCondition {
        let path = Some(PathTest { text: text.into(), kind, ignore_case });
        RequestCondition { path, ..RequestCondition::default() }
    }

    /// Returns true if every request meets it.
    pub(crate) fn is_always(&self) -> bool {
        *self == RequestCondition::default()
    }

    /// The opposite of a test of one header, parameter or cookie. An absent value passes it, too.
    pub(crate) fn opposite(&self) -> Option<RequestCondition> {
        let ([(kind, Tree::Map(tests))], None, []) =
            (self.block.as_slice(), &self.path, self.without.as_slice())
        else {
            return None;
        };
        let [(name, test)] = tests.as_slice() else { return None };
        let opposite = match test {
            test if *test == present(true) => present(false),
            test if *test == present(false) => present(true),
            test => Tree::Map(vec![("not".into(), test.clone())]),
        };
        Some(RequestCondition::of_test(kind, name, opposite))
    }

    /// Adds all properties of another condition.
    ///
    /// # Errors
    /// Why no entry expresses both.
    pub(crate) fn and(&mut self, other: &RequestCondition) -> Result<(), String> {
        match (&self.path, &other.path) {
            (_, None) => {}
            (None, Some(_)) => self.path.clone_from(&other.path),
            (Some(own), Some(path)) if own == path => {}
            _ => return Err("it depends on the path twice".into()),
        }
        for (key, value) in &other.block {
            match self.block.iter_mut().find(|(own, _)| own == key) {
                None => self.block.push((key.clone(), value.clone())),
                Some((_, own)) => merge(key, own, value)?,
            }
        }
        self.without.extend(other.without.iter().cloned());
        Ok(())
    }

    /// Returns false if it is certain that no request meets it.
    pub(crate) fn is_possible(&self) -> bool {
        let holds = |other: &RequestCondition| {
            other.path.is_none()
                && other.block.iter().all(|(key, wanted)| {
                    let own = self.block.iter().find(|(own, _)| own == key);
                    own.is_some_and(|(_, own)| implies(own, wanted))
                })
        };
        !self.without.iter().any(holds)
    }

    /// Adds that another condition must not hold.
    ///
    /// # Errors
    /// Why no entry expresses it.
    pub(crate) fn and_not(&mut self, other: RequestCondition) -> Result<(), String> {
        if !other.without.is_empty() {
            return Err("it depends on the opposite of an opposite".into());
        }
        if other.path.is_some() && !other.block.is_empty() {
            return Err("it depends on the opposite of a path with other conditions".into());
        }
        if !self.without.contains(&other) {
            self.without.push(other);
        }
        Ok(())
    }

    /// The keys of an entry for the requests of a place that meet the condition.
    ///
    /// # Errors
    /// Why no entry expresses them.
    pub(crate) fn entry_keys(
        &self,
        original: &str,
        covered: &Covered,
    ) -> Result<EntryKeys, String> {
        let mut remarks = Vec::new();
        let mut place = Covered { paths: covered.paths.clone(), ..Covered::default() };
        place.ignore_case = covered.ignore_case;
        if let Some(PathTest { text, kind, ignore_case }) = &self.path {
            let (path, remark) = covered_path(original, text, *kind);
            remarks.extend(remark.map(|remark| format!("the path {text} {remark}")));
            let narrowed = covered.paths.iter().filter_map(|own| {
                let longer = if paths::covers(own, &path) { &path } else { own };
                (paths::covers(&path, longer)).then(|| longer.clone())
            });
            place.paths = narrowed.collect();
            place.paths.dedup();
            place.ignore_case |= ignore_case;
            if place.paths.is_empty() {
                return Err(format!("its place has no request with the path {text}"));
            }
        }
        let mut keys = place.url_keys();
        let mut block: Vec<(String, Tree)> = covered.host_pair().into_iter().collect();
        block.extend(covered.route_pair());
        for (key, value) in &self.block {
            match block.iter_mut().find(|(own, _)| own == key) {
                None => block.push((key.clone(), value.clone())),
                Some((_, own)) => merge(key, own, value)?,
            }
        }
        if !block.is_empty() {
            keys.push(("match", Tree::Map(block)));
        }
        let mut other_paths = covered.other_paths.clone();
        let mut unless: Vec<Tree> =
            covered.other_host_pair().map(|it| Tree::Map(vec![it])).into_iter().collect();
        for other in &self.without {
            match &other.path {
                Some(path) => other_paths.push(paths::bare(&path.text).to_owned()),
                None => unless.push(Tree::Map(other.block.clone())),
            }
        }
        if !unless.is_empty() {
            keys.push(("unless", Tree::List(unless)));
        }
        keys.extend(Covered { other_paths, ..Covered::default() }.except(&[]));
        Ok((keys, remarks))
    }
}

/// Returns true if the value of a key of a block surely includes another one.
fn implies(own: &Tree, wanted: &Tree) -> bool {
    let (Tree::Map(own), Tree::Map(wanted)) = (own, wanted) else { return own == wanted };
    wanted.iter().all(|(name, test)| {
        let own = own.iter().find(|(own, _)| own == name).map(|(_, test)| test);
        own.is_some_and(|own| own == test || (*test == present(true) && *own != present(false)))
    })
}

/// Adds the value of a key of a block to another one.
fn merge(key: &str, own: &mut Tree, other: &Tree) -> Result<(), String> {
    if own == other {
        return Ok(());
    }
    let (Tree::Map(own), Tree::Map(other)) = (own, other) else {
        return Err(format!("it has two conditions on `{key}`"));
    };
    let is_present = |test: &Tree| *test == present(true);
    for (name, test) in other {
        match own.iter_mut().find(|(known, _)| known == name) {
            None => own.push((name.clone(), test.clone())),
            Some((_, known)) if is_present(known) => known.clone_from(test),
            Some((_, known)) if known == test || is_present(test) => {}
            Some(_) => return Err(format!("it has two conditions on `{name}` of `{key}`")),
        }
    }
    Ok(())
}

/// The test whether there is a value.
pub(crate) fn present(is_present: bool) -> Tree {
    Tree::Map(vec![("present".into(), Tree::Bool(is_present))])
}
