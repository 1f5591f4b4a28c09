//! Callers who share a line, of which one at a time is known to a worker.

use std::rc::Rc;

use diana_core::key::Key;
use diana_core::time::SECOND;
use kit::fake::Asked;

use super::{ANN, BAN, open, says, together, told};
use crate::fleet::Worker;

/// One who has the line that Ann has, the same of a thousand.
const NEXT: Key = Key { hash: ANN.hash + 1000, second_hash: 9 };

/// What is counted of a caller whose line another one has by now is none of that one's doing.
#[test]
fn whoever_takes_a_line_is_not_banned_with_the_one_before() {
    let data = Rc::<Asked>::default();
    let (mut ours, mut theirs) = (open(&data), open(&data));
    let mut alone = Worker::of(&Rc::default());
    alone.fail(0);
    let handle = &mut alone.handle;
    (1..BAN.after).for_each(|_| theirs.refused(ANN, SECOND, handle));
    theirs.tidy(SECOND, handle);
    ours.refused(ANN, SECOND, handle);
    assert_eq!(ours.left(NEXT, SECOND, handle), 0);
    ours.tidy(SECOND, handle);
    assert_eq!(ours.left(NEXT, SECOND, handle), 0);
    assert_eq!(theirs.left(ANN, 2 * SECOND, handle), BAN.period - SECOND);
}

/// Redis is told of whoever had a line before as soon as another one takes it.
#[test]
fn what_was_known_of_the_caller_before_is_told_at_once() {
    for is_answer in [false, true] {
        let (mut bans, mut handle) = (open(&Rc::default()), together());
        bans.refused(ANN, SECOND, &mut handle);
        let left = match is_answer {
            true => bans.take(NEXT, &says(0, false, 0), SECOND, &mut handle),
            false => bans.left(NEXT, SECOND, &mut handle),
        };
        assert_eq!((left, told(&mut handle)), (0, vec![(ANN, 1)]));
    }
}
