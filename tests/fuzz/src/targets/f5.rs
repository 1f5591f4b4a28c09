//! Annotations and Policies of F5's controller.

pub fn run(input: &[u8]) {
    super::convert("f5", input);
}
