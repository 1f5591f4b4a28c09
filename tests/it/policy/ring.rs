//! The ring of slices, compared with a list of all counts.

use diana_policy::ring::Ring;

#[test]
fn ring_agrees_with_a_list() {
    let mut rng = fastrand::Rng::with_seed(kit::seed::next());
    for counters in [1, 2, 3, 11, 61] {
        let ring = Ring::new(counters);
        let mut state = vec![0; ring.words()];
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut slice = rng.u64(0..20);
        for _ in 0..2000 {
            slice += match rng.u8(0..10) {
                0..=5 => 0,
                6..=8 => rng.u64(0..3),
                _ => rng.u64(0..100),
            };
            // Sometimes the clock steps back. The newest slice then takes the count.
            let asked = slice.saturating_sub(if rng.u8(0..20) == 0 { 5 } else { 0 });
            let amount = rng.u64(0..9);
            list.push((asked.max(ring.newest(&state)), amount));
            ring.add(&mut state, asked, amount);
            if rng.u8(0..4) == 0 {
                // A late count is added to its slice while that is in the ring.
                let late = slice.saturating_sub(rng.u64(0..2 * counters as u64));
                let (newest, amount) = (ring.newest(&state), rng.u64(0..9));
                ring.add_late(&mut state, late, amount);
                if late + counters as u64 > newest {
                    list.push((late, amount));
                }
            }
            if rng.u8(0..4) == 0 {
                // A count outside the ring cannot be subtracted.
                let (from, back) = list.swap_remove(rng.usize(0..list.len()));
                ring.take(&mut state, from, back);
                let next = ring.newest(&state) + 1;
                ring.take(&mut state, next, 5);
            }
            slice = slice.max(ring.newest(&state));
            let counted = |from: u64| -> u64 {
                list.iter().filter(|(at, _)| *at >= from).map(|(_, amount)| amount).sum()
            };
            let ahead = slice + rng.u64(0..counters as u64 + 3);
            let oldest = (ahead + 1).saturating_sub(counters as u64);
            assert_eq!(ring.sum(&state, ahead), counted(oldest), "{counters} counters at {ahead}");
        }
    }
}

#[test]
fn counter_saturates() {
    let ring = Ring::new(2);
    let mut state = vec![0; ring.words()];
    ring.add(&mut state, 4, u64::MAX);
    ring.add(&mut state, 4, 7);
    ring.add(&mut state, 5, 1);
    assert_eq!(ring.sum(&state, 5), u64::from(u32::MAX) + 1);
}
