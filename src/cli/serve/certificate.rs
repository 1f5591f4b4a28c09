//! The certificate of the server, which is replaced while it runs.

use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::connections::Certificates;
use super::log;
use super::watched::{Content, WatchedFiles};
use crate::arguments::ServeArguments;

/// A certificate and its key in files.
#[derive(Debug)]
pub struct Certificate {
    files: WatchedFiles,
    publish: watch::Sender<Arc<ServerConfig>>,
}

impl Certificate {
    /// Reads the certificate of the arguments, if they have one.
    ///
    /// # Errors
    /// A certificate that cannot be used.
    pub fn read(arguments: &ServeArguments) -> io::Result<Option<Certificate>> {
        let (Some(chain), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) else {
            return Ok(None);
        };
        let mut files = WatchedFiles::new(&[chain, key]);
        let config = files.read().map(config).transpose().map_err(io::Error::other)?;
        Ok(config.map(|config| Certificate { files, publish: watch::Sender::new(config) }))
    }

    /// The present settings, for connections.
    pub fn subscribe(&self) -> Certificates {
        self.publish.subscribe()
    }

    /// Reads the files. If they have changed, new connections get the new certificate.
    pub fn read_again(&mut self) {
        match self.files.read().map(config) {
            None => {}
            Some(Ok(config)) => {
                self.publish.send_replace(config);
                log("new connections get the changed certificate");
            }
            Some(Err(why)) => log(&format!("{why}; the last good certificate stays in use")),
        }
    }
}

/// The TLS settings with a certificate chain and its key.
fn config(content: &Content) -> Result<Arc<ServerConfig>, String> {
    let files = content.as_deref().map_err(Clone::clone)?;
    let [chain, key] = files else { return Err("expected a certificate and a key".into()) };
    let about = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| about("certificate", &error))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| about("private key", &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| about("certificate", &error))?;
    Ok(Arc::new(config))
}
