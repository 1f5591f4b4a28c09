//! Every reading of a path that is not spelled plainly.
//!
//! Nobody knows what a router and an upstream make of `%2F`, `\`, `;x`, `%2e%2e` or `//`: one resolves
//! or splits what the next leaves alone, and one after the other they do what neither does by itself.
//! So each of these may mean either thing, whatever the others mean. Of a reading only matters how
//! far down the tree of configured paths it has come, and how many names lie beyond, so thousands of
//! readings are a few states.

use super::path_tree::PathTree;
use super::piece::{self, Piece, Pieces, Step};

/// How much is compared before it is given up to tell where a path leads.
const MOST_WORK: usize = 1 << 14;

/// Where a reading has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    node: usize,
    /// Names below the node that no configured path has there.
    beyond: usize,
    /// Whether the segment goes on, and nothing in it matters.
    goes_on: bool,
}

/// Reads one path.
struct Reader<'t> {
    tree: &'t PathTree,
    states: Vec<State>,
    next: Vec<State>,
    /// By node, whether a reading ends at or below it.
    covered: Vec<bool>,
    /// How often at most what is left of the path leads upwards.
    climbs: usize,
    work: usize,
}

/// Which nodes of the tree cover a reading of `path`, by their numbers; nothing if there are too many
/// readings to tell.
pub fn covering(tree: &PathTree, path: &[u8]) -> Option<Vec<bool>> {
    let (states, next) = (Vec::new(), Vec::new());
    let mut reader =
        Reader { tree, states, next, covered: vec![false; tree.len()], climbs: 0, work: 0 };
    reader.read(path, false, 0)?;
    let dots = piece::most_dots(path);
    if dots > 0 {
        reader.read(path, true, dots)?;
    }
    for node in (1..tree.len()).rev() {
        if reader.covered.get(node) == Some(&true) {
            reader.cover(tree.parent(node));
        }
    }
    Some(reader.covered)
}

impl Reader<'_> {
    /// Follows all readings of those who resolve dot segments, of which there are at most so many, or
    /// of those who do not.
    fn read(&mut self, path: &[u8], resolves: bool, dots: usize) -> Option<()> {
        self.climbs = dots;
        self.states.clear();
        self.states.push(State { node: PathTree::ROOT, beyond: 0, goes_on: false });
        let mut pieces = Pieces::of(path);
        loop {
            // A name more matters only if something leads up again.
            pieces.merges = self.climbs == 0;
            let Some(piece) = pieces.next() else { break };
            self.climbs -= usize::from(resolves && piece.may_be_dots());
            self.step(&piece, resolves)?;
            if self.states.is_empty() {
                return Some(());
            }
        }
        while let Some(state) = self.states.pop() {
            self.cover(state.node);
        }
        Some(())
    }

    /// Takes every state every way.
    fn step(&mut self, piece: &Piece<'_>, resolves: bool) -> Option<()> {
        let (step, other) = piece.steps(resolves);
        if self.is_only_way(piece, step, other) {
            return Some(());
        }
        for at in 0..self.states.len() {
            let Some(&state) = self.states.get(at) else { continue };
            if state.goes_on {
                self.add(State { goes_on: false, ..state })?;
                if piece.is_loose {
                    self.add(state)?;
                }
                continue;
            }
            for step in [Some(step), other].into_iter().flatten() {
                let state = after(self.tree, state, step);
                self.add(state)?;
                if piece.reaches_on() {
                    self.add(State { goes_on: true, ..state })?;
                }
            }
            if piece.is_loose {
                self.add(State { goes_on: true, ..after(self.tree, state, Step::Away) })?;
            }
        }
        std::mem::swap(&mut self.states, &mut self.next);
        self.next.clear();
        Some(())
    }

    /// Takes the only state the only way that matters, if it is so: most pieces of most paths.
    fn is_only_way(&mut self, piece: &Piece<'_>, step: Step<'_>, other: Option<Step<'_>>) -> bool {
        let [state] = self.states.as_mut_slice() else { return false };
        let strays = piece.is_loose || other.is_some();
        if state.goes_on || piece.reaches_on() || strays && self.climbs > 0 {
            return false;
        }
        let from = state.node;
        *state = after(self.tree, *state, step);
        let State { node, beyond, .. } = *state;
        if strays {
            // What nothing leads back from.
            self.cover(from);
        }
        if beyond > self.climbs {
            self.states.clear();
            self.cover(node);
        }
        true
    }

    /// Adds a state to those behind this piece, unless it can never come back to its node.
    fn add(&mut self, state: State) -> Option<()> {
        if state.beyond > self.climbs {
            self.cover(state.node);
            return Some(());
        }
        self.work += self.next.len();
        if !self.next.contains(&state) {
            self.next.push(state);
        }
        (self.work <= MOST_WORK).then_some(())
    }

    fn cover(&mut self, node: usize) {
        self.covered.get_mut(node).into_iter().for_each(|covered| *covered = true);
    }
}

fn after(tree: &PathTree, state: State, step: Step<'_>) -> State {
    let State { node, beyond, .. } = state;
    let (node, beyond) = match step {
        Step::Stay => (node, beyond),
        Step::Up if beyond > 0 => (node, beyond - 1),
        Step::Up => (tree.parent(node), 0),
        Step::Down(name) if beyond == 0 => {
            tree.child(node, name).map_or((node, 1), |child| (child, 0))
        }
        Step::Down(_) | Step::Away => (node, beyond + 1),
    };
    State { node, beyond, ..state }
}
