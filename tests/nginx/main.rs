//! The model of nginx against nginx itself: the same decision about each request.
//!
//! All requests of a configuration are on one connection. So `$connection_time` is nginx's own
//! clock, by which it counts, and no time of sending matters.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that finds something else has failed; nginx has its own clock, which must move"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use std::{fs, thread};

use diana_import::{Counting, Importer, LimiterModel, ModelDecision, SourceFiles, SourceText};
use diana_replay::PlainRequest;

/// Requests of a configuration, and those that are sent at once at most.
const REQUESTS: u64 = 10_000;
const AT_ONCE: u64 = 25;

/// Some instant, in milliseconds since 1970.
const BEGIN: u64 = 1_795_500_000_000;

/// The zones and the limits of the configurations.
const CONFIGURATIONS: [(&str, &str); 31] = [
    ("rate=1r/s", "zone=a"),
    ("rate=1r/s", "zone=a burst=1 nodelay"),
    ("rate=4r/s", "zone=a burst=8 nodelay"),
    ("rate=10r/s", "zone=a burst=50 nodelay"),
    ("rate=12r/s", "zone=a burst=12 nodelay"),
    ("rate=100r/s", "zone=a"),
    ("rate=100r/s", "zone=a burst=20 nodelay"),
    ("rate=333r/s", "zone=a burst=3 nodelay"),
    ("rate=500r/s", "zone=a burst=2500 nodelay"),
    ("rate=997r/s", "zone=a burst=5 nodelay"),
    ("rate=1000r/s", "zone=a"),
    ("rate=1000r/s", "zone=a burst=1 nodelay"),
    ("rate=2000r/s", "zone=a burst=100 nodelay"),
    ("rate=9999r/s", "zone=a burst=7 nodelay"),
    ("rate=1r/m", "zone=a burst=5 nodelay"),
    ("rate=10r/m", "zone=a burst=50 nodelay"),
    ("rate=100r/m", "zone=a burst=500 nodelay"),
    ("rate=200r/m", "zone=a burst=100 nodelay"),
    ("rate=3333r/m", "zone=a burst=10 nodelay"),
    ("rate=59999r/m", "zone=a burst=3 nodelay"),
    ("rate=60001r/m", "zone=a burst=40 nodelay"),
    ("rate=100000r/m", "zone=a burst=1 nodelay"),
    ("rate=400r/s", "zone=a burst=10"),
    ("rate=1000r/s", "zone=a burst=10"),
    ("rate=1000r/s", "zone=a burst=10 delay=3"),
    ("rate=60001r/m", "zone=a burst=5 delay=5"),
    ("rate=100r/s", "zone=a burst=20 nodelay; limit_req zone=b burst=400 nodelay"),
    ("rate=300r/s", "zone=b burst=5 nodelay; limit_req zone=a burst=30 nodelay"),
    ("rate=59r/s", "zone=a burst=5 nodelay; limit_req zone=b"),
    ("rate=777r/s", "zone=a burst=9 delay=2; limit_req zone=b burst=90"),
    ("rate=50r/s", "zone=text burst=8 nodelay"),
];

/// An nginx that ends with the test.
struct Nginx {
    child: Child,
    port: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

struct NoFiles;

impl SourceFiles for NoFiles {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Err("no such file".into())
    }
}

fn limits(rate: &str, limit: &str) -> String {
    format!(
        "limit_req_zone $http_x_key zone=a:10m {rate};\n\
         limit_req_zone $http_x_other zone=b:10m rate=200r/s;\n\
         limit_req_zone user-$http_x_key zone=text:10m {rate};\n\
         server {{\n  listen 127.0.0.1:PORT;\n  location / {{\n    limit_req {limit};\n    \
         set $arrival $connection_time;\n    add_header x-arrival $arrival always;\n    \
         add_header x-decided $limit_req_status always;\n    empty_gif;\n  }}\n}}\n"
    )
}

