//! Policies of Kuadrant.

pub fn run(input: &[u8]) {
    super::import::convert("kuadrant", input);
}
