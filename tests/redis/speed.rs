//! How much one Redis decides; printed, and held against what is needed by far less only.
//!
//! Calls come as those of gateways do: each on a connection of its own, with a password.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use diana_core::policy::Quota;
use diana_core::redis::protocol::{Login, ScriptAnswer, Trip};
use diana_core::time::Unit;

use kit::rules::{Rule, ask_of, trip_of};
use kit::server::Server;

const ASKS: u64 = 500;
const ROUNDS: u64 = 200;

#[test]
fn an_ask_takes_microseconds() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = port.to_string();
    let user = ["--user", "gateway", "on", ">word", "~*", "+@all"];
    let listen = ["--port", &port, "--bind", "127.0.0.1"];
    let server = Server::with(&[&listen[..], &user].concat());
    let rule = |short: &str| Rule::new(short, Quota::new(Unit::Second, 1_000_000));
    let overhead = time(&server, &port, &[], 0, 1);
    let one = time(&server, &port, &[rule("TB")], 1, ASKS);
    let more = time(&server, &port, &[rule("TB")], 16, ASKS);
    let each = (more - one) / 15.0;
    println!("no ask: {overhead:.1} µs; a call: {:.1} µs and {each:.1} µs an ask", one - each);
    for (name, shorts, callers) in [
        ("W, one caller", &["W"][..], 1),
        ("W", &["W"], ASKS),
        ("SW", &["SW"], ASKS),
        ("TB", &["TB"], ASKS),
        ("LB", &["LB"], ASKS),
        ("W, SW, TB", &["W", "SW", "TB"], ASKS),
    ] {
        let mut rules: Vec<Rule> = shorts.iter().map(|short| rule(short)).collect();
        (0..).zip(&mut rules).for_each(|(fingerprint, rule)| rule.fingerprint = fingerprint);
        let each = (time(&server, &port, &rules, ASKS, callers) - overhead) / ASKS as f64;
        println!("{name}: {each:.2} µs an ask of {ASKS}");
        assert!(each < 200.0, "{name} takes {each} µs");
    }
}

/// Microseconds of its one processor that Redis takes for a trip.
fn time(server: &Server, port: &str, rules: &[Rule], asks: u64, callers: u64) -> f64 {
    let ask = |number| {
        let charge = |rule: &Rule| rule.charge(number % callers, 1, 100);
        ask_of(0, rules.iter().map(charge).collect())
    };
    let trip = trip_of(None, (0..asks).map(ask).collect());
    server.command(&["FLUSHALL"]);
    server.decide(&trip);
    let began = processor(server);
    (0..ROUNDS).for_each(|_| call(port, &trip));
    (processor(server) - began) / ROUNDS as f64
}

/// One call that is answered.
fn call(port: &str, trip: &Trip) {
    let [username, password] = ["gateway", "word"].map(|word| Some(word.into()));
    let login = Login { username, password, db: 0 };
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.write_all(&trip.pipeline(&login)).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    let Ok(ScriptAnswer::Decided(decided)) = trip.answers(&login, &back).remove(0) else {
        panic!("{back:?}")
    };
    assert_eq!(decided.asks.len(), trip.calls[0].asks.len());
}

fn processor(server: &Server) -> f64 {
    let info = server.command(&["INFO", "cpu"]);
    let spent = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse::<f64>().unwrap() * 1e6
    };
    spent("used_cpu_user_main_thread:") + spent("used_cpu_sys_main_thread:")
}
