//! Configurations of Envoy, and EnvoyFilters.

pub fn run(input: &[u8]) {
    super::convert("envoy", input);
}
