//! Policies of Envoy Gateway, and its routes.

pub fn run(input: &[u8]) {
    super::import::convert("envoy-gateway", input);
}
