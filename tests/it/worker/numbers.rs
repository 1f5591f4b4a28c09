//! What a worker takes for the number of its last write, while others write.

use std::collections::HashMap;

use diana_worker::numbers::{INSERT, Numbers};
use fastrand::Rng;
use kit::seed;

/// Values and their numbers, as Envoy keeps them.
#[derive(Default)]
struct Host {
    values: HashMap<u8, (u8, u32)>,
    number: u32,
}

impl Host {
    fn write(&mut self, key: u8, value: u8) {
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.values.insert(key, (value, self.number));
    }
}

#[test]
fn whoever_writes_meanwhile_its_value_is_never_taken_for_ones_own() {
    let mut rng = Rng::with_seed(seed::next());
    for others in [0, 5, 50] {
        let (mut host, mut numbers) = (Host::default(), Numbers::UNKNOWN);
        // From time to time it begins anew.
        host.number = INSERT - 3_000;
        // What the worker has written last where, and what it took for the number of that.
        let mut kept: HashMap<u8, (u8, u32)> = HashMap::new();
        let (mut told, mut right) = (0, 0);
        for _ in 0..20_000 {
            let (key, value) = (rng.u8(..8), rng.u8(..));
            host.write(key, value);
            numbers.wrote();
            while rng.u8(..100) < others {
                host.write(rng.u8(..8), rng.u8(..));
            }
            let read = || host.values.get(&key).map(|(value, number)| (vec![*value], *number));
            match numbers.last(&[value], read) {
                Some(number) => _ = kept.insert(key, (value, number)),
                None => _ = kept.remove(&key),
            }
            for (key, (value, number)) in &kept {
                let (found, current) = host.values[key];
                told += 1;
                right += usize::from(current == *number);
                assert!(current != *number || found == *value, "{number} is that of another value");
            }
        }
        assert!(right > 0 && (others > 0 || right == told), "{right} of {told}");
    }
}

#[test]
fn a_number_is_read_once_in_so_many_writes() {
    let (mut host, mut numbers, mut reads) = (Host::default(), Numbers::UNKNOWN, 0);
    for _ in 0..640 {
        host.write(1, 1);
        numbers.wrote();
        let read = || {
            reads += 1;
            Some((vec![1], host.number))
        };
        assert_eq!(numbers.last(&[1], read), Some(host.number));
    }
    assert_eq!(reads, 10);
    let mut unknown = Numbers::UNKNOWN;
    assert_eq!(unknown.last(&[1], || None), None);
}
