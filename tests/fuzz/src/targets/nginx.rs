//! Configurations of nginx.

pub fn run(input: &[u8]) {
    super::convert("nginx", input);
}
