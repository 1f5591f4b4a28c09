//! Settlement in the shipped module: reading the end of a stream, its cost, and the absence of
//! leaks.

use std::collections::BTreeMap;

use crate::costs::{ALL_HEADERS, CLOCK};
use host::Host;
use host::request::Request;
use host::vm::Vm;

const LIMIT: u64 = 1000;
const MOST: u64 = 30;

fn rule(cost: &str, scope: &str) -> String {
    format!(
        "accepted: {{headers: true}}
limits: [{{Url: /, rules: [{{name: r, actor: account, unit: day, rpu: {LIMIT}, algo: W, scope: {scope},
  cost: {{response: {cost}, reserve: 10, max: {MOST}}}}}]}}]"
    )
}

fn request() -> Request {
    Request::get("/").header("x-account-id", "ann")
}

/// The charged permits, read from the response to one more request without usage.
fn charged(vm: &mut Vm) -> u64 {
    let stream = vm.open(&request()).unwrap();
    let answer = vm.end(stream, Some((&[(":status", "503")], "x")), (Some(503), "x", 2)).unwrap();
    let field = answer.header("ratelimit").expect("it is reported").to_owned();
    let left = field.split(";r=").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    LIMIT - 10 - left.parse::<u64>().unwrap()
}

const UPSTREAM: &str = "via_upstream";
const GONE: &str = "downstream_remote_disconnect";
const DC: u64 = 1 << 14;
const PER_TRY: &str = "upstream_per_try_timeout";
const OVERFLOW: &str = "upstream_reset_before_response_started{overflow}";
const LONGEST: &str = "upstream_max_stream_duration_reached";
const REPLACED: &str = "response_payload_too_large";
const LARGE: &str = "request_payload_too_large";
const UH: u64 = 1 << 1;
const UT: u64 = 1 << 2;
const UF: u64 = 1 << 5;
const UC: u64 = 1 << 6;
const UO: u64 = 1 << 7;
const NR: u64 = 1 << 8;
const URX: u64 = 1 << 15;
const SI: u64 = 1 << 16;
const DPE: u64 = 1 << 18;
const UMSDR: u64 = 1 << 19;
const UPE: u64 = 1 << 23;
const NC: u64 = 1 << 24;
const DR: u64 = 1 << 28;

/// Envoy's reports of the end of a stream, with the expected usage.
#[test]
fn every_end_of_a_stream_is_read() {
    let with_usage: &[(&str, &str)] = &[(":status", "200"), ("x-used", "7")];
    let without_usage: &[(&str, &str)] = &[(":status", "200")];
    let twice: &[(&str, &str)] = &[("x-used", "7"), ("x-used", "7")];
    let reset = "upstream_reset_before_response_started{connection_failure}";
    let local = |status, details| Some((status, details));
    for (response, (status, details, flags), used) in [
        (Some((with_usage, UPSTREAM)), (Some(200), UPSTREAM, 0), 7),
        (Some((without_usage, UPSTREAM)), (Some(200), UPSTREAM, 0), MOST),
        (Some((twice, UPSTREAM)), (Some(200), UPSTREAM, 0), MOST),
        (
            Some((with_usage, UPSTREAM)),
            (Some(200), "upstream_reset_after_response_started{x}", UPE),
            7,
        ),
        (Some((without_usage, UPSTREAM)), (Some(200), "response_timeout", UT), MOST),
        (Some((without_usage, UPSTREAM)), (Some(200), "max_duration_timeout", 0), MOST),
        (Some((without_usage, UPSTREAM)), (Some(200), GONE, DC), MOST),
        (Some((without_usage, UPSTREAM)), (Some(200), "http2.remote_reset", DR), MOST),
        (Some((without_usage, UPSTREAM)), (Some(101), GONE, DC), MOST),
        // Local replies reach the filter as responses.
        (local(with_usage, reset), (Some(503), reset, UF), 0),
        (local(without_usage, "x"), (Some(503), "x", UC), 0),
        (local(without_usage, "no_healthy_upstream"), (Some(503), "no_healthy_upstream", UH), 0),
        (local(without_usage, "response_timeout"), (Some(504), "response_timeout", UT), 0),
        (local(without_usage, PER_TRY), (Some(504), PER_TRY, UT | URX), 0),
        (local(without_usage, "cluster_not_found"), (Some(503), "cluster_not_found", NC), 0),
        (local(without_usage, OVERFLOW), (Some(503), OVERFLOW, UO), 0),
        (local(without_usage, LONGEST), (Some(504), LONGEST, UMSDR), 0),
        (local(without_usage, "max_duration_timeout"), (Some(504), "max_duration_timeout", 0), 0),
        (local(without_usage, "stream_idle_timeout"), (Some(504), "stream_idle_timeout", SI), 0),
        (local(without_usage, LARGE), (Some(413), LARGE, 0), 0),
        (local(without_usage, REPLACED), (Some(500), REPLACED, 0), 0),
        (local(with_usage, "rbac_access_denied"), (Some(403), "rbac_access_denied", 0), 0),
        (local(with_usage, "direct_response"), (Some(200), "direct_response", 0), 0),
        (local(with_usage, "lua_response"), (Some(200), "lua_response", 0), 0),
        (local(with_usage, "route_not_found"), (Some(404), "route_not_found", NR), 0),
        (
            local(with_usage, "a_reason_of_tomorrow"),
            (Some(299), "a_reason_of_tomorrow", 1 << 40),
            0,
        ),
        // The client left, and Envoy has several ways to report that.
        (None, (None, GONE, DC), MOST),
        (None, (None, "http2.remote_reset", DR), MOST),
        // A reset without an error, on 1.40.
        (None, (None, "", 0), MOST),
        (None, (None, "codec_error:The_user_callback_function_failed", DPE), MOST),
        (None, (None, "downstream_local_disconnect(http2_ping_timeout)", DC), MOST),
        // A filter held the response back.
        (None, (Some(200), GONE, DC), MOST),
        (local(without_usage, "http1.codec_error"), (Some(400), "http1.codec_error", DPE), MOST),
        // Envoy closed the connection.
        (None, (None, "downstream_local_disconnect(filter_chain_is_being_removed)", DC), 0),
        (None, (Some(302), "internal_redirect", 0), 0),
    ] {
        let mut host = Host::new(71);
        let mut vm = host.start_vm(&rule("{header: x-used}", "gateway")).unwrap();
        let stream = vm.open(&request()).unwrap();
        vm.end(stream, response, (status, details, flags)).unwrap();
        assert_eq!(charged(&mut vm), used, "{response:?} {status:?} {details} {flags:x}");
    }
}

