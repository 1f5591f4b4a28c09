//! Every reading of a path that is not in plain spelling.
//!
//! Routers and upstreams differ in their treatment of `%2F`, `\`, `;x`, `%2e%2e` and `//`: one
//! resolves or splits them, the next leaves them alone, and a chain of both has a combined effect
//! that neither has alone. So each of them may have either meaning, independently of the others. A
//! reading is reduced to its node in the tree of configured paths and the number of names below
//! that node, so thousands of readings become a few states.

use super::path_tree::PathTree;
use super::piece::{self, PathStep, Piece, Pieces};

/// Comparisons of states before the reader gives up.
const MOST_WORK: usize = 1 << 14;

/// The position of a reading in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PathState {
    node: usize,
    /// The number of names below the node that are not in the tree.
    beyond: usize,
    /// Whether the segment continues. Its remaining text does not matter.
    continues: bool,
}

/// Follows all readings of one path.
struct PathReader<'t> {
    tree: &'t PathTree,
    states: Vec<PathState>,
    next: Vec<PathState>,
    /// By node: whether a reading ends at it or below it.
    covered: Vec<bool>,
    /// Upper bound of the steps upwards in the rest of the path.
    climbs: usize,
    work: usize,
}

/// Returns for each node of the tree whether it covers a reading of `path`. `None` if there are too
/// many readings.
pub fn covering(tree: &PathTree, path: &[u8]) -> Option<Vec<bool>> {
    let (states, next) = (Vec::new(), Vec::new());
    let mut reader =
        PathReader { tree, states, next, covered: vec![false; tree.len()], climbs: 0, work: 0 };
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

impl PathReader<'_> {
    /// Follows all readings of readers that resolve dot segments, of which there are at most
    /// `dots`, or of those that do not.
    fn read(&mut self, path: &[u8], resolves: bool, dots: usize) -> Option<()> {
        self.climbs = dots;
        self.states.clear();
        self.states.push(PathState { node: PathTree::ROOT, beyond: 0, continues: false });
        let mut pieces = Pieces::of(path);
        loop {
            // An additional name matters only if a later segment leads up again.
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

    /// Advances every state by each possible meaning of a piece.
    fn step(&mut self, piece: &Piece<'_>, resolves: bool) -> Option<()> {
        let (step, other) = piece.steps(resolves);
        if self.advance_single(piece, step, other) {
            return Some(());
        }
        for at in 0..self.states.len() {
            let Some(&state) = self.states.get(at) else { continue };
            if state.continues {
                self.add(PathState { continues: false, ..state })?;
                if piece.is_loose {
                    self.add(state)?;
                }
                continue;
            }
            for step in [Some(step), other].into_iter().flatten() {
                for state in after(self.tree, state, step).into_iter().flatten() {
                    self.add(state)?;
                    if piece.may_continue() {
                        self.add(PathState { continues: true, ..state })?;
                    }
                }
            }
            if piece.is_loose {
                for state in after(self.tree, state, PathStep::Below).into_iter().flatten() {
                    self.add(PathState { continues: true, ..state })?;
                }
            }
        }
        std::mem::swap(&mut self.states, &mut self.next);
        self.next.clear();
        Some(())
    }

    /// Advances a single state by the only meaning that matters, if this is the case: most pieces
    /// of most paths.
    fn advance_single(
        &mut self,
        piece: &Piece<'_>,
        step: PathStep<'_>,
        other: Option<PathStep<'_>>,
    ) -> bool {
        let [state] = self.states.as_mut_slice() else { return false };
        let has_other_meanings = piece.is_loose || other.is_some();
        if state.continues || piece.may_continue() || has_other_meanings && self.climbs > 0 {
            return false;
        }
        let from = state.node;
        if state.beyond == 0 && self.tree.any(from).is_some() {
            return false;
        }
        let [Some(next), None] = after(self.tree, *state, step) else { return false };
        *state = next;
        let PathState { node, beyond, .. } = *state;
        if has_other_meanings {
            // The other meanings end below this node for good.
            self.cover(from);
        }
        if beyond > self.climbs {
            self.states.clear();
            self.cover(node);
        }
        true
    }

    /// Adds a state behind this piece, unless no reading can return from it to its node.
    fn add(&mut self, state: PathState) -> Option<()> {
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

/// The states behind a step. A name leads to the child with that name, and to the child of every
/// name.
fn after(tree: &PathTree, state: PathState, step: PathStep<'_>) -> [Option<PathState>; 2] {
    let PathState { node, beyond, .. } = state;
    let at = |(node, beyond)| Some(PathState { node, beyond, ..state });
    match step {
        PathStep::Stay => [at((node, beyond)), None],
        PathStep::Up if beyond > 0 => [at((node, beyond - 1)), None],
        PathStep::Up => [at((tree.parent(node), 0)), None],
        PathStep::Down(_) | PathStep::Below if beyond > 0 => [at((node, beyond + 1)), None],
        PathStep::Down(name) => {
            let any = tree.any(node).filter(|_| !name.is_empty());
            match (tree.child(node, name), any) {
                (None, None) => [at((node, 1)), None],
                (Some(child), any) => [at((child, 0)), any.and_then(|any| at((any, 0)))],
                (None, Some(any)) => [at((any, 0)), None],
            }
        }
        PathStep::Below => [at(tree.any(node).map_or((node, 1), |any| (any, 0))), None],
    }
}
