//! What the headers of a refusal are made of. Who refuses a flood tells nearly all of it the same: how long to wait is told
//! in whole seconds.

use std::rc::Rc;

use super::Refusal;
use super::headers::seconds;
use crate::policy::Response;
use crate::time::Micros;

/// All that the headers of a refusal depend on, which a single rule decided.
#[derive(Debug, Clone)]
pub struct Grounds {
    response: Rc<Response>,
    rule: Rc<str>,
    numbers: Numbers,
}

/// What of it changes from one refusal to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    shown: bool,
    is_unavailable: bool,
    policy: (u64, Micros),
    remaining: Option<u64>,
    /// In seconds, as well as when to come back.
    reset: Option<u64>,
    retry: Option<u64>,
}

impl Refusal {
    /// What its headers are made of; nothing if several rules had a say.
    #[must_use]
    pub fn grounds(&self) -> Option<Grounds> {
        let (response, rule) = (self.response.clone(), self.by.rule.clone());
        self.several.is_empty().then(|| Grounds { response, rule, numbers: self.numbers() })
    }

    /// Whether its headers are made of these grounds, so that they are the same.
    #[must_use]
    pub fn stands_on(&self, grounds: &Grounds) -> bool {
        self.several.is_empty()
            && Rc::ptr_eq(&self.response, &grounds.response)
            && Rc::ptr_eq(&self.by.rule, &grounds.rule)
            && self.numbers() == grounds.numbers
    }

    fn numbers(&self) -> Numbers {
        Numbers {
            shown: self.by.shown,
            is_unavailable: self.is_unavailable(),
            policy: self.by.policy,
            remaining: self.by.remaining,
            reset: self.by.reset.map(seconds),
            retry: self.retry_after(),
        }
    }
}
