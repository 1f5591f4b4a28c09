//! Policies of Envoy Gateway, and its routes.

pub fn run(input: &[u8]) {
    super::convert("envoy-gateway", input);
}
