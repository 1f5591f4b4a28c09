//! All that waits in this VM, and all its gates. A root may not be called for long, or never again while
//! it is being replaced, so whichever root is called does what is due for all of them.

use std::cell::RefCell;
use std::rc::Rc;

use super::gate::Gate;
use super::outside::{self, HostCallout};
use super::{abi, timer};
use diana_core::store::remains::Remains;
use diana_core::time::Micros;
use diana_core::verdict::{Held, Seat};
use diana_worker::hold::Queue;

/// Requests that go on in one call of the host at most: some hundreds would exhaust its stack.
const RELEASES: usize = 32;

/// Rules that ended whose shared data waits to be emptied.
const MOST_REMAINS: usize = 1024;

thread_local! {
    /// The requests that are held, whichever configuration holds them.
    static QUEUE: RefCell<Queue> = RefCell::default();
    /// What rules that ended have left in shared data.
    static REMAINS: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
    static GATES: RefCell<Vec<Rc<Gate>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a gate. It stays for as long as a root or a stream has it, or it has something to bring to an end.
pub(super) fn join(gate: &Rc<Gate>) {
    all()
        .iter()
        .filter(|other| other.namespace() == gate.namespace())
        .for_each(|other| other.age());
    GATES.with_borrow_mut(|gates| gates.push(gate.clone()));
}

/// Holds a request until its turn, of the gate with this number.
pub(super) fn hold(stream: u32, gate: u32, held: Held) {
    QUEUE.with_borrow_mut(|queue| queue.join(stream, gate, held));
}

/// Forgets a request whose client left, as [`Queue::leave`].
pub(super) fn leave(stream: u32) -> Option<Vec<Seat>> {
    QUEUE.with_borrow_mut(|queue| queue.leave(stream))
}

/// Lets go on whose turn has come, and does what is due, for all gates. The host is calling about `root`.
pub(super) fn tick(root: u32) {
    let mut left = release(root, RELEASES);
    for gate in all() {
        gate.work_for_fleet(&HostCallout { root });
        gate.go_on(root, &mut left);
        gate.tell_news();
        gate.keep_up();
    }
    clear_away();
    sweep();
    timer::rest(root, next);
}

/// Takes the answer to a call, if one of the gates made it. Whether it did.
pub(super) fn answer(root: u32, token: u32, headers: usize, size: usize) -> bool {
    let mut left = RELEASES;
    let taken = outside::answer(headers, size, |answer| {
        all().iter().any(|gate| {
            let taken = gate.take_answer(token, answer, &HostCallout { root });
            if taken {
                gate.go_on(root, &mut left);
                gate.tell_news();
            }
            taken
        })
    });
    sweep();
    taken
}

/// Sees to it that whatever waits has a clock. To be done about the root that the host is calling about, at
/// the end of each call that may have made something wait.
pub(super) fn settle(root: u32) {
    timer::settle(root, next);
}

/// A root has ended, and given up its gate.
pub(super) fn end(root: u32) {
    all().iter().for_each(|gate| gate.lose_calls(root));
    sweep();
    if !timer::end(root, next) {
        // Nobody is going to be called who could bring anything to an end.
        GATES.with_borrow_mut(|gates| gates.retain(|gate| Rc::strong_count(gate) > 1));
    }
}

/// When something is due the next time.
fn next(now: Micros) -> Option<Micros> {
    let held = QUEUE.with_borrow(Queue::next);
    let gates = |gates: &Vec<Rc<Gate>>| gates.iter().filter_map(|gate| gate.next(now)).min();
    let remains = REMAINS.with_borrow(|remains| remains.iter().map(Remains::due).min());
    [held, GATES.with_borrow(gates), remains].into_iter().flatten().min()
}

/// Lets at most `left` requests go on that were held. How many more may go on in this call.
fn release(root: u32, mut left: usize) -> usize {
    let now = abi::monotonic();
    while left > 0
        && let Some(stream) = QUEUE.with_borrow_mut(|queue| queue.release(now))
    {
        abi::resume(stream, root);
        left -= 1;
    }
    left
}

/// Lets gates go that nobody has and that have nothing more to do.
pub(super) fn sweep() {
    let is_over = |gate: &mut Rc<Gate>| Rc::strong_count(gate) == 1 && gate.is_over();
    let over: Vec<Rc<Gate>> =
        GATES.with_borrow_mut(|gates| gates.extract_if(.., is_over).collect());
    for gate in over {
        let in_force: Vec<Remains> = all().iter().flat_map(|gate| gate.remains()).collect();
        let goes_on = |left: &Remains| in_force.iter().any(|rule| rule.is_of(left));
        let left =
            gate.remains().into_iter().filter(|left| !goes_on(left)).filter_map(Remains::if_there);
        REMAINS.with_borrow_mut(|remains| {
            for left in left {
                remains.retain(|other| !other.is_of(&left));
                remains.push(left);
            }
            // Should rules come and go faster than what they leave runs out, the oldest stay as they are.
            remains.drain(..remains.len().saturating_sub(MOST_REMAINS));
        });
    }
}

/// Empties what rules left that ended, if it is time.
fn clear_away() {
    let due = |remains: &Vec<Remains>| remains.iter().map(Remains::due).min();
    let Some(due) = REMAINS.with_borrow(due) else { return };
    let Some(gate) = all().pop().filter(|_| due <= abi::monotonic()) else { return };
    let now = gate.now();
    REMAINS.with_borrow_mut(|remains| remains.retain_mut(|left| left.work(now)));
}

fn all() -> Vec<Rc<Gate>> {
    GATES.with_borrow(Vec::clone)
}
