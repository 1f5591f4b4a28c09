//! Middlewares and routers of Traefik.

pub fn run(input: &[u8]) {
    super::convert("traefik", input);
}
