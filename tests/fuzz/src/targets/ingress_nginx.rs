//! Manifests with annotations of ingress-nginx.

pub fn run(input: &[u8]) {
    super::import::convert("ingress-nginx", input);
}
