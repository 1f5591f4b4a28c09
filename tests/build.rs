//! The dynamic module looks some functions up by their names, also in the fake Envoy of `dynamic/`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-tests=-rdynamic");
}