fn start(folder: &Path, limits: &str) -> Nginx {
    _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let limits = limits.replace("PORT", &port.to_string());
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path temp;\n"))
        .collect();
    let text = format!(
        "daemon off;\nmaster_process off;\npid pid;\nerror_log error.log crit;\nevents {{}}\nhttp {{\n\
         access_log off;\nkeepalive_requests 1000000;\n{paths}{limits}}}\n"
    );
    fs::write(folder.join("nginx.conf"), text).unwrap();
    let child = Command::new("nginx")
        .args(["-p", folder.to_str().unwrap(), "-c", "nginx.conf", "-e", "error.log"])
        .spawn()
        .unwrap();
    Nginx { child, port }
}

/// A connection, as soon as there is one.
fn connect(nginx: &mut Nginx) -> TcpStream {
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", nginx.port)) {
            return stream;
        }
        assert!(nginx.child.try_wait().unwrap().is_none(), "nginx ended");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The model of a configuration.
fn model(limits: &str) -> Box<dyn LimiterModel> {
    let mut importer = Importer::new(None);
    importer.read(&SourceText { name: "nginx.conf".into(), text: limits.into() }, &NoFiles);
    let mut result = importer.finish(Counting::PerGateway);
    match result.objects.pop() {
        Some(object) => object.model,
        None => result.entries.remove(0).rules.remove(0).model.unwrap(),
    }
}

/// The arrival in milliseconds of the connection, and nginx's word for the decision.
fn response(reader: &mut BufReader<TcpStream>) -> (u64, String) {
    let (mut arrival, mut decided, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the connection ended");
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name {
            "x-arrival" => arrival = value.replace('.', ""),
            "x-decided" => decided = value.into(),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    (arrival.parse().unwrap(), decided)
}

fn request(at: u64, keys: [Option<u64>; 2]) -> PlainRequest {
    let names = ["x-key", "x-other"].into_iter().zip(keys);
    let headers = names.filter_map(|(name, key)| Some((name.into(), format!("caller-{}", key?))));
    PlainRequest {
        at: (BEGIN + at) * 1000,
        took: 0,
        status: 200,
        address: None,
        host: None,
        method: "GET".into(),
        path: "/".into(),
        route: None,
        headers: headers.collect(),
    }
}

#[test]
#[ignore = "needs nginx: `make test-all`, or `cargo test --test nginx -- --ignored`"]
fn model_decides_as_nginx() {
    for (number, (rate, limit)) in CONFIGURATIONS.into_iter().enumerate() {
        let limits = limits(rate, limit);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{number}"));
        let mut nginx = start(&folder, &limits);
        let mut model = model(&limits);
        // It has decided about generated requests.
        model.reset();
        let mut stream = connect(&mut nginx);
        stream.set_nodelay(true).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut rng = fastrand::Rng::with_seed(number as u64);
        let (mut counts, mut sent) = ([0; 3], 0);
        while sent < REQUESTS {
            let batch: Vec<[Option<u64>; 2]> = (0..rng.u64(1..=AT_ONCE))
                .map(|_| {
                    let key = rng.u64(0..10);
                    [(key > 0).then_some(key % 4), (key < 9).then_some(key % 2)]
                })
                .collect();
            let mut text = String::new();
            for keys in &batch {
                text.push_str("GET / HTTP/1.1\r\nhost: a\r\n");
                for (name, value) in request(0, *keys).headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str("\r\n");
            }
            stream.write_all(text.as_bytes()).unwrap();
            for keys in &batch {
                let (at, decided) = response(&mut reader);
                let expected = match model.decide(&request(at, *keys)) {
                    ModelDecision::Passes => 0,
                    ModelDecision::Waits(_) => 1,
                    ModelDecision::Refused => 2,
                };
                let found = match decided.as_str() {
                    // Without a key nginx makes no decision.
                    "passed" | "" => 0,
                    "delayed" => 1,
                    "rejected" => 2,
                    other => panic!("{other}"),
                };
                assert_eq!(found, expected, "{rate}, {limit}, request {sent} at {at} ms: {keys:?}");
                counts[found] += 1;
                sent += 1;
            }
            if rng.bool() {
                thread::sleep(Duration::from_millis(rng.u64(0..6)));
            }
        }
        println!("{rate}, {limit}: {counts:?} passed, delayed, rejected");
        assert!(counts[0] > 0, "{counts:?}");
    }
}
