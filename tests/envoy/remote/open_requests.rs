//! Open requests while the configuration server changes the rules.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{document, gateway, settles_on};
use crate::harness::{
    Arrival, Client, ConfigServer, ServerResponse, Upstream, eventually, request,
};
use crate::metrics::settles;

/// Whether the service may respond.
static MAY_ANSWER: AtomicBool = AtomicBool::new(false);

/// Redirects each request, once it may.
fn send_elsewhere(arrival: &Arrival, to: &mut &TcpStream) -> io::Result<()> {
    if arrival.path == "/held/elsewhere" {
        return to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    }
    eventually("leave to answer", || MAY_ANSWER.load(Ordering::SeqCst).then_some(()));
    to.write_all(
        b"HTTP/1.1 302 Found\r\nlocation: http://here/held/elsewhere\r\ncontent-length: 0\r\n\r\n",
    )
}

/// One concurrent request per caller.
fn one_at_a_time(name: &str) -> ServerResponse {
    let rule = "{name: place, actor: account, in_flight: 1}";
    ServerResponse::Text(format!(
        "{}  - Url: /held\n    rules: [{rule}]\n",
        document(name, 1_000_000)
    ))
}

/// Each request has its in-flight slot.
#[test]
fn redirected_request_keeps_the_rules_of_its_arrival() {
    const CLIENTS: usize = 10;
    let service = Upstream::answering(send_elsewhere);
    let config_server = ConfigServer::start(one_at_a_time("first"));
    let moves =
        json!({"cluster": "upstream", "internal_redirect_policy": {"max_internal_redirects": 1}});
    let routes = json!({"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": moves},
    ]}]});
    let envoy = gateway(config_server.port)
        .workers(3)
        .cluster("upstream", service.port)
        .routed(routes, json!({}))
        .start();
    settles_on(&envoy, "first");
    let send = |number: usize| {
        let mut client = Client::connect(envoy.port).unwrap();
        let bytes = request("GET", "/held/here", &[("x-account-id", &number.to_string())]);
        client.write(&bytes).unwrap();
        client
    };
    let open: Vec<Client> = (0..CLIENTS).map(send).collect();
    let came = |path: &str| service.arrivals().iter().filter(|it| it.path == path).count();
    eventually("all to come", || (came("/held/here") == CLIENTS).then_some(()));
    config_server.respond_with(one_at_a_time("second"));
    settles_on(&envoy, "second");
    assert!((0..CLIENTS).all(|number| send(number).read().unwrap().refused()));
    MAY_ANSWER.store(true, Ordering::SeqCst);
    for mut client in open {
        assert_eq!(client.read().unwrap().status, 200);
    }
    assert_eq!(came("/held/elsewhere"), CLIENTS);
    settles(&envoy, "rule.place.in_flight", 0);
    envoy.assert_unharmed();
}