/// Statuses of gRPC and usage, in trailers or in the headers of a response without messages, and the calls that reading them
/// takes.
#[test]
fn trailers_are_read() {
    let usage = rule("{trailer: x-used}", "gateway");
    let outcome = format!(
        "accepted: {{headers: true}}
limits: [{{Url: /, rules: [{{name: r, actor: account, unit: day, rpu: {LIMIT}, algo: W, scope: local, cost: 10,
  count: {{grpc_status: [16]}}}}]}}]"
    );
    let grpc: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
    let only: &[(&str, &str)] = &[(":status", "200"), ("grpc-status", "16"), ("x-used", "7")];
    let denied: &[(&str, &str)] = &[("grpc-status", "16")];
    let fine: &[(&str, &str)] = &[("grpc-status", "0"), ("x-used", "7")];
    let (whole, gone) = ((Some(200), UPSTREAM, 0), (Some(200), GONE, DC));
    for (headers, trailers, end, [used, counted]) in [
        (Some((grpc, UPSTREAM)), Some(fine), whole, [7, 0]),
        (Some((grpc, UPSTREAM)), Some(denied), whole, [0, 10]),
        (Some((only, UPSTREAM)), None, whole, [7, 10]),
        // Headers before messages are no trailers.
        (Some((only, UPSTREAM)), Some(&[("x-used", "9")][..]), whole, [9, 0]),
        (Some((only, UPSTREAM)), Some(fine), whole, [7, 0]),
        (Some((grpc, UPSTREAM)), None, whole, [MOST, 0]),
        // Reset before and after the trailers.
        (Some((grpc, UPSTREAM)), None, gone, [MOST, 10]),
        (Some((grpc, UPSTREAM)), Some(fine), gone, [7, 0]),
        (Some((grpc, UPSTREAM)), Some(denied), gone, [0, 10]),
        (
            Some((grpc, UPSTREAM)),
            None,
            (Some(200), "upstream_reset_after_response_started{x}", UPE),
            [MOST, 0],
        ),
        (Some((only, "ext_authz_denied")), None, (Some(200), "ext_authz_denied", 0), [0, 10]),
        (None, None, (None, GONE, DC), [MOST, 10]),
        (None, None, (None, "downstream_local_disconnect", DC), [0, 0]),
    ] {
        for (document, wanted) in [(&usage, used), (&outcome, counted)] {
            let mut host = Host::new(77);
            let mut vm = host.start_vm(document).unwrap();
            let stream = vm.open(&request()).unwrap();
            vm.end_after_trailers(stream, headers, trailers, end).unwrap();
            assert_eq!(charged(&mut vm), wanted, "{headers:?} {trailers:?} {end:?}");
        }
    }
    for document in [&usage, &rule("{header: x-used}", "local")] {
        let mut host = Host::new(78);
        let document = document.replace("accepted: {headers: true}\n", "");
        let mut vm = host.start_vm(&document).unwrap();
        vm.start_counting();
        let stream = vm.open(&request()).unwrap();
        let answer = vm.end_after_trailers(stream, Some((grpc, UPSTREAM)), Some(fine), whole);
        let calls = answer.unwrap().calls;
        // The headers of the request; the trailers, or the headers of the response.
        assert_eq!(calls.get(ALL_HEADERS.0), Some(&2), "{calls:?}");
    }
}

