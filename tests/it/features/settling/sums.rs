//! Usage that is the sum of several numbers, and usage that the host measures.

use diana_policy::time::SECOND;
use diana_policy::{NumberForm, ResponseSource, Term};
use diana_request::settling::{KnownResponse, UnknownUsage, UsageReader};
use fastrand::Rng;
use kit::ending::FakeEnding;
use kit::seed;

use super::{ERROR, MISSING, MOST, by_terms, used};

fn metadata(key: &str) -> ResponseSource {
    ResponseSource::Metadata { path: vec!["u".into(), key.into()], form: NumberForm::Typed }
}

fn header(key: &str) -> ResponseSource {
    ResponseSource::Header(key.into())
}

/// Some numbers, often the largest, or none.
fn number(rng: &mut Rng) -> Option<u64> {
    match rng.u8(0..8) {
        0 => None,
        1 => Some(1 << 53),
        2 => Some(rng.u64(0..1 << 53)),
        _ => Some(rng.u64(0..3_000)),
    }
}

/// A weight, often an extreme.
fn weight(rng: &mut Rng) -> i64 {
    let weight = match rng.u8(0..6) {
        0 => 1,
        1 => Term::HEAVIEST,
        2 => Term::ONE,
        3 => rng.i64(1..3_000) * 1_000_000,
        _ => rng.i64(1..3 * Term::ONE),
    };
    if rng.u8(0..4) == 0 { -weight } else { weight }
}

/// The sum, as decimals with nine digits add up: without a carry into another unit, and rounded up once.
fn expected(terms: &[(Option<u64>, i64)]) -> Option<u64> {
    let (mut whole, mut part) = (0_i128, 0_i128);
    for (number, weight) in terms {
        let (number, weight) = (i128::from((*number)?), i128::from(*weight));
        whole += number * (weight / 1_000_000_000);
        part += number * (weight % 1_000_000_000);
    }
    let up = part.div_euclid(1_000_000_000) + i128::from(part.rem_euclid(1_000_000_000) > 0);
    u64::try_from((whole + up).clamp(0, MOST.into())).ok()
}

#[test]
fn sum_is_exact_and_rounded_up_once() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut zero, mut between, mut most, mut none) = (0, 0, 0, 0);
    for _ in 0..4_000 {
        let terms: Vec<(Option<u64>, i64)> =
            (0..rng.usize(1..=8)).map(|_| (number(&mut rng), weight(&mut rng))).collect();
        let of = |source: fn(&str) -> ResponseSource| {
            let term = |(at, (_, weight)): (usize, &(_, i64))| Term {
                source: source(&format!("k{at}")),
                weight: *weight,
            };
            by_terms(terms.iter().enumerate().map(term).collect())
        };
        let (mut whole, mut came) = (FakeEnding::answered(200), FakeEnding::answered(200));
        for (at, (number, _)) in terms.iter().enumerate() {
            if let Some(number) = number {
                let path = ["metadata", "typed_filter_metadata", "u", &format!("k{at}")];
                whole = whole.property(&path, number.to_le_bytes());
                came = came.header(&format!("k{at}"), number.to_string());
            }
        }
        // Missing numbers count as 0.
        let known: Vec<_> = terms.iter().copied().filter(|(number, _)| number.is_some()).collect();
        let wanted = match known.is_empty() {
            true => (MISSING, Some(UnknownUsage::Absent)),
            false => {
                let is_partial = known.len() < terms.len();
                (expected(&known).unwrap(), is_partial.then_some(UnknownUsage::Partial))
            }
        };
        match wanted {
            (_, Some(UnknownUsage::Absent)) => none += 1,
            (0, _) => zero += 1,
            (MOST, _) => most += 1,
            _ => between += 1,
        }
        let by_end = used(&of(metadata), Some(&FakeEnding::answered(200)), &whole);
        assert_eq!(by_end, wanted, "{terms:?}");
        assert_eq!(used(&of(header), Some(&came), &came), wanted, "{terms:?}");
    }
    assert!(
        zero > 100 && between > 100 && most > 100 && none > 20,
        "{zero} {between} {most} {none}"
    );
}

