//! The source document claims that 134 million entries take about 32 MB.

use diana_policy::bloom::{Filter, Shape};

use super::day::key;

const ENTRIES: u64 = 1 << 27;
const BYTES: u64 = 32 << 20;

/// Prints the error of this number of accounts in this memory, and the number that fits.
pub fn tell() {
    let fits = |error| {
        let (mut fits, mut exceeds) = (1, ENTRIES);
        while exceeds - fits > 1 {
            let accounts = u64::midpoint(fits, exceeds);
            let is_small = Shape::new(accounts, error, 2).bytes() <= BYTES;
            if is_small { fits = accounts } else { exceeds = accounts }
        }
        fits
    };
    let mut filter = Filter::new(Shape::new(fits(100_000), 100_000, 2));
    (0..ENTRIES).for_each(|account| _ = filter.add(key(account), 1));
    let strangers = ENTRIES..ENTRIES + 1_000_000;
    let taken = strangers.filter(|account| filter.count(key(*account)) > 0).count();
    println!(
        "\n32 MiB hold {} accounts of up to 3 permits at an error of 1 %, {} at 10 %. With {ENTRIES} in \
         them {:.2} % of strangers would be taken for others: so many can be its counters, of 2 bits \
         each, not its accounts.",
        fits(10_000),
        fits(100_000),
        taken as f64 / 1e4
    );
}
