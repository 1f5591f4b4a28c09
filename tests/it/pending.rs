//! A request with several questions waits for all of them.

use diana_limiter::Replies;
use diana_policy::key::Key;
use diana_policy::time::Now;
use diana_redis::protocol::{BanReply, Reply};
use diana_redis::settled::Settled;
use diana_redis::target::Target;

const ALL: [Target; 4] = [Target::Rule(0), Target::Ban(0), Target::Rule(7), Target::Ban(7)];

const CALLER: Key = Key { hash: 1, second_hash: 2 };
const OTHER: Key = Key { hash: 1, second_hash: 3 };

fn decided(left: u64) -> Settled {
    let reply = BanReply { retry: None, left, begins: false, overflow: false };
    Settled::Decided { reply: Reply::Ban(reply), wait: Some(0), sent: Now::default(), at: left }
}

/// Questions about all targets, and their numbers.
fn asked() -> (Replies, [usize; 4]) {
    let mut replies = Replies::default();
    let numbers = ALL.map(|target| replies.expect(target, CALLER));
    (replies, numbers)
}

#[test]
fn replies_are_complete_with_the_last_in_any_order() {
    for first in 0..4 {
        let (mut replies, numbers) = asked();
        for number in 0..4 {
            assert!(!replies.is_complete());
            let at = (first + number) % 4;
            assert!(replies.is_about(ALL[at], CALLER));
            assert_eq!(replies.settled(ALL[at], CALLER), None);
            replies.settle(numbers[at], decided(number as u64));
            assert_eq!(replies.settled(ALL[at], CALLER), Some(decided(number as u64)));
        }
        assert!(replies.is_complete());
    }
}

#[test]
fn first_reply_stays_and_unknown_questions_have_none() {
    let mut replies = Replies::default();
    let number = replies.expect(Target::Rule(1), CALLER);
    replies.settle(number + 1, decided(1));
    assert!(!replies.is_complete());
    for (target, caller) in [(Target::Ban(1), CALLER), (Target::Rule(1), OTHER)] {
        assert!(!replies.is_about(target, caller));
        assert_eq!(replies.settled(target, caller), None);
    }
    replies.settle(number, Settled::Alone);
    replies.settle(number, decided(2));
    assert_eq!(replies.settled(Target::Rule(1), CALLER), Some(Settled::Alone));
}

#[test]
fn one_unusable_reply_repeats_all_questions() {
    let (mut replies, [rule, ban, other, last]) = asked();
    replies.settle(rule, Settled::Alone);
    replies.settle(ban, decided(3));
    assert!(!replies.is_again());
    replies.settle(other, Settled::Again);
    assert!(replies.is_again() && !replies.is_complete());
    replies.settle(last, decided(4));
    assert!(replies.is_again() && replies.is_complete());
}
