//! Requests that are held leave an interval apart, whatever happens meanwhile.

mod changes;
mod crowd;
mod departures;
mod leaving;

use crate::holding::{assert_all_ok, changed_line, line, numbers, send};
