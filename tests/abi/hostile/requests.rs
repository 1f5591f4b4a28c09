//! Malformed and unusual requests.

use fastrand::Rng;

use host::request::Request;

/// A random request of anything that Envoy accepts, and more.
pub fn hostile(random: &mut Rng) -> Request {
    let mut request = Request::get(path(random));
    for name in [":path", ":method", ":authority", ":scheme"] {
        if random.u32(..20) == 0 {
            request = request.without(name);
        }
    }
    if random.u32(..4) == 0 {
        request = request.without(":authority").header(":authority", value(random));
    }
    if random.u32(..4) == 0 {
        request = request.without(":method").header(":method", value(random));
    }
    for name in ["x-device-id", "x-account-id", "x-app", "x-probe", "authorization", "content-type"]
    {
        for _ in 0..random.usize(..3) {
            request = request.header(name, value(random));
        }
    }
    for _ in 0..[0, 0, 1, 3, 300][random.usize(..5)] {
        request = request.header("cookie", cookie(random));
    }
    if random.bool() {
        request = request.header("authorization", token(random));
    }
    request = request.from(&address(random));
    for path in [&["connection", "uri_san_peer_certificate"][..], &["metadata"], &JWT, &META] {
        if random.bool() {
            request = request.property(path, value(random));
        }
    }
    request
}

const JWT: [&str; 5] =
    ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", "jwt", "sub"];
const META: [&str; 4] = ["metadata", "filter_metadata", "ns", "key"];

/// A few recurring callers, and every kind of unusual value.
fn value(random: &mut Rng) -> Vec<u8> {
    match random.u32(..12) {
        0..=4 => vec![b'a' + random.u8(..5)],
        5 => Vec::new(),
        6 => bytes(random, 40),
        7 => vec![0; random.usize(..40)],
        8 => vec![0xff; 60 * 1024],
        9 => bytes(random, 60 * 1024),
        10 => b",,;=\"\\%00%ff%".repeat(random.usize(..50)),
        _ => "é\u{202e}\u{0}ﷺ".repeat(random.usize(..9)).into_bytes(),
    }
}

fn bytes(random: &mut Rng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(..most)];
    random.fill(&mut bytes);
    bytes
}

fn path(random: &mut Rng) -> Vec<u8> {
    let pieces: [&[u8]; 14] = [
        b"/",
        b"//",
        b"/a",
        b"/b",
        b"/..",
        b"/.",
        b"%2f",
        b"%5C",
        b"\\",
        b";x=1",
        b"%",
        b"/case",
        b"\0",
        b"\xff\xfe",
    ];
    let count = [1, 3, 8, 8, 40, 40, 40, 30_000][random.usize(..8)];
    let mut path: Vec<u8> = match random.u32(..6) {
        0 => value(random),
        1 => b"http://example.com:80/a/b".to_vec(),
        2 => b"/a/b/".to_vec(),
        _ => (0..count).flat_map(|_| pieces[random.usize(..pieces.len())]).copied().collect(),
    };
    if random.u32(..3) == 0 {
        path.push(b'?');
        for _ in 0..random.usize(..200) {
            path.extend(random.choice([&b"id="[..], b"&", b"=", b"%", b"#", b"a"]).unwrap());
        }
    }
    path
}

fn cookie(random: &mut Rng) -> Vec<u8> {
    let mut cookie = Vec::new();
    for _ in 0..random.usize(..20) {
        cookie
            .extend(random.choice([&b"id="[..], b"; ", b";", b"=", b"\"", b"x", b"\xff"]).unwrap());
    }
    cookie
}

fn token(random: &mut Rng) -> Vec<u8> {
    let payloads = ["eyJzdWIiOiJhIn0", "eyJzdWIiOjF9", "eyJzdWIiOlsiYSJdfQ", "e30", "!!!", ""];
    let payload = payloads[random.usize(..payloads.len())];
    let mut token = format!("Bearer e30.{payload}").into_bytes();
    match random.u32(..4) {
        0 => token.extend(value(random)),
        1 => token.extend(b".sig"),
        2 => token = [b"Bearer e30.".to_vec(), deep()].concat(),
        _ => {}
    }
    token
}

/// Base64 of `[[[[[[…`.
fn deep() -> Vec<u8> {
    b"W1tb".repeat(15_000)
}

fn address(random: &mut Rng) -> String {
    let addresses = [
        "192.0.2.1:1",
        "[2001:db8::1]:80",
        "[::ffff:192.0.2.1]:80",
        "10.1.2.3:4",
        "",
        ":",
        "[",
        "[::1",
        "@/run/socket",
        "1.2.3.4:99999999999999999999",
        "[fe80::1%eth0]:1",
    ];
    addresses[random.usize(..addresses.len())].to_owned()
}
