//! Callers that are recognised by their TLS certificate.

use std::process::Command;

use crate::harness::{Certificates, Envoy, Gateway};

/// The statuses of three requests, with a client's certificate or without one.
fn three(certificates: &Certificates, envoy: &Envoy, client: Option<&str>) -> Vec<u16> {
    let url = format!("https://127.0.0.1:{}/", envoy.port);
    let ask = || {
        let mut curl = Command::new("curl");
        curl.current_dir(certificates.folder()).args([
            "-sk",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            &url,
        ]);
        if let Some(name) = client {
            curl.args(["--cert", &format!("{name}.pem"), "--key", &format!("{name}.key")]);
        }
        let done = curl.output().expect("curl runs");
        String::from_utf8(done.stdout).unwrap().parse().unwrap()
    };
    (0..3).map(|_| ask()).collect()
}

fn rules(source: &str) -> String {
    format!(
        "
limits: [{{Url: /, rules: [{{actor: peer, unit: hour, rpu: 2, scope: local}}]}}]
actors: {{peer: [{{peer: {source}}}]}}
"
    )
}

#[test]
fn certificate_name_is_a_caller() {
    let certificates = Certificates::new("by-name");
    certificates.sign("ada", "URI:spiffe://shop/ada");
    certificates.sign("ada2", "URI:spiffe://shop/ada");
    certificates.sign("bob", "URI:spiffe://shop/bob");
    let envoy =
        Gateway::with(&rules("uri_san")).transport_socket(certificates.socket()).start_shared();
    assert_eq!(three(&certificates, &envoy, Some("ada")), [200, 200, 503]);
    assert_eq!(three(&certificates, &envoy, Some("bob")), [200, 200, 503]);
    // Another certificate of the same name is the same caller.
    assert_eq!(three(&certificates, &envoy, Some("ada2")), [503, 503, 503]);
    assert_eq!(three(&certificates, &envoy, None), [200, 200, 200]);
}

#[test]
fn certificate_fingerprint_is_a_caller() {
    let certificates = Certificates::new("by-fingerprint");
    certificates.sign("ada", "URI:spiffe://shop/ada");
    certificates.sign("ada2", "URI:spiffe://shop/ada");
    let envoy =
        Gateway::with(&rules("sha256")).transport_socket(certificates.socket()).start_shared();
    assert_eq!(three(&certificates, &envoy, Some("ada")), [200, 200, 503]);
    assert_eq!(three(&certificates, &envoy, Some("ada2")), [200, 200, 503]);
    assert_eq!(three(&certificates, &envoy, None), [200, 200, 200]);
}
