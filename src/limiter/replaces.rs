//! The rules that do not apply where another rule does.

use std::collections::BTreeMap;

use crate::rule::CompiledRule;

/// The rules that replace others, and those that they replace for the current request.
#[derive(Default)]
pub(crate) struct Replacements {
    /// The numbers of the rules that each rule replaces.
    edges: Vec<Vec<usize>>,
    /// For each rule, a rank above that of every rule which replaces it.
    ranks: Vec<usize>,
    /// The first rule that replaces each rule for the current request. Empty if no rule replaces
    /// others.
    replaced: Vec<Option<usize>>,
}

impl Replacements {
    /// Finds the rules that each rule replaces.
    pub(crate) fn new(list: &[CompiledRule]) -> Replacements {
        let numbers: BTreeMap<&str, usize> =
            list.iter().enumerate().map(|(number, rule)| (&*rule.name, number)).collect();
        let number = |name: &String| numbers.get(name.as_str()).copied();
        let replaced =
            |rule: &CompiledRule| rule.config.replaces.iter().filter_map(number).collect();
        let edges: Vec<Vec<usize>> = list.iter().map(replaced).collect();
        if edges.iter().all(Vec::is_empty) {
            return Replacements::default();
        }
        // How many rules replace each rule.
        let mut above = vec![0_usize; list.len()];
        for &other in edges.iter().flatten() {
            above.get_mut(other).into_iter().for_each(|count| *count += 1);
        }
        let mut next: Vec<usize> =
            above.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| at).collect();
        let (mut rank, mut ranks) = (0, vec![0; list.len()]);
        while let Some(number) = next.pop() {
            rank += 1;
            ranks.get_mut(number).into_iter().for_each(|it| *it = rank);
            for &other in edges.get(number).into_iter().flatten() {
                let Some(count) = above.get_mut(other) else { continue };
                *count -= 1;
                if *count == 0 {
                    next.push(other);
                }
            }
        }
        Replacements { edges, ranks, replaced: vec![None; list.len()] }
    }

    /// Returns true if any rule replaces another one.
    pub(crate) fn is_any(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Begins with another request. Of the rules that cover it, sorts those that replace others
    /// before the ones that they replace.
    pub(crate) fn begin(
        &mut self,
        covering: impl Iterator<Item = (usize, usize)>,
    ) -> Vec<(usize, usize)> {
        self.replaced.fill(None);
        let replaces = |number: usize| self.edges.get(number).is_some_and(|it| !it.is_empty());
        let mut replacing: Vec<_> = covering.filter(|(number, _)| replaces(*number)).collect();
        replacing.sort_unstable_by_key(|&(number, limit)| (self.ranks.get(number), number, limit));
        replacing
    }

    /// Records that a rule is in force for the current request.
    pub(crate) fn replace(&mut self, number: usize) {
        for &other in self.edges.get(number).into_iter().flatten() {
            let replaced = self.replaced.get_mut(other);
            replaced.into_iter().for_each(|it| *it = it.or(Some(number)));
        }
    }

    /// The rule that replaces a rule for the current request.
    pub(crate) fn by(&self, number: usize) -> Option<usize> {
        self.replaced.get(number).copied().flatten()
    }
}
