//! The address of a client, as docs/guides/client-addresses.md describes it, and clients without one.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::{Gateway, exchange, request, shipped_text};
use crate::metrics::settles;

const RULES: &str = "
limits:
- {Url: /address, rules: [{name: a, actor: address, unit: day, rpu: 3}]}
- {Url: /device, rules: [{name: d, actor: device, unit: day, rpu: 3, absent: deny}]}
- {Url: /both, rules: [{name: b, actor: [account, address], unit: day, rpu: 1, absent: share}]}
- {Url: /in, match: {addresses: [0.0.0.0/0, '::/0']}, rules: [{name: i, actor: all, unit: day, rpu: 0}]}
- {Url: /out, unless: {addresses: [0.0.0.0/0, '::/0']}, rules: [{name: u, actor: all, unit: day, rpu: 0}]}
- {Url: /free, except: {addresses: [0.0.0.0/0, '::/0']}, rules: [{name: f, actor: all, unit: day, rpu: 0}]}
";

fn status(socket: &Path, path: &str, headers: &[&str]) -> u16 {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket"]).arg(socket);
    headers.iter().for_each(|header| _ = curl.args(["-H", header]));
    let done = curl.arg(format!("http://shop.example.com{path}")).output().expect("curl runs");
    String::from_utf8(done.stdout).unwrap().parse().unwrap()
}

#[test]
fn clients_of_a_unix_socket_are_one_caller() {
    let envoy = Gateway::with(RULES).on_a_socket().start_shared();
    let socket = envoy.socket();
    let get = |path, headers: &[&str]| status(&socket, path, headers);
    // The path of the socket tells no caller from another one, and no header does.
    let three = [200, 200, 200, 503];
    assert_eq!([(); 4].map(|()| get("/address", &["x-forwarded-for: 192.0.2.1"])), three);
    assert_eq!([(); 4].map(|()| get("/device", &[])), three);
    for account in ["x-account-id: ann", "x-account-id: bob"] {
        assert_eq!([(); 2].map(|()| get("/both", &[account])), [200, 503], "{account}");
    }
    assert_eq!(["/in", "/out", "/free"].map(|path| get(path, &[])), [200, 503, 503]);
    // A client with an address is another caller.
    assert_eq!(envoy.statuses(4, "/address", &[]), three);
    assert_eq!(["/in", "/out", "/free"].map(|path| envoy.get(path, &[]).status), [503, 200, 200]);
}

/// The rows of the table in docs/guides/client-addresses.md: `use_remote_address`, the trusted hops,
/// the header that arrives, and Diana's address.
fn rows_of_the_page() -> Vec<(bool, u32, String, String)> {
    let page = shipped_text("docs/guides/client-addresses.md");
    let (_, table) = page.split_once("| proxies in front |").expect("the page has the table");
    let rows = table.lines().take_while(|line| line.starts_with('|') || line.ends_with('|'));
    let rows = rows.skip(2).map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [_, _, uses, hops, header, address, ..] = cells.as_slice() else { panic!("{row}") };
        (uses == "true", hops.parse().expect(row), header.clone(), address.clone())
    });
    rows.collect()
}

/// Rules that refuse one address only, and the settings that determine it.
fn refusing(address: &str) -> Gateway {
    Gateway::with(&format!(
        "limits: [{{Url: /, match: {{addresses: [{address}]}}, rules: [{{name: r, actor: all, unit: day, rpu: 0}}]}}]"
    ))
}

#[test]
fn address_is_the_one_that_the_page_says() {
    let rows = rows_of_the_page();
    assert_eq!(rows.len(), 9);
    for (uses, hops, header, address) in rows {
        let settings = json!({"use_remote_address": uses, "xff_num_trusted_hops": hops});
        let envoy = refusing(&address).routed(json!(null), settings).start_shared();
        let sent = [("x-forwarded-for", header.as_str())];
        let sent = if header.is_empty() { &[][..] } else { &sent[..] };
        assert_eq!(envoy.get("/", sent).status, 503, "{uses} {hops} `{header}` {address}");
        // Another header moves the address, unless Envoy ignores the header.
        let other = envoy.get("/", &[("x-forwarded-for", "192.0.2.1, 192.0.2.1, 192.0.2.1")]);
        assert_eq!(other.status == 503, uses && hops == 0, "{uses} {hops} `{header}`");
    }
}

#[test]
fn address_is_that_of_the_proxy_protocol() {
    let envoy = refusing("203.0.113.7").of_proxy_protocol().start_shared();
    let status = |from: &str| {
        let mut bytes = format!("PROXY TCP4 {from} 127.0.0.1 4444 80\r\n").into_bytes();
        bytes.extend(request("GET", "/", &[("x-forwarded-for", "198.51.100.66")]));
        exchange(envoy.port, &bytes).unwrap().status
    };
    assert_eq!(["203.0.113.7", "203.0.113.8"].map(status), [503, 200]);
}

/// Behind source NAT each client has a private address, so this exemption is for all of them.
#[test]
fn exemption_of_a_private_network_holds_behind_source_nat() {
    const RULES: &str = "
limits: [{Url: /, rules: [{name: r, actor: address, unit: day, rpu: 1}]}]
except: {addresses: [10.0.0.0/8]}";
    let envoy = Gateway::with(RULES).trust_forwarded_for().start_shared();
    let three = |address| envoy.statuses(3, "/", &[("x-forwarded-for", address)]);
    assert_eq!(three("203.0.113.7"), [200, 503, 503]);
    assert_eq!(three("10.4.0.1"), [200, 200, 200]);
    settles(&envoy, "exempt", 3);
}
