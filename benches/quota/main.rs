//! Daily quotas in fixed memory, compared with an exact table and with the claim of the source
//! document. Fails if an account got too many permits, or if too many were refused too early.

// A bench may panic, and measures real time.
#![allow(clippy::panic, clippy::indexing_slicing, clippy::disallowed_methods)]

mod claim;
mod day;
mod exact;

use std::process::ExitCode;

use day::Day;

/// The accounts of a day, their permits, and the accepted error in millionths.
const DAYS: [(u64, u64, u64); 6] = [
    (100_000, 2, 10_000),
    (1_000_000, 2, 10_000),
    (10_000_000, 2, 10_000),
    (1_000_000, 2, 1_000),
    (10_000_000, 10, 10_000),
    (1_000_000, 50, 10_000),
];

fn main() -> ExitCode {
    println!(
        "| accounts | permits | error | too early | of latecomers | extra | B/account | ns | exact: \
         B/account | ns | |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    );
    let mut holds = true;
    for (accounts, permits, error) in DAYS {
        let day = Day::measure(accounts, permits, error);
        let table = exact::measure(accounts, permits);
        let most = 1.2 * error as f64 / 1e6;
        let is_kept = day.extra == 0 && day.early <= most && day.late <= most;
        holds &= is_kept;
        println!(
            "| {accounts} | {permits} | {:.2} % | {:.3} % | {:.3} % | {} | {:.2} | {:.0} | {:.1} | {:.0} \
             | {} |",
            error as f64 / 1e4,
            day.early * 100.0,
            day.late * 100.0,
            day.extra,
            day.bytes,
            day.nanoseconds,
            table.bytes,
            table.nanoseconds,
            if is_kept { "holds" } else { "BROKEN" }
        );
    }
    claim::tell();
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
