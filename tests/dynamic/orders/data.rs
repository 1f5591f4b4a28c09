//! The data of a process: a worker's write succeeds if there is no value, or the one that the worker has read last.

use std::cell::Cell;

use diana_native::explored::{self, Module};
use diana_policy::port::SharedData as _;
use kit::choices::{Tried, try_all};

use super::depth;

const WORKERS: usize = 2;

#[test]
fn no_write_of_another_worker_is_lost() {
    let module: &'static Module = Box::leak(Box::default());
    let (data, names) = (explored::data(module), Cell::new(0));
    let Tried { worlds, .. } = try_all(1..=2 * depth(), |acts, choices| {
        names.set(names.get() + 1);
        let name = names.get().to_string();
        // The number of the latest write, and what each worker has read.
        let (mut latest, mut read) = (0, [(0, None); WORKERS]);
        for act in 1..=acts {
            let worker = choices.pick(WORKERS);
            if choices.pick(2) == 0 {
                let (bytes, number) = data.get(&name).unzip();
                assert_eq!(
                    bytes,
                    Some(vec![latest as u8]).filter(|_| latest > 0),
                    "the latest write"
                );
                read[worker] = (latest, number);
            } else {
                let is_written = data.swap(&name, &[act as u8], read[worker].1);
                assert_eq!(is_written, latest == 0 || read[worker].0 == latest, "act {act}");
                latest = if is_written { act } else { latest };
            }
        }
    });
    println!("tried: {worlds} sequences");
}
