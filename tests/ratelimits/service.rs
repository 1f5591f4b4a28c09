//! envoyproxy/ratelimit, which counts for Envoy, with a Redis. Windows are so long that none ends during
//! a test: the counts, the charges of a refusal and the requests that share them are compared.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};

use crate::{Case, Compared, Verdict, compare, ports};

const CASES: [Case; 21] = [
    // All requests.
    Case {
        filter: "[{key: generic_key, value: all, rate_limit: {LIMIT: 4000}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: all}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // None.
    Case {
        filter: "[{key: generic_key, rate_limit: {LIMIT: 0}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: all}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Each address.
    Case {
        filter: "[{key: remote_address, rate_limit: {LIMIT: 600}}]",
        host: "rate_limits: [{actions: [{remote_address: {}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // One plan, a plan without limit, and the others.
    Case {
        filter: "[{key: plan, rate_limit: {LIMIT: 300}}, {key: plan, value: gold, rate_limit: {LIMIT: 1000}}, {key: plan, value: silver, rate_limit: {unlimited: true}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Users of a plan; those of another one have none, although all plans have.
    Case {
        filter: "[{key: plan, value: free, descriptors: [{key: user, rate_limit: {LIMIT: 70}}]}, {key: plan, value: gold, descriptors: [{key: other, rate_limit: {LIMIT: 1}}]}, {key: plan, descriptors: [{key: user, rate_limit: {LIMIT: 200}}]}]",
        host: "",
        route: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}, {request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A descriptor of another depth has no limit.
    Case {
        filter: "[{key: plan, rate_limit: {LIMIT: 400}, descriptors: [{key: user, value: eve, rate_limit: {LIMIT: 50}}]}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}, {request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    Case {
        filter: "[{key: plan, rate_limit: {LIMIT: 400}, descriptors: [{key: user, value: eve, rate_limit: {LIMIT: 50}}]}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}, {request_headers: {header_name: x-user, descriptor_key: user, skip_if_absent: true}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A pattern, with a count for each value, and with one count.
    Case {
        filter: "[{key: user, value: 'a*', rate_limit: {LIMIT: 500}}, {key: user, value: ada, rate_limit: {LIMIT: 900}}, {key: user, value: 'e*', rate_limit: {LIMIT: 100}}, {key: user, rate_limit: {LIMIT: 300}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    Case {
        filter: "[{key: user, value: '*', share_threshold: true, rate_limit: {LIMIT: 1500}}, {key: user, rate_limit: {LIMIT: 1}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // In shadow mode.
    Case {
        filter: "[{key: user, shadow_mode: true, rate_limit: {LIMIT: 10}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A request counts under both limits, also if one refuses it.
    Case {
        filter: "[\n  {key: user, rate_limit: {LIMIT: 1000}},\n  {key: plan, rate_limit: {LIMIT: 1200}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}, {actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}]}]",
        route: "",
        verdict: Verdict::Looser,
        has_whole_model: true,
    },
    // One limit in place of another one.
    Case {
        filter: "[{key: plan, value: gold, rate_limit: {LIMIT: 1500, replaces: [{name: all}]}}, {key: generic_key, value: all, rate_limit: {LIMIT: 2000, name: all}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: all}}]}, {actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // An unlimited one in place of another one.
    Case {
        filter: "[{key: user, value: eve, rate_limit: {unlimited: true, replaces: [{name: all}]}}, {key: generic_key, value: all, rate_limit: {LIMIT: 2000, name: all}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: all}}]}, {actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // The requests of a method and a plan, and the others.
    Case {
        filter: "[{key: header_match, value: post, rate_limit: {LIMIT: 1000}}, {key: other, value: b, rate_limit: {LIMIT: 1500}}]",
        host: "rate_limits: [{actions: [{header_value_match: {descriptor_value: post, headers: [{name: ':method', string_match: {exact: POST}}, {name: x-plan, string_match: {exact: gold}}]}}]}, {actions: [{header_value_match: {descriptor_key: other, descriptor_value: b, expect_match: false, headers: [{name: ':method', string_match: {exact: POST}}, {name: x-plan, string_match: {exact: gold}}]}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // The rate limits of the virtual host are not those of a route that has its own.
    Case {
        filter: "[{key: generic_key, value: host, rate_limit: {LIMIT: 1000}}, {key: generic_key, value: route, rate_limit: {LIMIT: 500}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: host}}]}]",
        route: "rate_limits: [{actions: [{generic_key: {descriptor_value: route}}]}]",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Both, at one of the routes: that of the virtual host is one count.
    Case {
        filter: "[\n  {key: generic_key, value: host, rate_limit: {LIMIT: 2500}},\n  {key: generic_key, value: route, rate_limit: {LIMIT: 500}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: host}}]}]",
        route: "include_vh_rate_limits: true, rate_limits: [{actions: [{generic_key: {descriptor_value: route}}]}]",
        verdict: Verdict::Looser,
        has_whole_model: false,
    },
    // Several routes make one descriptor.
    Case {
        filter: "[{key: remote_address, rate_limit: {LIMIT: 900}}]",
        host: "rate_limits: [{actions: [{remote_address: {}}]}]",
        route: "rate_limits: [{actions: [{remote_address: {}}]}]",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // The cost of a request, which Envoy does not read here.
    Case {
        filter: "[{key: plan, value: gold, rate_limit: {LIMIT: 1000}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}], hits_addend: {number: 3}}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Here it does.
    Case {
        filter: "[{key: plan, value: gold, rate_limit: {LIMIT: 1000}}]",
        host: "typed_per_filter_config: {limit: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute, rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}], hits_addend: {number: 3}}]}}",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Another stage, which the filter does not have, and a key that no runtime switches off.
    Case {
        filter: "[{key: generic_key, value: none, rate_limit: {LIMIT: 1}}, {key: generic_key, value: some, rate_limit: {LIMIT: 3000}}]",
        host: "rate_limits: [{stage: 1, actions: [{generic_key: {descriptor_value: none}}]}, {disable_key: never, actions: [{generic_key: {descriptor_value: some}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A method, and each path.
    Case {
        filter: "[{key: method, value: POST, descriptors: [{key: host, rate_limit: {LIMIT: 2000}}]}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: ':method', descriptor_key: method}}, {request_headers: {header_name: ':authority', descriptor_key: host}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
];

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Waits until the day has ten more minutes, so that its window does not end during the test.
fn wait_for_a_window() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 86_400;
    while second() > 86_400 - 600 {
        thread::sleep(Duration::from_secs(1));
    }
}

/// The service with these files, and its port.
fn start(folder: &Path) -> (Vec<Running>, u16) {
    let program = env::var("DIANA_RATELIMIT").expect("DIANA_RATELIMIT is the path of the service");
    let socket = folder.join("redis.sock");
    let redis = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--loglevel", "warning"])
        .arg("--unixsocket")
        .arg(&socket)
        .current_dir(folder)
        .spawn()
        .expect("redis-server can be started");
    let mut running = vec![Running(redis)];
    while !socket.exists() {
        thread::sleep(Duration::from_millis(20));
    }
    let ([port, http], [debug, _]) = (ports(), ports());
    let service = Command::new(program)
        .env("RUNTIME_ROOT", folder)
        .env("RUNTIME_SUBDIRECTORY", "files")
        .env("REDIS_SOCKET_TYPE", "unix")
        .env("REDIS_URL", &socket)
        .env("DISABLE_STATS", "true")
        .env("LOG_LEVEL", "error")
        .envs([("HOST", "127.0.0.1"), ("GRPC_HOST", "127.0.0.1"), ("DEBUG_HOST", "127.0.0.1")])
        .env("GRPC_PORT", port.to_string())
        .env("PORT", http.to_string())
        .env("DEBUG_PORT", debug.to_string())
        .spawn()
        .unwrap();
    running.push(Running(service));
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(running[1].0.try_wait().unwrap().is_none(), "the service ended");
        thread::sleep(Duration::from_millis(20));
    }
    (running, port)
}

#[test]
#[ignore = "needs an Envoy and the service: `make test-all`, or `DIANA_ENVOY=… DIANA_RATELIMIT=… cargo test --test ratelimits -- --ignored`"]
fn verdicts_about_the_service_hold_against_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("service");
    let files = folder.join("files/config");
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&files).unwrap();
    wait_for_a_window();
    let limit = "unit: day, requests_per_unit";
    // A domain for each: they share no counts.
    let file = |number: usize, case: &Case| {
        format!("domain: case-{number}\ndescriptors: {}\n", case.filter.replace("LIMIT", limit))
    };
    for (number, case) in CASES.iter().enumerate() {
        fs::write(files.join(format!("{number}.yaml")), file(number, case)).unwrap();
    }
    let (_running, port) = start(&folder);
    for (number, case) in CASES.iter().enumerate() {
        let filter = format!(
            "ratelimit.v3.RateLimit, domain: case-{number}, timeout: 60s, failure_mode_deny: true, \
             rate_limit_service: {{transport_api_version: V3, grpc_service: {{envoy_grpc: {{cluster_name: limits}}}}}}"
        );
        let (name, service) = (format!("service-{number}"), file(number, case));
        compare(case, &Compared { name, seed: number as u64, filter, service, port: Some(port) });
    }
}
