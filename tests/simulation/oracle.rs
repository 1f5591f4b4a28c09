//! The oracle finds what is one too many.

use diana_core::time::SECOND;

use kit::simulation::fullest::{Admission, Fullest, extremes};

fn at(times: &[u64]) -> Vec<Admission> {
    let admission = |at: &u64| Admission { caller: 1, at: *at, gateway: 0, part: 0 };
    times.iter().map(admission).collect()
}

fn of(algo: &str, times: &[u64]) -> Fullest {
    extremes(algo, 3, &mut at(times)).fullest
}

#[test]
fn a_window_is_full_by_its_second() {
    let end = SECOND - 1;
    assert_eq!(of("W", &[end, SECOND, 0, end, SECOND + 1]), Fullest { used: 3, allowed: 3 });
    assert_eq!(of("W", &[5, 5, 5, 5]).over(), 1);
}

#[test]
fn a_sliding_window_is_full_in_any_second() {
    let end = SECOND - 1;
    assert_eq!(of("SW", &[end, end, SECOND, 2 * SECOND - 1]), Fullest { used: 3, allowed: 3 });
    assert_eq!(of("SW", &[end, end, SECOND, 2 * SECOND - 2]).over(), 1);
}

#[test]
fn a_bucket_is_empty_when_all_of_it_is_out() {
    let third = SECOND.div_ceil(3);
    assert_eq!(of("TB", &[0, 0, third, third, SECOND]), Fullest { used: 3, allowed: 3 });
    assert_eq!(of("TB", &[0, 0, 1, third]).over(), 0);
    assert_eq!(of("TB", &[0, 0, 1, third - 1]).over(), 1);
}

#[test]
fn everybody_has_a_limit_of_his_own() {
    let mut admissions = at(&[0; 6]);
    admissions[..3].iter_mut().for_each(|one| one.caller = 2);
    assert_eq!(extremes("SW", 3, &mut admissions).fullest.over(), 0);
}

#[test]
fn who_goes_by_himself_may_add_his_part() {
    let mut admissions = at(&[0; 5]);
    for one in &mut admissions[..2] {
        (one.gateway, one.part) = (7, 2);
    }
    for algo in ["W", "SW"] {
        assert_eq!(extremes(algo, 3, &mut admissions).fullest, Fullest { used: 5, allowed: 5 });
    }
    admissions[0].at = SECOND;
    admissions[1].at = SECOND;
    assert_eq!(
        extremes("W", 2, &mut admissions).fullest.over(),
        1,
        "the part belongs to another window"
    );
}
