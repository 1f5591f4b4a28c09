//! Policies of Kuadrant.

pub fn run(input: &[u8]) {
    super::convert("kuadrant", input);
}
