use super::{push_decimal, push_hex, push_seconds};

/// Around every power of two and of ten.
fn numbers() -> impl Iterator<Item = u64> {
    let powers = (0..64).map(|power| 1 << power).chain((0..20).map(|power| 10_u64.pow(power)));
    powers.flat_map(|power| [power - 1, power, power.saturating_add(1)]).chain([u64::MAX])
}

#[test]
fn numbers_read_as_the_standard_library_writes_them() {
    for number in numbers() {
        let (mut decimal, mut seconds, mut hex) = (String::new(), String::new(), String::new());
        push_decimal(&mut decimal, number);
        assert_eq!(decimal, number.to_string());
        push_seconds(&mut seconds, number);
        assert_eq!(seconds, format!("{}.{:06}s", number / 1_000_000, number % 1_000_000));
        push_hex(&mut hex, [number as u32, !number as u32]);
        assert_eq!(hex, format!("{:08x}{:08x}", number as u32, !number as u32));
    }
}
