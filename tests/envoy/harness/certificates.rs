//! Certificates for TLS.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// A certificate authority and its certificates, created for one test.
pub struct Certificates(PathBuf);

impl Certificates {
    /// With a certificate `server` for `localhost`, in a folder that is deleted with it.
    pub fn new(name: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = Self(folder);
        made.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem");
        made.sign("server", "DNS:localhost");
        made
    }

    /// Creates `<name>.pem` and `<name>.key` with this subject alternative name.
    pub fn sign(&self, name: &str, alternative: &str) {
        self.openssl(&format!("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} -addext subjectAltName={alternative} -CA ca.pem -CAkey ca.key -keyout {name}.key -out {name}.pem"));
    }

    fn openssl(&self, arguments: &str) {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(&self.0).output();
        let done = done.expect("openssl runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// The folder of the certificates.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    fn file(&self, name: &str) -> Value {
        json!({"filename": self.0.join(name)})
    }

    /// A listener's TLS. It verifies the client's certificate if there is one.
    pub fn socket(&self) -> Value {
        let own = json!({"certificate_chain": self.file("server.pem"), "private_key": self.file("server.key")});
        json!({"name": "envoy.transport_sockets.tls", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {
                "tls_certificates": [own],
                "validation_context": {"trusted_ca": self.file("ca.pem")},
            },
        }})
    }

    /// A cluster's TLS. It only accepts a server with this name.
    pub fn socket_to(&self, server: &str) -> Value {
        let name = json!({"san_type": "DNS", "matcher": {"exact": server}});
        json!({"name": "envoy.transport_sockets.tls", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            "sni": server,
            "common_tls_context": {"validation_context": {
                "trusted_ca": self.file("ca.pem"),
                "match_typed_subject_alt_names": [name],
            }},
        }})
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
