//! The laws again, in node: 32-bit `usize`, no clock, no threads.

#![cfg(target_arch = "wasm32")]

use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn laws_hold_on_32_bits() {
    kit::laws::hold(0xd1a4a, 60);
}