/// A price in dollars is a fraction, which its weight makes a number of permits.
#[test]
fn fractions_are_weighted_before_they_are_rounded() {
    let mut rng = Rng::with_seed(seed::next());
    let (mut zero, mut between, mut most) = (0, 0, 0);
    for _ in 0..4_000 {
        // Thousandths, which a 64-bit float has exactly enough, or billionths.
        let unit = if rng.bool() { 1_000_000 } else { 1 };
        let mut term = |_| (rng.u64(0..2_000_000_000_000 / unit) * unit, weight(&mut rng));
        let terms: Vec<(u64, i64)> = (0..term(0).0 % 8 + 1).map(&mut term).collect();
        let product = |(number, weight): &(u64, i64)| i128::from(*number) * i128::from(*weight);
        let sum: i128 = terms.iter().map(product).sum();
        let one = i128::from(Term::ONE) * i128::from(Term::ONE);
        let wanted = (sum.max(0) / one + i128::from(sum.max(0) % one > 0)).min(MOST.into()) as u64;
        let of = |source: &dyn Fn(String) -> ResponseSource| {
            let of = |(at, (_, weight)): (usize, &(u64, i64))| Term {
                source: source(format!("k{at}")),
                weight: *weight,
            };
            by_terms(terms.iter().enumerate().map(of).collect())
        };
        let (mut ended, mut came) = (FakeEnding::answered(200), FakeEnding::answered(200));
        for (at, (number, _)) in terms.iter().enumerate() {
            let key = format!("k{at}");
            let text = format!("{}.{:09}", number / 1_000_000_000, number % 1_000_000_000);
            let float: f64 = text.parse().unwrap();
            ended =
                ended.property(&["metadata", "filter_metadata", "u", &key], float.to_le_bytes());
            came = came.header(&key, if rng.bool() { text } else { format!("{number}e-9") });
        }
        let by_header = of(&ResponseSource::Header);
        assert_eq!(used(&by_header, Some(&came), &came), (wanted, None), "{terms:?}");
        let form = NumberForm::Number;
        let by_float = of(&|key| ResponseSource::Metadata { path: vec!["u".into(), key], form });
        assert_eq!(used(&by_float, Some(&came), &ended), (wanted, None), "{terms:?}");
        match wanted {
            0 => zero += 1,
            MOST => most += 1,
            _ => between += 1,
        }
    }
    assert!(zero > 100 && between > 100 && most > 100, "{zero} {between} {most}");
    let thousand = by_terms(vec![Term { source: header("price"), weight: Term::HEAVIEST }]);
    for (price, wanted) in
        [("0.00012", 1), ("0.0012", 2), ("0.0000000001", 1), ("0.25", 250), ("3", 3_000)]
    {
        let came = FakeEnding::answered(200).header("price", price);
        assert_eq!(used(&thousand, Some(&came), &came), (wanted.min(MOST), None), "{price}");
    }
}

#[test]
fn weights_add_up_to_the_price() {
    let term = |key, tenths: i64| Term { source: metadata(key), weight: tenths * Term::ONE / 10 };
    // The input contains the cached tokens, which cost a tenth.
    let reader = by_terms(vec![term("input", 10), term("cached", -9), term("output", 40)]);
    for (input, cached, output, wanted) in
        [(100, 0, 50, 300), (100, 100, 0, 10), (101, 101, 0, 11), (1, 1, 0, 1), (0, 0, 0, 0)]
    {
        let number = |ending: FakeEnding, key, value: u64| {
            ending.property(&["metadata", "typed_filter_metadata", "u", key], value.to_le_bytes())
        };
        let ended = number(FakeEnding::answered(200), "input", input);
        let ended = number(number(ended, "cached", cached), "output", output);
        assert_eq!(used(&reader, Some(&ended), &ended), (wanted, None));
    }
}

/// One unusable number makes the usage unknown.
#[test]
fn unusable_number_spoils_the_sum() {
    let term = |source| Term { source, weight: 2 * Term::ONE };
    let reader = by_terms(vec![term(header("a")), term(header("b"))]);
    for wrong in ["-1", "x", "9007199254740993"] {
        for status in [200, 500] {
            let came = FakeEnding::answered(status).header("a", "3").header("b", wrong);
            let wanted = if status == 200 { MISSING } else { ERROR };
            assert_eq!(used(&reader, Some(&came), &came).0, wanted, "{wrong}");
        }
    }
    let came = FakeEnding::answered(200).header("a", "3").header("b", "1").header("b", "1");
    assert_eq!(used(&reader, Some(&came), &came), (MISSING, Some(UnknownUsage::Unusable)));
}

/// Bytes and the duration are known after any end, also of an upload that failed.
#[test]
fn measured_usage_is_known_after_any_end() {
    let term = |source, weight| Term { source, weight };
    let bytes = by_terms(vec![
        term(ResponseSource::RequestBytes, Term::ONE / 1_000),
        term(ResponseSource::ResponseBytes, 2 * Term::ONE),
    ]);
    let duration = by_terms(vec![term(ResponseSource::Duration, Term::ONE)]);
    let took = |reader: &UsageReader, ended: &FakeEnding, elapsed| {
        reader.used(5, KnownResponse::default(), ended, elapsed)
    };
    for ended in [
        FakeEnding::answered(200),
        FakeEnding::answered(500),
        FakeEnding::cut(),
        FakeEnding::left(None),
        FakeEnding::left(Some(200)),
        FakeEnding::unreachable(),
    ] {
        for (ticks, ms) in
            [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (SECOND / 2, 500), (SECOND * 9, MOST)]
        {
            assert_eq!(took(&duration, &ended, ticks), (ms, None), "{ended:?}");
        }
        let ended = ended
            .property(&["request", "total_size"], 1_001_u64.to_le_bytes())
            .property(&["response", "total_size"], 30_u64.to_le_bytes());
        assert_eq!(took(&bytes, &ended, 0), (62, None), "{ended:?}");
    }
    // A host without these properties.
    let ended = FakeEnding::answered(200);
    assert_eq!(took(&bytes, &ended, 0), (MISSING, Some(UnknownUsage::Absent)));
    // An internal redirect is another request.
    let followed = FakeEnding::denied(302, "internal_redirect");
    assert_eq!(took(&duration, &followed, SECOND), (0, None));
}
