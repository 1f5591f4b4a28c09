//! The simplest model of the queue: an ordered list of positions. When a client leaves, all later
//! requests of its line move up individually.

use diana_limiter::QueueLine;

#[derive(Default)]
pub struct Model(Vec<Place>);

struct Place {
    until: u64,
    stream: u32,
    line: Option<(u32, QueueLine)>,
}

impl Model {
    pub fn join(&mut self, stream: u32, limiter: u32, until: u64, line: Option<QueueLine>) {
        let at = self.0.partition_point(|place| place.until <= until);
        let line = line.map(|line| (limiter, line));
        self.0.insert(at, Place { until, stream, line });
    }

    pub fn release(&mut self, now: u64) -> Option<u32> {
        self.0.first().filter(|place| place.until <= now)?;
        Some(self.0.remove(0).stream)
    }

    pub fn next(&self) -> Option<u64> {
        self.0.first().map(|place| place.until)
    }

    /// The last instant in a line.
    pub fn last(&self, limiter: u32, line: QueueLine) -> Option<u64> {
        let of_line = self.0.iter().filter(|place| place.line == Some((limiter, line)));
        of_line.map(|place| place.until).next_back()
    }

    /// The instant of the position that becomes free.
    pub fn leave(&mut self, stream: u32) -> Option<u64> {
        let mut free = self.0.iter().position(|place| place.stream == stream)?;
        let line = self.0[free].line;
        for behind in free + 1..self.0.len() {
            if line.is_some() && self.0[behind].line == line {
                self.0[free].stream = self.0[behind].stream;
                free = behind;
            }
        }
        Some(self.0.remove(free).until)
    }
}
