//! Measures and prints the time that Redis takes for a decision.
//!
//! Calls use a new connection with a password, like those of gateways, or a persistent connection,
//! like those of Envoy's proxy.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use diana_policy::Quota;
use diana_policy::time::Unit;
use diana_redis::protocol::resp::values;
use diana_redis::protocol::{Login, ScriptAnswer, Trip};

use kit::rules::{Rule, ask_of, trip_of};
use kit::server::Server;

const ASKS: u64 = 500;
const ROUNDS: u64 = 200;

fn main() {
    an_ask_takes_microseconds();
    an_ask_takes_as_long_on_shards();
}

/// Sends a call.
type Way<'w> = &'w dyn Fn(&Trip);

fn an_ask_takes_microseconds() {
    let (server, port) = start();
    let direct: Way = &|trip| call(&port, trip);
    let stream = kept(&port);
    let kept: Way = &|trip| call_on(&stream, trip);
    let mut overhead = 0.0;
    for (name, way) in [("kept connection", kept), ("new connection", direct)] {
        overhead = time(&server, way, &[], 0, 1);
        let one = time(&server, way, &[rule("TB")], 1, ASKS);
        let more = time(&server, way, &[rule("TB")], 16, ASKS);
        let each = (more - one) / 15.0;
        let first = one - each;
        println!("{name}, no ask: {overhead:.1} µs; a call: {first:.1} µs and {each:.1} µs an ask");
    }
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
        let each = (time(&server, direct, &rules, ASKS, callers) - overhead) / ASKS as f64;
        println!("{name}: {each:.2} µs an ask of {ASKS}");
    }
}

/// With fewer processors than shards, caches are cold if successive calls go to different shards,
/// and warm if they go to the same shard.
fn an_ask_takes_as_long_on_shards() {
    let trip = trip(&[rule("TB")], 16, 16);
    let calls = 16 * ROUNDS as usize;
    for count in [1, 2, 4] {
        let shards: Vec<_> = (0..count).map(|_| start()).collect();
        let streams: Vec<_> = shards.iter().map(|(_, port)| kept(port)).collect();
        shards.iter().for_each(|(server, _)| drop(server.decide(&trip)));
        let spent = || shards.iter().map(|(server, _)| processor(server)).sum::<f64>();
        let each = |shard: &dyn Fn(usize) -> usize| {
            let began = spent();
            (0..calls).for_each(|number| call_on(&streams[shard(number)], &trip));
            (spent() - began) / (16 * calls) as f64
        };
        let in_turn = each(&|number| number % count);
        let after = each(&|number| number * count / calls);
        println!(
            "{count} shards: {after:.1} µs an ask of 16, {in_turn:.1} if all are called in turn"
        );
    }
}

/// A Redis with a user, and its port.
fn start() -> (Server, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = port.to_string();
    let user = ["--user", "gateway", "on", ">word", "~*", "+@all"];
    let listen = ["--port", &port, "--bind", "127.0.0.1"];
    (Server::with(&[&listen[..], &user].concat()), port)
}

fn rule(short: &str) -> Rule {
    Rule::new(short, Quota::new(Unit::Second, 1_000_000))
}

fn trip(rules: &[Rule], asks: u64, callers: u64) -> Trip {
    let ask = |number| {
        let charge = |rule: &Rule| rule.charge(number % callers, 1, 100);
        ask_of(0, rules.iter().map(charge).collect())
    };
    trip_of(None, (0..asks).map(ask).collect())
}

/// Microseconds of processor time that Redis takes for a batch.
fn time(server: &Server, way: Way, rules: &[Rule], asks: u64, callers: u64) -> f64 {
    let trip = trip(rules, asks, callers);
    server.command(&["FLUSHALL"]);
    server.decide(&trip);
    let began = processor(server);
    (0..ROUNDS).for_each(|_| way(&trip));
    (processor(server) - began) / ROUNDS as f64
}

/// One call with its reply, on a new connection.
fn call(port: &str, trip: &Trip) {
    let login = login();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.write_all(&trip.pipeline(&login)).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    is_answered(trip, &login, &back);
}

/// One call with its reply, on a persistent connection.
fn call_on(mut kept: &TcpStream, trip: &Trip) {
    let body = trip.pipeline(&Login::default());
    kept.write_all(body.strip_suffix(b"*1\r\n$4\r\nQUIT\r\n").unwrap()).unwrap();
    let mut back = Vec::new();
    let mut some = [0; 65_536];
    while values(&back).is_none_or(|values| values.is_empty()) {
        let count = kept.read(&mut some).unwrap();
        back.extend(&some[..count]);
    }
    back.extend(b"+OK\r\n");
    is_answered(trip, &Login::default(), &back);
}

/// An authenticated connection.
fn kept(port: &str) -> TcpStream {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(b"*3\r\n$4\r\nAUTH\r\n$7\r\ngateway\r\n$4\r\nword\r\n").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    stream
}

fn login() -> Login {
    let [username, password] = ["gateway", "word"].map(|word| Some(word.into()));
    Login { username, password, db: 0 }
}

fn is_answered(trip: &Trip, login: &Login, back: &[u8]) {
    let Ok(ScriptAnswer::Decided(decided)) = trip.answers(login, back).remove(0) else {
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
