//! Prints the time that Redis takes for a call of the script, and for each request in the call.
//!
//! Calls use a new connection with a password, like those of gateways, or a persistent connection, like those of Envoy's proxy.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use diana_algorithm::REGISTRY;
use diana_policy::Quota;
use diana_policy::time::Unit;
use diana_redis::protocol::resp::values;
use diana_redis::protocol::{Login, Pipeline};

use kit::rules::{Rule, pipeline};
use kit::server::Server;

/// Requests in a large call.
const REQUESTS: u64 = 64;
const ROUNDS: u32 = 1000;

fn main() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = address.port().to_string();
    let user = ["--user", "gateway", "on", ">word", "~*", "+@all"];
    let server = Server::with(&[&["--port", &port, "--bind", "127.0.0.1"][..], &user].concat());
    println!("| connection | algorithm | µs of a call | µs of each request |");
    println!("| --- | --- | ---: | ---: |");
    for entry in REGISTRY.iter().filter(|entry| entry.codec.is_some()) {
        let rule = Rule::new(entry.short, Quota::new(Unit::Second, 1_000_000));
        let charges = |count| (0..count).map(|caller| rule.charge(caller, 1, 100)).collect();
        let [one, many] = [1, REQUESTS].map(|count| pipeline(None, charges(count)));
        let [username, password] = ["gateway", "word"].map(|word| Some(word.into()));
        let login = Login { username, password, db: 0 };
        let new = |pipeline: &Pipeline| call(&connect(&address), &pipeline.encode(&login), 3);
        let stream = connect(&address);
        call(&stream, b"*3\r\n$4\r\nAUTH\r\n$7\r\ngateway\r\n$4\r\nword\r\n", 1);
        let kept = |pipeline: &Pipeline| {
            let body = pipeline.encode(&Login::default());
            call(&stream, body.strip_suffix(b"*1\r\n$4\r\nQUIT\r\n").unwrap(), 1);
        };
        for (connection, send) in [("new", &new as &dyn Fn(&Pipeline)), ("kept", &kept)] {
            let [one, many] = [&one, &many].map(|pipeline| time(&server, send, pipeline));
            let each = (many - one) / (REQUESTS - 1) as f64;
            println!("| {connection} | {} | {:.1} | {each:.1} |", entry.short, one - each);
        }
    }
}

fn connect(address: &SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends commands and reads their replies.
fn call(mut stream: &TcpStream, commands: &[u8], replies: usize) {
    stream.write_all(commands).unwrap();
    let (mut back, mut part) = (Vec::new(), [0; 65_536]);
    while values(&back).is_none_or(|values| values.len() < replies) {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&back));
        back.extend(&part[..count]);
    }
}

/// Microseconds of processor time that Redis takes for a call.
fn time(server: &Server, send: &dyn Fn(&Pipeline), pipeline: &Pipeline) -> f64 {
    server.command(&["FLUSHALL"]);
    // Loads the script, and fails if Redis does not decide.
    server.decide(pipeline);
    let spent = || {
        let info = server.command(&["INFO", "cpu"]);
        let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let names = ["used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"];
        names.iter().map(|name| line(name).parse::<f64>().unwrap() * 1e6).sum::<f64>()
    };
    let began = spent();
    (0..ROUNDS).for_each(|_| send(pipeline));
    (spent() - began) / f64::from(ROUNDS)
}
