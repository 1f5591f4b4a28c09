//! Manifests with annotations of ingress-nginx.

pub fn run(input: &[u8]) {
    super::convert("ingress-nginx", input);
}
