//! Random histories: workers start and end, the server changes, responses are late.

use fastrand::Rng;

use super::{EVERY, Gateway, LOCAL, MILLISECOND, SECOND, Server, document};
use kit::seed;

/// The next behaviour of the server. The number of a valid document only grows.
fn next(random: &mut Rng, number: &mut usize) -> Server {
    match random.u8(0..10) {
        0 => Server::Responds(*random.choice(&[204, 301, 404, 500, 503, 504]).unwrap()),
        1 => Server::BreaksOff,
        2 => Server::IsSilent,
        3 => Server::IsLost,
        4 => Server::CannotBeCalled,
        5 => Server::Serves(document("Bad Name")),
        6 => Server::Serves(" ".into()),
        _ => {
            *number += 1;
            Server::Serves(document(&format!("r{number}")))
        }
    }
}

/// The number of the current rule. 0 for the gateway's own.
fn number(rule: &str) -> usize {
    rule.strip_prefix('r').map_or(0, |number| number.parse().unwrap())
}

#[test]
fn workers_converge_on_the_last_good_rules() {
    let mut random = Rng::with_seed(seed::next());
    for _ in 0..12 {
        let mut last = 0;
        let server = next(&mut random, &mut last);
        let mut gateway = Gateway::new(random.usize(1..6), LOCAL, server);
        let mut changes = 1;
        for _ in 0..30 {
            let before: Vec<usize> = gateway.rules().into_iter().map(number).collect();
            gateway.run(random.u64(MILLISECOND..2 * EVERY));
            let after: Vec<usize> = gateway.rules().into_iter().map(number).collect();
            assert!(before.iter().zip(&after).all(|(before, after)| before <= after), "{after:?}");
            assert!(after.iter().all(|&number| number <= last), "{after:?}");
            match random.u8(0..8) {
                0 if gateway.workers.len() > 1 => {
                    let at = random.usize(0..gateway.workers.len());
                    gateway.workers.swap_remove(at);
                }
                1 if gateway.workers.len() > 1 && random.bool() => {
                    let leader = gateway.leader();
                    gateway.workers.swap_remove(leader);
                }
                2 => {
                    let config = if random.bool() { LOCAL.into() } else { other(&mut random) };
                    gateway.start(&config);
                }
                3 => gateway.data.clear(),
                _ => {
                    gateway.server = next(&mut random, &mut last);
                    changes += 1;
                }
            }
        }
        let lines = gateway.lines().len();
        // A new leader may repeat a line, and an invalid document takes two lines.
        assert!(lines <= 2 * (changes + 30), "{lines} lines for {changes} changes");
        last += 1;
        gateway.serve(&format!("r{last}"));
        // Includes the timeout of a call without a response.
        gateway.run(EVERY + 4 * SECOND);
        assert_eq!(gateway.rules(), vec![format!("r{last}"); gateway.workers.len()]);
        let calls = gateway.calls();
        gateway.run(10 * EVERY);
        assert!(gateway.calls() - calls <= 100 / 2 + 1, "one asks: {}", gateway.calls() - calls);
    }
}

/// A configuration with the same document and other settings.
fn other(random: &mut Rng) -> String {
    format!("{}, every: {}s}}", LOCAL.trim_end_matches('}'), random.u8(2..10))
}
