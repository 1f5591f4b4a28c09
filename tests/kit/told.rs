//! What a refused request is told, as a whole.

use diana_core::report::Refusal;
use diana_text::Text;

/// The headers of a refusal.
pub trait Told {
    /// All of them beside the configured ones.
    fn headers(&self) -> Vec<(&'static str, String)>;
}

impl Told for Refusal {
    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        self.add_headers(&mut |name, write| {
            let mut value = Text::NONE;
            write(&mut value);
            headers.push((name, value.as_str().to_owned()));
        });
        headers
    }
}
