//! Invalid bytes: the worker survives them, and they escape no limit.

use crate::harness::{Envoy, Gateway, Response, exchange, request};

/// Rules that read all parts of a request.
fn reads_everything() -> Envoy {
    Gateway::with(
        r#"
limits:
  - Url: /
    match: {headers: {x-any: {not: excepted}}}
    rules:
      - {name: account, actor: account, unit: second, rpu: 1000000, scope: local}
      - {name: cookie, actor: session, unit: second, rpu: 1000000, scope: local, absent: share}
      - {name: query, actor: key, unit: second, rpu: 1000000, algo: SW, scope: local}
      - {name: token, actor: person, unit: second, rpu: 1000000, algo: W, scope: local}
      - {name: pair, actor: [account, device], unit: second, rpu: 1000000, scope: local}
  - Url: /closed
    rules: [{name: closed, actor: all, unit: hour, rpu: 0, scope: local}]
actors:
  session: [{cookie: sid}]
  key: [{query: key}]
  person: [{jwt_claim: sub, unverified: true}]
except: {headers: {x-probe: {exact: "1"}}}
keys: 1000
"#,
    )
    .start_shared()
}

/// Fails unless the worker still decides about requests.
#[track_caller]
fn assert_alive(envoy: &Envoy) {
    assert_eq!(envoy.get("/", &[]).status, 200);
    assert!(envoy.get("/closed", &[]).refused());
    envoy.assert_unharmed();
}

/// Fails if the response is caused by a crash of the filter.
#[track_caller]
fn assert_decided(answer: &Response, sent: &[u8]) {
    let sent = sent.escape_ascii();
    assert!(answer.status != 503 || answer.refused(), "{answer:?} to {sent}");
}

#[test]
fn huge_and_many_headers_escape_no_limit() {
    let envoy = reads_everything();
    let long = "a".repeat(58 * 1024);
    let cookies = "c=1; ".repeat(700) + "sid=7";
    let token = format!("Bearer a.{}.c", "A".repeat(50_000));
    let nested = format!("Bearer a.{}.c", "W1tb".repeat(10_000));
    for headers in [
        [("x-account-id", &*long)],
        [("x-device-id", &long)],
        [("cookie", &cookies)],
        [("cookie", &long)],
        [("authorization", &token)],
        [("authorization", &nested)],
        [("x-any", &long)],
    ] {
        let bytes = request("GET", "/", &headers);
        let answer = exchange(envoy.port, &bytes).unwrap();
        assert_eq!(answer.status, 200, "{}: {} bytes", headers[0].0, bytes.len());
    }
    let many: Vec<_> = (0..95).map(|_| ("x-account-id", "ada")).collect();
    assert_eq!(envoy.get("/", &many).status, 200);
    let crumbs: Vec<_> = (0..95).map(|_| ("cookie", "sid=1; sid=2; ;;=; sid")).collect();
    assert_eq!(envoy.get("/", &crumbs).status, 200);
    assert_alive(&envoy);
}

#[test]
fn request_without_a_path_escapes_no_limit() {
    let envoy = reads_everything();
    for line in [
        "OPTIONS * HTTP/1.1",
        "CONNECT shop.example.com:443 HTTP/1.1",
        "GET / HTTP/1.0",
        "PRI * HTTP/2.0",
        "GET  HTTP/1.1",
        "GET /",
        "\u{0}",
    ] {
        let bytes = format!("{line}\r\nhost: shop.example.com\r\n\r\n").into_bytes();
        if let Ok(answer) = exchange(envoy.port, &bytes) {
            assert_decided(&answer, &bytes);
        }
    }
    assert_alive(&envoy);
}

#[test]
fn random_bytes_escape_no_limit() {
    let seed = 20_261_122;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let envoy = reads_everything();
    let mut answered = 0;
    for _ in 0..4_000 {
        let bytes = random_request(&mut random);
        if let Ok(answer) = exchange(envoy.port, &bytes) {
            assert_decided(&answer, &bytes);
            answered += u32::from(answer.status == 200 || answer.refused());
        }
    }
    // Otherwise these bytes would only test Envoy's parser.
    assert!(answered > 1_000, "only {answered} requests reached the filter");
    assert_alive(&envoy);
}

/// A well-formed request with random bytes in the parts that the filter reads.
fn random_request(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = b"GET /".to_vec();
    // Envoy refuses a path with bytes above ASCII, so they are encoded.
    for byte in noise(random, b"/.;%?&=\\", b" #") {
        if byte.is_ascii() {
            bytes.push(byte)
        } else {
            bytes.extend(format!("%{byte:02X}").bytes())
        }
    }
    bytes.extend(b" HTTP/1.1\r\nhost: shop.example.com");
    for name in
        ["x-account-id", "x-device-id", "cookie", "authorization", "x-any", "x-forwarded-for"]
    {
        for _ in 0..random.u32(..3) {
            bytes.extend(format!("\r\n{name}: ").bytes());
            bytes.extend(random.choice([&b""[..], b"Bearer ", b"sid=", b"a.b."]).unwrap());
            bytes.extend(noise(random, b"=;,. \"{}", b"\r\n\0\x7f"));
        }
    }
    bytes.extend(b"\r\n\r\n");
    bytes
}

/// Random bytes, with many significant ones. Forbidden bytes are rare.
fn noise(random: &mut fastrand::Rng, telling: &[u8], forbidden: &[u8]) -> Vec<u8> {
    let length = random.usize(..40);
    let wild = random.u32(..50) == 0;
    let byte = |_| match random.u32(..3) {
        0 => *random.choice(telling).unwrap(),
        1 => random.u8(b'!'..=b'~'),
        _ if wild => random.u8(..),
        _ => random.u8(0x80..),
    };
    let bytes: Vec<u8> = (0..length).map(byte).collect();
    bytes.into_iter().filter(|byte| wild || !forbidden.contains(byte)).collect()
}
