//! Certificates of a server on loopback, and a client that trusts one of them.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::command::folder;

/// A certificate, and the only authority that signs it.
pub struct Certificates {
    authority: Vec<u8>,
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

impl Certificates {
    pub fn new(name: &str) -> Certificates {
        let folder = folder(&[("empty", "")]);
        let openssl = |words: String| {
            let base = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
            let mut command = Command::new("openssl");
            command.args(base.split(' ')).args(words.split(' ')).current_dir(&folder);
            let done = command.output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        openssl(format!("-subj /CN={name} -keyout ca.key -out ca.pem"));
        openssl(
            "-subj /CN=server -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
             -CA ca.pem -CAkey ca.key -keyout tls.key -out tls.pem"
                .into(),
        );
        let read = |name| fs::read(folder.join(name)).unwrap();
        Certificates { authority: read("ca.pem"), chain: read("tls.pem"), key: read("tls.key") }
    }

    /// The answer to these bytes over TLS, if the server has this certificate.
    pub fn exchange(&self, stream: TcpStream, sent: &[u8]) -> io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.authority).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(client, stream);
        stream.write_all(sent)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
