//! What a refused request is told, as a whole.

use diana_core::report::Refusal;

/// The headers of a refusal.
pub trait Told {
    /// All of them beside the configured ones.
    fn headers(&self) -> Vec<(&'static str, String)>;
}

impl Told for Refusal {
    fn headers(&self) -> Vec<(&'static str, String)> {
        let (mut headers, mut text) = (Vec::new(), String::new());
        self.add_headers(&mut text, &mut |name, value| headers.push((name, value.to_owned())));
        headers
    }
}
