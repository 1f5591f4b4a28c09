//! What the tests take from the configuration that users get, so that it is that which is tested.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The project's root, from where the module's path in envoy.yaml counts.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The finished module.
pub fn module() -> PathBuf {
    let path = root().join("target/diana.wasm");
    assert!(path.is_file(), "target/diana.wasm is missing: run `make build`");
    path
}

/// envoy/envoy.yaml.
pub fn bootstrap() -> Value {
    let text = fs::read_to_string(root().join("envoy/envoy.yaml")).unwrap();
    serde_yaml::from_str(&text).unwrap()
}

/// The wasm filter of envoy.yaml, with another plugin configuration.
pub fn filter(configuration: &Value) -> Value {
    let mut bootstrap = bootstrap();
    let filters = bootstrap
        .pointer_mut(
            "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters",
        )
        .expect("envoy.yaml has HTTP filters");
    let mut filter = filters.get_mut(0).expect("the first of them is the filter").take();
    let place = filter.pointer_mut("/typed_config/config/configuration");
    *place.expect("it is configured") = configuration.clone();
    filter
}

/// The regexes that turn metric names into labels.
pub fn stats_config() -> Value {
    bootstrap()["stats_config"].take()
}
