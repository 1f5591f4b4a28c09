//! When the host calls a worker, as the adapter to Envoy asks for it: in whole milliseconds.

use diana_core::time::Micros;

const MILLISECOND: Micros = 1000;

/// A worker's timer.
#[derive(Debug, Default)]
pub struct Timer {
    /// When the host calls the next time.
    pub fires: Option<Micros>,
    /// When the worker's regular work is due.
    regular: Option<Micros>,
}

impl Timer {
    /// Sees to it that regular work is done within `pace`.
    pub fn start(&mut self, pace: Micros, now: Micros) {
        if self.regular.is_none() {
            self.regular = Some(now + pace);
            self.wake(now + pace, now);
        }
    }

    /// Whether regular work is due; it is not again until the next start.
    pub fn is_due(&mut self, now: Micros) -> bool {
        let due = self.regular.is_some_and(|due| due <= now);
        if due {
            self.regular = None;
        }
        due
    }

    /// Comes back no later than at `instant`.
    pub fn wake(&mut self, instant: Micros, now: Micros) {
        let fires = after(instant, now);
        self.fires = Some(self.fires.map_or(fires, |before| before.min(fires)));
    }

    /// Waits for what is due next, which is the regular work or at `instant`.
    pub fn rest(&mut self, instant: Option<Micros>, now: Micros) {
        let next = [self.regular, instant].into_iter().flatten().min();
        self.fires = next.map(|next| after(next, now));
    }
}

fn after(instant: Micros, now: Micros) -> Micros {
    now + instant.saturating_sub(now).div_ceil(MILLISECOND).max(1) * MILLISECOND
}
