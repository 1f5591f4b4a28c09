//! Which address of `x-forwarded-for` Envoy takes, by the number of trusted hops.

use super::drawing::Drawing;

/// A station, its address, and what it adds to `x-forwarded-for`.
const CHAIN: [(&str, &str, &str); 4] = [
    ("client", "203.0.113.7", "forges 198.51.100.66"),
    ("CDN", "192.0.2.10", "appends 203.0.113.7"),
    ("load balancer", "10.0.0.4", "appends 192.0.2.10"),
    ("Envoy", "", "connected by 10.0.0.4"),
];

/// Hops, the address, and whether it is that of the client.
const HOPS: [(usize, &str, &str, &str); 4] = [
    (0, "10.0.0.4", "no", "the load balancer: all clients are one caller"),
    (1, "192.0.2.10", "no", "the CDN: its clients are one caller"),
    (2, "203.0.113.7", "yes", "the client: right, since two proxies append an entry"),
    (3, "198.51.100.66", "no", "what the client wrote: it chooses who it is"),
];

pub fn draw() -> Drawing {
    let mut drawing = Drawing::new(
        "A chain of two proxies, and the address that Envoy takes with 0 to 3 trusted hops",
        330.0,
    );
    for (number, (name, address, adds)) in CHAIN.into_iter().enumerate() {
        let left = 24.0 + 209.0 * number as f64;
        drawing.rect((left, 24.0), (185.0, 78.0), "box");
        drawing.text((left + 92.0, 46.0), "label", "middle", name);
        drawing.text((left + 92.0, 66.0), "", "middle", address);
        drawing.text((left + 92.0, 88.0), "dim", "middle", adds);
        if number > 0 {
            drawing.curve(&[(left - 24.0, 63.0), (left - 3.0, 63.0)], "curve");
            drawing.curve(&[(left - 9.0, 57.0), (left - 3.0, 63.0), (left - 9.0, 69.0)], "curve");
        }
    }
    drawing.text(
        (24.0, 138.0),
        "",
        "start",
        "x-forwarded-for: 198.51.100.66, 203.0.113.7, 192.0.2.10",
    );
    drawing.text((24.0, 172.0), "label", "start", "xff_num_trusted_hops");
    drawing.text((210.0, 172.0), "label", "start", "Envoy's and Diana's address");
    for (number, (hops, address, class, meaning)) in HOPS.into_iter().enumerate() {
        let y = 204.0 + 32.0 * number as f64;
        drawing.line((24.0, y - 20.0), (836.0, y - 20.0), "line");
        drawing.text((24.0, y), "", "start", &hops.to_string());
        drawing.text((210.0, y), class, "start", address);
        drawing.text((350.0, y), "dim", "start", meaning);
    }
    drawing
}
