//! The rules that do not apply where another rule does.

use std::collections::BTreeMap;

use crate::rules::CompiledRule;

/// The rules that do not apply where a rule does.
pub(crate) struct Replaces {
    /// Higher than that of every rule which replaces this one.
    pub(crate) rank: usize,
    /// Their numbers.
    pub(crate) rules: Vec<usize>,
}

/// Sets the rules that each rule replaces. Returns true if there are any.
pub(crate) fn resolve(list: &mut [CompiledRule]) -> bool {
    let numbers: BTreeMap<_, _> =
        list.iter().enumerate().map(|(number, rule)| (rule.name.clone(), number)).collect();
    let number = |name: &String| numbers.get(name.as_str()).copied();
    let edges: Vec<Vec<usize>> =
        list.iter().map(|rule| rule.config.replaces.iter().filter_map(number).collect()).collect();
    // How many rules replace each rule.
    let mut above = vec![0_usize; list.len()];
    for &other in edges.iter().flatten() {
        above.get_mut(other).into_iter().for_each(|count| *count += 1);
    }
    let mut next: Vec<usize> =
        above.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| at).collect();
    let mut rank = 0;
    while let Some(number) = next.pop() {
        rank += 1;
        let others = edges.get(number).cloned().unwrap_or_default();
        for &other in &others {
            let Some(count) = above.get_mut(other) else { continue };
            *count -= 1;
            if *count == 0 {
                next.push(other);
            }
        }
        if let (Some(rule), false) = (list.get_mut(number), others.is_empty()) {
            rule.replaces = Some(Box::new(Replaces { rank, rules: others }));
        }
    }
    edges.iter().any(|others| !others.is_empty())
}
