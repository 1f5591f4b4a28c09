//! What each account of a connection was given today.

use super::PERMITS;
use super::caller::{ACCOUNTS, Event};

/// How far the clocks of Envoy and of this process may differ, in microseconds.
const APART: u64 = 5_000;

/// What was given on a day, to each account.
#[derive(Clone, PartialEq)]
struct Day([u8; ACCOUNTS as usize]);

/// What may have been given so far. Which of the requests around midnight was the first of today may be told only by
/// what becomes of those after it, so there may be several ideas of what was given since.
pub struct Oracle(Vec<Day>);

impl Default for Oracle {
    fn default() -> Oracle {
        Oracle(vec![Day::NEW])
    }
}

impl Oracle {
    /// Follows requests over a midnight: there is a first one of the next day, sent and answered when
    /// that began, and all of them were answered as they had to be. How many were admitted on each day.
    pub fn follow(&mut self, events: &[Event], midnight: u64) -> (usize, usize) {
        let first = events.partition_point(|event| event.received + APART < midnight);
        let last = events.partition_point(|event| event.sent <= midnight + APART);
        let mut odd: Vec<Event> = Vec::new();
        let mut is_true = |day: &mut Day| {
            let wrong = events[..first].iter().find(|event| !day.expects(event));
            odd.extend(wrong);
            wrong.is_none()
        };
        self.0.retain_mut(&mut is_true);
        let (mut days, mut admitted) = (Vec::new(), None);
        for switch in first..=last {
            let mut today = Day::NEW;
            let wrong = events[switch..].iter().find(|event| !today.expects(event));
            odd.extend(wrong);
            if !self.0.is_empty() && wrong.is_none() {
                admitted = Some((count(&events[..switch]), count(&events[switch..])));
                days.push(today);
            }
            if let Some(event) = events.get(switch) {
                self.0.retain_mut(|day| day.expects(event));
            }
        }
        days.dedup_by(|one, other| one == other);
        self.0 = days;
        admitted.unwrap_or_else(|| {
            let span = (events[first.min(events.len() - 1)], events[last.min(events.len() - 1)]);
            panic!("midnight at {midnight}, between {span:?}: no day explains one of {odd:?}")
        })
    }
}

impl Day {
    const NEW: Day = Day([0; ACCOUNTS as usize]);

    /// Whether a request is answered as it has to be, which is then counted.
    fn expects(&mut self, event: &Event) -> bool {
        let used = &mut self.0[usize::from(event.account)];
        let fits = *used < PERMITS;
        *used += u8::from(fits);
        fits == event.admitted
    }
}

fn count(events: &[Event]) -> usize {
    events.iter().filter(|event| event.admitted).count()
}
