//! No spelling of a path escapes a limit.

mod headers;
mod routes;

use crate::harness::{Client, Envoy, Gateway, request};

/// A limit of zero, so that all matching requests are refused.
fn closed() -> Envoy {
    Gateway::with(
        "
limits:
  - Url: /closed/room
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
  - Url: /loose
    ignore_case: true
    rules: [{actor: all, unit: hour, rpu: 0, scope: local}]
",
    )
    .start_shared()
}

#[test]
fn known_spellings_escape_no_limit() {
    let envoy = closed();
    for path in [
        "/closed/room",
        "//closed///room/",
        "/closed/./room",
        "/./closed/room/.",
        "/a/../closed/room",
        "/../closed/room",
        "/closed/a/../room",
        "/closed/room/a/..",
        "/closed/room/../room/x",
        "/%63losed/%72oom",
        "/closed%2Froom",
        "/closed%2froom",
        "/closed%5Croom",
        r"/closed\room",
        r"\closed\room",
        "/closed/%2e/room",
        "/a/%2E%2e/closed/room",
        "/closed;v=1/room;x=/y",
        "/closed/room;..",
        "/closed/room?../../open",
        "/closed/room/%00",
        "/closed/room/%zz",
        "/closed/room/..",
        "/closed/room/..%2fx",
        "http://shop.example.com/closed/room",
        "/LOOSE/x",
        "/lo%4Fse",
    ] {
        let answer = envoy.get(path, &[]);
        // Envoy itself refuses some as malformed, which is correct, too.
        assert!(answer.refused() || answer.status == 400, "{path} escaped: {answer:?}");
    }
    for path in [
        "/closed/roomy",
        "/closed",
        "/closed/Room",
        "/%2563losed/room",
        "/closed/../room",
        "/closed/room%3fx",
    ] {
        assert_eq!(envoy.get(path, &[]).status, 200, "{path}");
    }
}

#[test]
fn random_spellings_escape_no_limit() {
    let seed = 20_261_121;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let envoy = closed();
    let mut client = Client::connect(envoy.port).unwrap();
    for _ in 0..2_000 {
        let path = spelling(&mut random);
        let answer = client.send(&request("GET", &path, &[])).unwrap();
        assert!(answer.refused(), "{path} escaped: {answer:?}");
    }
    envoy.assert_unharmed();
}

/// A random spelling of /closed/room.
fn spelling(random: &mut fastrand::Rng) -> String {
    let mut path = String::new();
    for segment in ["closed", "room"] {
        for _ in 0..random.u32(..3) {
            path += random.choice(["", "/.", "/%2e", "/x/..", "/y;z/%2E.", "/"]).unwrap();
        }
        path += random.choice(["/", "//", "%2f", "%2F", "\\", "%5c"]).unwrap();
        for letter in segment.chars() {
            match random.u32(..4) {
                0 => path += &format!("%{:02x}", u32::from(letter)),
                1 => path += &format!("%{:02X}", u32::from(letter)),
                _ => path.push(letter),
            }
        }
        path += random.choice(["", "", ";", ";a=b", ";a;b"]).unwrap();
    }
    path += random.choice(["", "/", "/more", "?x=1", "?/../..", "/?"]).unwrap();
    // Envoy requires a leading slash.
    if path.starts_with('/') { path } else { format!("/{path}") }
}
