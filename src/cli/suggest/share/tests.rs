use super::{RefusedShare, limit, quantile};

#[test]
fn share_is_a_percentage_or_a_fraction() {
    for (text, of_a_thousand) in
        [("0", 0), ("1%", 10), ("12.5 %", 125), ("0.1", 100), ("1", 1000), ("100%", 1000)]
    {
        assert_eq!(RefusedShare::parse(text).unwrap().of(1000), of_a_thousand, "{text}");
    }
    for wrong in ["", "%", "x", "-1%", "101%", "1.01", "0.0.1", "1e-3", "0.1111111111"] {
        let error = RefusedShare::parse(wrong).unwrap_err();
        assert!(error.contains("allowed: a share such as 0.1%"), "{wrong}: {error}");
    }
}

#[test]
fn limit_refuses_no_more_than_the_share() {
    let most: Vec<u32> = (1..=100).collect();
    for (share, expected) in [("0", 100), ("1%", 99), ("1.9%", 99), ("0.1", 90), ("100%", 1)] {
        assert_eq!(limit(&most, RefusedShare::parse(share).unwrap()), expected, "{share}");
    }
}

#[test]
fn quantile_is_the_most_of_that_many_callers() {
    let most: Vec<u32> = (1..=10).map(|number| number * 10).collect();
    let quantiles = [1, 500, 900, 901, 1000].map(|thousandths| quantile(&most, thousandths));
    assert_eq!(quantiles, [10, 50, 90, 100, 100]);
    assert_eq!(quantile(&[], 500), 0);
}
