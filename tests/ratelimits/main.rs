//! The rate limits of a real Envoy, and their import by `diana import`: the same decision about each
//! request for the verdict *equal*, and for *stricter* or *looser* a first difference of this
//! direction.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that finds something else has failed; Envoy has its own clock"
)]

mod local;
mod service;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs, thread};

use diana_import::{Counting, ImportResult, Importer, ModelDecision, SourceFiles, SourceText};
use diana_replay::{PlainRequest, ReplayDecision, ReplayFleet};

/// Requests of a configuration.
const REQUESTS: usize = 10_000;

/// Some instant, in microseconds since 1970.
const BEGIN: u64 = 1_795_500_000_000_000;

/// How Diana compares with Envoy by the import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Equal,
    Stricter,
    Looser,
}

/// A configuration.
struct Case {
    /// Fields of the filter `local_ratelimit`, or descriptors of the service.
    filter: &'static str,
    /// The virtual host's and the route's own fields.
    host: &'static str,
    route: &'static str,
    verdict: Verdict,
    /// Whether the model of the object is the one of all requests.
    has_whole_model: bool,
}

/// The texts of a configuration.
struct Compared {
    name: String,
    seed: u64,
    /// The type of the filter after those of all filters, and its fields.
    filter: String,
    /// The file of the rate limit service.
    service: String,
    /// Its port.
    port: Option<u16>,
}

/// The bootstrap: a listener with the limit, and the service behind it.
fn bootstrap(case: &Case, compared: &Compared, ports: [u16; 2]) -> String {
    let Case { host, route, .. } = case;
    let [front, back] = ports;
    let kind = "type.googleapis.com/envoy.extensions.filters";
    let manager =
        format!("\"@type\": {kind}.network.http_connection_manager.v3.HttpConnectionManager");
    let router =
        format!("{{name: router, typed_config: {{\"@type\": {kind}.http.router.v3.Router}}}}");
    let address =
        |port: u16| format!("{{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}");
    let comma = |text: &str| if text.is_empty() { String::new() } else { format!(", {text}") };
    let (host, route) = (comma(host), comma(route));
    let virtual_host = format!(
        "{{name: shop, domains: ['*']{host}, routes: [{{name: login, match: {{prefix: /login}}, route: {{cluster: app{route}}}}}, \
         {{name: other, match: {{prefix: /}}, route: {{cluster: app}}}}]}}"
    );
    let limit =
        format!("{{name: limit, typed_config: {{\"@type\": {kind}.http.{}}}}}", compared.filter);
    let service = "{name: all, domains: ['*'], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}";
    let listener = |name: &str, port: u16, more: &str, virtual_host: &str, filters: &str| {
        format!(
            "{{name: {name}, address: {}, filter_chains: [{{filters: [{{name: hcm, typed_config: {{{manager}, stat_prefix: {name}{more}, \
             route_config: {{name: {name}, virtual_hosts: [{virtual_host}]}}, http_filters: [{filters}]}}}}]}}]}}",
            address(port)
        )
    };
    let trusted = ", use_remote_address: true, xff_num_trusted_hops: 1";
    let cluster = |name: &str, port: u16, more: &str| {
        format!(
            "{{name: {name}, connect_timeout: 60s{more}, load_assignment: {{cluster_name: {name}, endpoints: [{{lb_endpoints: \
             [{{endpoint: {{address: {}}}}}]}}]}}}}",
            address(port)
        )
    };
    let options = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let http2 = format!(
        ", typed_extension_protocol_options: {{envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {{\"@type\": {options}, \
         explicit_http_config: {{http2_protocol_options: {{}}}}}}}}"
    );
    let limits = compared.port.map(|port| format!(", {}", cluster("limits", port, &http2)));
    format!(
        "static_resources:\n  clusters: [{}{}]\n  listeners:\n  - {}\n  - {}\n",
        cluster("app", back, ""),
        limits.unwrap_or_default(),
        listener("main", front, trusted, &virtual_host, &format!("{limit}, {router}")),
        listener("service", back, "", service, &router),
    )
}

/// An Envoy that ends with the test.
struct Envoy(Child);

impl Drop for Envoy {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

struct NoFiles;

impl SourceFiles for NoFiles {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Err("no such file".into())
    }
}

fn ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn start(folder: &Path, text: &str) -> Envoy {
    fs::create_dir_all(folder).unwrap();
    let file = folder.join("envoy.yaml");
    fs::write(&file, text).unwrap();
    let binary = env::var("DIANA_ENVOY").expect("DIANA_ENVOY is the path of an Envoy");
    let words = ["--concurrency", "1", "--disable-hot-restart", "-l", "error", "-c"];
    Envoy(Command::new(binary).args(words).arg(file).spawn().unwrap())
}

/// A connection, as soon as there is one.
fn connect(envoy: &mut Envoy, port: u16) -> TcpStream {
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            return stream;
        }
        assert!(envoy.0.try_wait().unwrap().is_none(), "Envoy ended");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A generated request.