/// Properties of unexpected type or length are not numbers, and have no effect on other requests.
#[test]
fn odd_properties_cause_no_trap() {
    let path: &[&str] = &["metadata", "filter_metadata", "ns", "used"];
    for bytes in [&b""[..], b"7", b"12345678", &[0xff; 8], &f64::NAN.to_le_bytes(), &[0x80; 4096]] {
        for name in ["code", "flags", "code_details"] {
            let mut host = Host::new(72);
            let mut vm = host.start_vm(&rule("{metadata: [ns, used]}", "local")).unwrap();
            let odd = request().property(path, bytes).property(&["response", name], bytes);
            let stream = vm.open(&odd).unwrap();
            vm.close(stream).unwrap();
            // Bytes may be the details of a connection that Envoy closed.
            assert!([0, MOST].contains(&charged(&mut vm)), "{bytes:?} as {name}");
        }
    }
    let mut host = Host::new(73);
    let mut vm = host.start_vm(&rule("{metadata: [ns, used]}", "local")).unwrap();
    let stream = vm.open(&request().property(path, 7.0_f64.to_le_bytes())).unwrap();
    vm.end(stream, Some((&[], UPSTREAM)), (Some(200), UPSTREAM, 0)).unwrap();
    assert_eq!(charged(&mut vm), 7);
}

#[test]
fn settlement_costs_a_few_host_calls() {
    let mut host = Host::new(74);
    let document = rule("{header: x-used}", "local").replace("accepted: {headers: true}\n", "");
    let mut vm = host.start_vm(&document).unwrap();
    let mut answer = None;
    for _ in 0..2 {
        vm.start_counting();
        let stream = vm.open(&request()).unwrap();
        let with_usage: &[(&str, &str)] = &[(":status", "200"), ("x-used", "7")];
        answer = vm.end(stream, Some((with_usage, UPSTREAM)), (Some(200), UPSTREAM, 0)).ok();
    }
    let answer = answer.unwrap();
    let (request, response) = (1, 1);
    let expected = BTreeMap::from([
        (CLOCK.0, 2),
        (ALL_HEADERS.0, request + response),
        // Whether the upstream responded, at the headers and at the end.
        ("proxy_get_property", 2),
    ]);
    assert_eq!(answer.calls, expected);
    println!("settled by a header: {} of 55000", answer.fuel);
    assert!(answer.fuel < 55_000, "{}", answer.fuel);
}

/// The memory of a worker for open streams is bounded. Streams beyond the bound keep their
/// reservations.
#[test]
fn many_open_streams_take_bounded_memory() {
    const OPEN: usize = 300_000;
    let plain = "limits: [{Url: /, rules: [{name: r, actor: account, unit: day, rpu: 100000000, algo: W, scope: local}]}]";
    let settled = rule("{header: x-used}", "local").replace("accepted: {headers: true}", "");
    let settled = settled.replace("rpu: 1000", "rpu: 100000000");
    let [plain, settled] = [plain, &settled].map(|rules| {
        let mut host = Host::new(76);
        let mut vm = host.start_vm(rules).unwrap();
        // The first requests fill the tables of the worker.
        (0..1_000).for_each(|_| _ = vm.open(&request()).unwrap());
        let before = vm.memory();
        (0..OPEN).for_each(|_| _ = vm.open(&request()).unwrap());
        vm.memory() - before
    });
    println!("{} bytes for each, {} if it is settled", plain / OPEN, settled / OPEN);
    // The SDK has a context for each open stream, and a table of contexts.
    assert!(plain <= 20 << 20, "{plain}");
    // An open charge takes 80 bytes since numbers have 64 bits.
    assert!(settled <= 37 << 20, "{settled}");
}
