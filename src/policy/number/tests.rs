use super::{Number, exact, push_decimal, push_hex, push_seconds, scientific};

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

/// A number with its point moved, as text.
fn moved(number: &str, power: i32) -> String {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let zeros = "0".repeat(power.unsigned_abs() as usize);
    let digits = format!("{zeros}{whole}{part}{zeros}");
    let point = (zeros.len() + whole.len()).checked_add_signed(power as isize).unwrap();
    let (whole, part) = digits.split_at(point);
    format!("0{whole}.{part}0")
}

#[test]
fn exponent_moves_the_point() {
    let numbers = [
        "0",
        "1",
        "0.0",
        "2.85",
        "10",
        "0.05",
        "999999999.999999999",
        "18446744073709551615",
        "123456789012345678901.5",
        "0.0000000001",
    ];
    for number in numbers {
        for power in -40..=40 {
            let expected = exact(moved(number, power).as_bytes());
            assert!(expected.is_some());
            for spelled in [format!("{number}e{power}"), format!("{number}E{power:+03}")] {
                assert_eq!(scientific(spelled.as_bytes()), expected, "{spelled}");
            }
        }
        assert_eq!(scientific(number.as_bytes()), exact(number.as_bytes()));
    }
}

#[test]
fn exponent_of_any_size_is_bounded() {
    let (least, most) =
        (Number { whole: 0, billionths: 1 }, Number { whole: u64::MAX, billionths: 0 });
    for power in
        ["400", "999999999", "9223372036854775807", "9223372036854775808", &"9".repeat(500)]
    {
        let read = |number: &str| scientific(format!("{number}e{power}").as_bytes());
        let read_small = |number: &str| scientific(format!("{number}e-{power}").as_bytes());
        assert_eq!(
            [read("1"), read("0"), read("0.00")],
            [Some(most), Some(0.into()), Some(0.into())]
        );
        assert_eq!([read_small("12.5"), read_small("0")], [Some(least), Some(0.into())]);
    }
    for text in [
        "e5", "1e", "1e+", "1e-", "1e5e5", "1e1.5", ".5e1", "5.e1", "-1e5", "+1e5", "1 e5", "1e 5",
        "1e--5", "1e0x5", "e", "",
    ] {
        assert_eq!(scientific(text.as_bytes()), None, "{text}");
    }
}
