//! Addresses as hosts report them: read as the standard library reads them, however they are spelled.

use std::net::{IpAddr, SocketAddr};

use diana_core::address::parse;
use fastrand::Rng;
use kit::seed;

fn by_library(text: &str) -> Option<IpAddr> {
    let socket = text.parse::<SocketAddr>().map(|socket| socket.ip());
    Some(socket.or_else(|_| text.parse()).ok()?.to_canonical())
}

fn assert_read(text: &str) {
    assert_eq!(parse(text.as_bytes()), by_library(text), "{text}");
}

#[test]
fn the_edges_of_numbers() {
    let numbers = ["", "0", "00", "01", "9", "10", "010", "99", "100", "255", "256", "0255", "300"];
    let ports = [
        "",
        ":",
        ":0",
        ":00080",
        ":000080",
        ":65535",
        ":65536",
        ":99999",
        ":4294967376",
        ":1:2",
        ":x",
    ];
    for number in numbers {
        for place in 0..4 {
            let parts: Vec<&str> =
                (0..4).map(|at| if at == place { number } else { "7" }).collect();
            for port in ports {
                assert_read(&format!("{}{port}", parts.join(".")));
            }
        }
    }
    assert_read("1.2.3.4.5:80");
    assert_read("1.2.3:80");
    assert_read("[::ffff:1.2.3.4]:80");
    assert_read("::1");
    assert_eq!(parse(b"1.2.3.4\xff:80"), None);
}

#[test]
fn any_text() {
    let mut rng = Rng::with_seed(seed::next());
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = format!(
            "{}.{}.{}.{}:{}",
            rng.u16(..300),
            rng.u8(..),
            rng.u8(..),
            rng.u16(..260),
            rng.u32(..70_000)
        );
        for _ in 0..rng.usize(..3) {
            let place = rng.usize(..text.len());
            match rng.bool() {
                true => _ = text.remove(place),
                false => text.insert(
                    place,
                    *rng.choice(&['0', '1', '5', '9', '.', ':', '-', '+', ' ']).unwrap(),
                ),
            }
        }
        assert_read(&text);
        read += usize::from(by_library(&text).is_some());
    }
    assert!((1000..19_000).contains(&read), "{read} of them are addresses");
}
