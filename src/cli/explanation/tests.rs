use super::duration;

#[test]
fn duration_is_rounded_up_to_digits_that_matter() {
    let durations = [
        (0, "0 s"),
        (1, "0.001 s"),
        (1_000, "0.001 s"),
        (499_001, "0.5 s"),
        (999_999, "1 s"),
        (1_000_001, "1.1 s"),
        (62_078_479, "62.1 s"),
        (66_000_000, "66 s"),
        (75_448_000_001, "75448.1 s"),
    ];
    for (ticks, expected) in durations {
        assert_eq!(duration(ticks), expected);
    }
}