fn request(rng: &mut fastrand::Rng, number: usize) -> PlainRequest {
    let plans = [None, Some("free"), Some("gold"), Some("silver")];
    let users = [None, Some("ada"), Some("eve"), Some("bob"), Some("joe")];
    let paths = ["/", "/login", "/login/x?q=z", "/page?q=a", "/page?q=z&r=1"];
    let header = |name: &str, value: Option<&str>| Some((name.to_owned(), value?.to_owned()));
    let headers = [("x-plan", plans[rng.usize(0..4)]), ("x-user", users[rng.usize(0..5)])];
    let path = paths[rng.usize(0..paths.len())];
    let route = if path.starts_with("/login") { "login" } else { "other" };
    PlainRequest {
        at: BEGIN + number as u64,
        took: 0,
        status: 200,
        address: Some(IpAddr::V4(Ipv4Addr::new(198, 51, 100, rng.u8(1..5)))),
        host: Some("shop.example.com".into()),
        method: if rng.bool() { "GET" } else { "POST" }.into(),
        path: path.into(),
        route: Some(route.into()),
        headers: headers.into_iter().filter_map(|(name, value)| header(name, value)).collect(),
    }
}

fn written(request: &PlainRequest) -> String {
    let mut text =
        format!("{} {} HTTP/1.1\r\nhost: shop.example.com\r\n", request.method, request.path);
    text += &format!("x-forwarded-for: {}\r\n", request.address.unwrap());
    for (name, value) in &request.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n"
}

/// The status of a response.
fn status(reader: &mut BufReader<TcpStream>) -> u16 {
    let (mut status, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the connection ended");
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        status = status.or_else(|| line.split(' ').nth(1)?.parse().ok());
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    status.unwrap()
}

fn imported(text: &str) -> ImportResult {
    let mut importer = Importer::new(None);
    importer.read(&SourceText { name: "envoy.yaml".into(), text: text.into() }, &NoFiles);
    importer.finish(Counting::PerGateway)
}

/// The verdict about all rules and objects together.
fn verdict(result: &ImportResult) -> BTreeSet<&'static str> {
    let rules = result.entries.iter().flat_map(|entry| &entry.rules);
    let rules = rules.map(|rule| rule.comparison.as_ref().expect("a comparison"));
    let all = rules.chain(result.objects.iter().map(|object| &object.comparison));
    let words = all.flat_map(|it| {
        [it.stricter.as_ref().map(|_| "stricter"), it.looser.as_ref().map(|_| "looser")]
    });
    words.flatten().collect()
}

/// Sends requests to Envoy, and compares its decisions with those of the import.
fn compare(case: &Case, compared: &Compared) {
    let ports = ports();
    let number = &compared.name;
    let text = bootstrap(case, compared, ports);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(number);
    let mut envoy = start(&folder, &text);
    let mut result = imported(&format!("{text}---\n{}", compared.service));
    let expected: BTreeSet<_> = match case.verdict {
        Verdict::Equal => BTreeSet::new(),
        Verdict::Stricter => ["stricter"].into(),
        Verdict::Looser => ["looser"].into(),
    };
    let document = result.document.clone();
    assert_eq!(verdict(&result), expected, "{number}\n{document}");
    // One gateway counts in its own memory.
    let text = document.replace(", scope: global", "");
    let policy = diana_config::Reader::default().policy(text.as_bytes()).unwrap();
    let mut fleet = ReplayFleet::<PlainRequest>::new(&policy, 1, 1).unwrap();
    let mut model = case.has_whole_model.then(|| result.objects.remove(0).model);
    if let Some(model) = &mut model {
        model.reset();
    }
    connect(&mut envoy, ports[1]);
    let mut stream = connect(&mut envoy, ports[0]);
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut rng = fastrand::Rng::with_seed(compared.seed);
    let (mut admitted, mut differences) = ([0; 2], 0);
    // One after the other: Envoy closes a connection on which more wait behind a refused one.
    for sent in 0..REQUESTS {
        let request = request(&mut rng, sent);
        stream.write_all(written(&request).as_bytes()).unwrap();
        let status = status(&mut reader);
        assert!(matches!(status, 200 | 429), "{status}");
        let passes = status == 200;
        if let Some(model) = &mut model {
            let decided = model.decide(&request) == ModelDecision::Passes;
            assert_eq!(decided, passes, "{number}, {sent} by the model: {request:?}");
        }
        let request = Rc::new(request);
        let ours = matches!(fleet.request(&request), ReplayDecision::Admitted);
        // A difference has consequences in both directions.
        let is_allowed = match case.verdict {
            _ if differences > 0 => true,
            Verdict::Equal => ours == passes,
            Verdict::Stricter => passes || !ours,
            Verdict::Looser => ours || !passes,
        };
        assert!(
            is_allowed,
            "{number}, {sent}: Envoy {status}, Diana admits: {ours}: {request:?}\n{document}"
        );
        admitted[usize::from(passes)] += 1;
        differences += usize::from(ours != passes);
    }
    println!("{number}: {admitted:?} refused, admitted; {differences} differ");
    // All requests pay the last bucket of a whole model, so that it hides the charges of others.
    if !case.has_whole_model {
        assert_eq!(differences > 0, case.verdict != Verdict::Equal, "{number}");
    }
}
