//! What is written piece by piece is what the standard library writes.

use diana_text::Text;
use fastrand::Rng;

#[test]
fn numbers_look_like_those_of_the_standard_library() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let edges = (0..20).map(|power| 10_u64.pow(power)).chain((0..64).map(|bit| 1 << bit));
    let near = edges.flat_map(|edge: u64| [edge - 1, edge, edge.saturating_add(1)]);
    let any: Vec<u64> = (0..1_000).map(|_| rng.u64(..) >> rng.u8(0..64)).collect();
    for number in near.chain([u64::MAX]).chain(any) {
        let mut text = Text::NONE;
        text.push("r=");
        text.decimal(number);
        text.push(" ");
        text.hexadecimal(number, 16);
        text.push(" ");
        text.hexadecimal(number, 1);
        text.millionths(number % 1_000_000);
        let micros = number % 1_000_000;
        assert_eq!(text.as_str(), format!("r={number} {number:016x} {number:x}.{micros:06}"));
    }
}

#[test]
fn pieces_of_all_lengths_stand_behind_each_other() {
    let mut rng = Rng::with_seed(kit::seed::next());
    let mut text = Text::NONE;
    for _ in 0..100 {
        text.clear();
        let mut expected = String::new();
        for _ in 0..100 {
            if rng.u8(0..20) == 0 {
                let left = rng.usize(..=expected.len() + 1);
                text.truncate(left);
                expected.truncate(left);
            }
            let piece: String = (0..rng.usize(0..70)).map(|_| rng.alphanumeric()).collect();
            text.push(&piece);
            expected.push_str(&piece);
            assert_eq!((text.as_str(), text.length()), (expected.as_str(), expected.len()));
        }
    }
}

#[test]
fn a_text_is_written_in_the_memory_of_the_one_before() {
    let mut text = Text::NONE;
    text.push(&"long".repeat(100));
    let capacity = text.capacity();
    text.clear();
    assert_eq!((text.as_str(), text.length()), ("", 0));
    (0..100).for_each(|_| text.push("long"));
    assert_eq!(text.capacity(), capacity);
}
