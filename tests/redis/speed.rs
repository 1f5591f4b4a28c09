//! How much one Redis decides; printed, and held against what is needed by far less only.

use diana::fleet::script::Ask;
use diana::quota::Quota;
use diana::time::Unit;

use crate::rules::{Rule, trip_of};
use crate::server::Server;

const ASKS: u64 = 500;
const ROUNDS: u64 = 50;

#[test]
fn an_ask_takes_microseconds() {
    let server = Server::start();
    let rule = |short: &str| Rule::new(short, Quota::new(Unit::Second, 1_000_000));
    let overhead = time(&server, &[], 0, 1);
    println!("no ask: {overhead:.1} µs");
    for (name, shorts, callers) in [
        ("W, one caller", &["W"][..], 1),
        ("W", &["W"], ASKS),
        ("SW", &["SW"], ASKS),
        ("TB", &["TB"], ASKS),
        ("LB", &["LB"], ASKS),
        ("W, SW, TB", &["W", "SW", "TB"], ASKS),
    ] {
        let mut rules: Vec<Rule> = shorts.iter().map(|short| rule(short)).collect();
        (0..).zip(&mut rules).for_each(|(identity, rule)| rule.identity = identity);
        let each = (time(&server, &rules, ASKS, callers) - overhead) / ASKS as f64;
        println!("{name}: {each:.2} µs an ask");
        assert!(each < 200.0, "{name} takes {each} µs");
    }
}

/// Microseconds of its one processor that Redis takes for a trip.
fn time(server: &Server, rules: &[Rule], asks: u64, callers: u64) -> f64 {
    let ask = |number| Ask {
        delay: 0,
        rules: rules.iter().map(|rule| rule.charge(number % callers, 1, 100)).collect(),
    };
    let trip = trip_of(None, (0..asks).map(ask).collect());
    server.command(&["FLUSHALL"]);
    server.decide(&trip);
    let began = processor(server);
    (0..ROUNDS).for_each(|_| assert_eq!(server.decide(&trip).asks.len() as u64, asks));
    (processor(server) - began) / ROUNDS as f64
}

fn processor(server: &Server) -> f64 {
    let info = server.command(&["INFO", "cpu"]);
    let spent = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse::<f64>().unwrap() * 1e6
    };
    spent("used_cpu_user_main_thread:") + spent("used_cpu_sys_main_thread:")
}
