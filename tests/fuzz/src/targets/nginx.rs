//! Configurations of nginx.

pub fn run(input: &[u8]) {
    super::import::convert("nginx", input);
}
