//! Clients without an address, on a Unix domain socket.

use std::path::Path;
use std::process::Command;

use crate::harness::Gateway;

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
