//! Callers that are recognised by their TLS certificate.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Envoy, Gateway};

/// A certification authority and what it has signed, made for one test.
struct Certificates(PathBuf);

impl Certificates {
    fn new(name: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = Self(folder);
        made.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem");
        made.sign("server", "DNS:localhost");
        made
    }

    /// Makes `<name>.pem` and `<name>.key` with this subject alternative name.
    fn sign(&self, name: &str, alternative: &str) {
        self.openssl(&format!("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} -addext subjectAltName={alternative} -CA ca.pem -CAkey ca.key -keyout {name}.key -out {name}.pem"));
    }

    fn openssl(&self, arguments: &str) {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(&self.0).output();
        let done = done.expect("openssl runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn file(&self, name: &str) -> Value {
        json!({"filename": self.0.join(name)})
    }

    /// A listener's TLS that checks the client's certificate if there is one.
    fn socket(&self) -> Value {
        let own = json!({"certificate_chain": self.file("server.pem"), "private_key": self.file("server.key")});
        json!({"name": "envoy.transport_sockets.tls", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {
                "tls_certificates": [own],
                "validation_context": {"trusted_ca": self.file("ca.pem")},
            },
        }})
    }

    /// The statuses of three requests with a client's certificate, or without any.
    fn three(&self, envoy: &Envoy, client: Option<&str>) -> Vec<u16> {
        let url = format!("https://127.0.0.1:{}/", envoy.port);
        let ask = || {
            let mut curl = Command::new("curl");
            curl.current_dir(&self.0).args(["-sk", "-o", "/dev/null", "-w", "%{http_code}", &url]);
            if let Some(name) = client {
                curl.args(["--cert", &format!("{name}.pem"), "--key", &format!("{name}.key")]);
            }
            let done = curl.output().expect("curl runs");
            String::from_utf8(done.stdout).unwrap().parse().unwrap()
        };
        (0..3).map(|_| ask()).collect()
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
fn by_name() {
    let certificates = Certificates::new("by-name");
    certificates.sign("ada", "URI:spiffe://shop/ada");
    certificates.sign("ada2", "URI:spiffe://shop/ada");
    certificates.sign("bob", "URI:spiffe://shop/bob");
    let envoy = Gateway::with(&rules("uri_san")).transport_socket(certificates.socket()).start();
    assert_eq!(certificates.three(&envoy, Some("ada")), [200, 200, 503]);
    assert_eq!(certificates.three(&envoy, Some("bob")), [200, 200, 503]);
    // Another certificate of the same name is the same caller.
    assert_eq!(certificates.three(&envoy, Some("ada2")), [503, 503, 503]);
    assert_eq!(certificates.three(&envoy, None), [200, 200, 200]);
}

#[test]
fn by_fingerprint() {
    let certificates = Certificates::new("by-fingerprint");
    certificates.sign("ada", "URI:spiffe://shop/ada");
    certificates.sign("ada2", "URI:spiffe://shop/ada");
    let envoy = Gateway::with(&rules("sha256")).transport_socket(certificates.socket()).start();
    assert_eq!(certificates.three(&envoy, Some("ada")), [200, 200, 503]);
    assert_eq!(certificates.three(&envoy, Some("ada2")), [200, 200, 503]);
    assert_eq!(certificates.three(&envoy, None), [200, 200, 200]);
}
