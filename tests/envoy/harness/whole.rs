//! Whole files of the project, started as they are but for their ports.

use serde_json::{Value, json};

use super::bootstrap::Gateway;
use super::envoy::{Envoy, start_file};
use super::{port, shipped};

/// The Wasm filter's type.
const WASM: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";

/// Starts a file of the project with one worker, on free ports. Its gateway listens on the port
/// 10000 of the file, Redis on 16379.
#[track_caller]
pub fn start_whole(path: &str, redis: Option<u16>) -> Envoy {
    start_whole_text(shipped::text(path), redis)
}

/// The same with the text of a file.
#[track_caller]
pub fn start_whole_text(mut text: String, redis: Option<u16>) -> Envoy {
    if shipped::is_native() {
        let library = shipped::library();
        text = text.replace("target/libdiana.so", library.to_str().unwrap());
    }
    let mut replace = |from: u16, to: u16| {
        text = text.replace(&format!("port_value: {from} "), &format!("port_value: {to} "));
    };
    // The kernel chooses the ports of the gateway and of the admin interface.
    [10_000, 9_901].into_iter().for_each(|own| replace(own, 0));
    replace(10_001, port::free());
    redis.into_iter().for_each(|redis| replace(16_379, redis));
    let socket = std::env::temp_dir().join(format!("diana-{}.sock", port::free()));
    text = text.replace("target/redis.sock", socket.to_str().unwrap());
    let mut file: Value = serde_yaml::from_str(&text).unwrap();
    if shipped::is_native() {
        make_native(&mut file);
    }
    start_file(&Gateway::with("limits: []"), &file, "gateway")
}

/// Replaces the wasm filters by the library.
fn make_native(value: &mut Value) {
    if value.pointer("/typed_config/@type") == Some(&json!(WASM)) {
        let config = value["typed_config"]["config"].take();
        *value = shipped::native_filter(&config["configuration"], "diana");
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_native),
        Value::Object(members) => members.values_mut().for_each(make_native),
        _ => {}
    }
}
