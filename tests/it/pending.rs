//! A request with several questions waits for all of them.

use diana_policy::time::Now;
use diana_redis::pending::{Pending, Settled};
use diana_redis::protocol::{BanReply, Reply};
use diana_redis::target::Target;

const ALL: [Target; 4] = [Target::Rule(0), Target::Ban(0), Target::Rule(7), Target::Ban(7)];

fn decided(left: u64) -> Settled {
    let reply = BanReply { retry: None, left, begins: false, overflow: false };
    Settled::Decided { reply: Reply::Ban(reply), wait: Some(0), sent: Now::default(), at: left }
}

#[test]
fn it_is_complete_with_the_last_answer_in_whatever_order_they_come() {
    for first in 0..4 {
        let mut pending = Pending::new(ALL);
        for number in 0..4 {
            let missing: Vec<Target> = pending.missing().collect();
            assert_eq!(missing.len(), 4 - number);
            assert!(!pending.is_complete());
            let target = ALL[(first + number) % 4];
            assert!(missing.contains(&target));
            assert_eq!(pending.settled(target), None);
            pending.settle(target, decided(number as u64));
            assert_eq!(pending.settled(target), Some(decided(number as u64)));
        }
        assert!(pending.is_complete());
        assert_eq!(pending.missing().next(), None);
    }
}

#[test]
fn what_is_known_stays_and_what_was_not_asked_is_not_told() {
    let mut pending = Pending::new([Target::Rule(1)]);
    pending.settle(Target::Ban(1), decided(1));
    assert!(!pending.is_complete());
    assert_eq!(pending.settled(Target::Ban(1)), None);
    pending.settle(Target::Rule(1), Settled::Alone);
    pending.settle(Target::Rule(1), decided(2));
    assert_eq!(pending.settled(Target::Rule(1)), Some(Settled::Alone));
}

#[test]
fn one_answer_that_is_of_no_use_has_all_asked_again() {
    let mut pending = Pending::new(ALL);
    pending.settle(Target::Rule(0), Settled::Alone);
    pending.settle(Target::Ban(0), decided(3));
    assert!(!pending.is_again());
    pending.settle(Target::Rule(7), Settled::Again);
    assert!(pending.is_again() && !pending.is_complete());
    pending.settle(Target::Ban(7), decided(4));
    assert!(pending.is_again() && pending.is_complete());
}
