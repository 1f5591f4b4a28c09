//! Numbers in text are those that the standard library writes.

use diana_core::text::{decimal, hexadecimal, millionths};
use fastrand::Rng;

#[test]
fn numbers_look_like_those_of_the_standard_library() {
    let mut rng = Rng::with_seed(kit::seed::fresh());
    let edges = (0..20).map(|power| 10_u64.pow(power)).chain((0..64).map(|bit| 1 << bit));
    let near = edges.flat_map(|edge: u64| [edge - 1, edge, edge.saturating_add(1)]);
    let any: Vec<u64> = (0..1_000).map(|_| rng.u64(..) >> rng.u8(0..64)).collect();
    for number in near.chain([u64::MAX]).chain(any) {
        let mut text = String::from("r=");
        decimal(&mut text, number);
        text.push(' ');
        hexadecimal(&mut text, number, 16);
        text.push(' ');
        hexadecimal(&mut text, number, 1);
        text.push(' ');
        millionths(&mut text, number % 1_000_000);
        let micros = number % 1_000_000;
        assert_eq!(text, format!("r={number} {number:016x} {number:x} {micros:06}"));
    }
}
