//! Connections: their number, their time, and their end.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::answer::Site;
use super::log;

/// Connections at a time. Further ones wait in the queue of the operating system.
const MAX_CONNECTIONS: usize = 512;

/// Free connections below which each one ends with its response, so that idle ones do not keep
/// other gateways out.
const FEW: usize = MAX_CONNECTIONS / 2;

/// Bytes of a request's head.
const MAX_HEAD: usize = 16 << 10;

/// Time for a TLS handshake, for a request's head, and between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Age from which a connection ends with its next response.
const OLD: Duration = Duration::from_secs(60);

/// Age at which a connection is closed, which ends a client that reads or sends too slowly.
const MAX_AGE: Duration = Duration::from_secs(120);

/// Time after which connections are accepted again, if the system has no room for more.
const ACCEPT_RETRY: Duration = Duration::from_secs(1);

/// The present TLS settings, with the newest certificate.
pub type Certificates = watch::Receiver<Arc<ServerConfig>>;

/// Serves until `end`, then completes the responses in progress. While it `leaves`, each connection
/// ends with its next response, so that clients open new ones to other servers.
pub async fn serve(
    listener: TcpListener,
    certificates: Option<Certificates>,
    site: Arc<Site>,
    leaves: watch::Receiver<bool>,
    end: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accept = async {
        while let Ok(slot) = slots.clone().acquire_owned().await {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    log(&format!("cannot accept a connection: {error}"));
                    sleep(ACCEPT_RETRY).await;
                    continue;
                }
            };
            let connection = Connection {
                site: site.clone(),
                slots: slots.clone(),
                leaves: leaves.clone(),
                opened: Instant::now(),
                watcher: graceful.watcher(),
            };
            let tls = certificates.as_ref().map(|newest| newest.borrow().clone());
            tokio::spawn(async move {
                connection.serve(stream, peer.ip().to_canonical(), tls).await;
                drop(slot);
            });
        }
    };
    tokio::select! {
        () = accept => {},
        () = end => {},
    }
    drop(listener);
    graceful.shutdown().await;
}

/// An open connection.
struct Connection {
    site: Arc<Site>,
    slots: Arc<Semaphore>,
    leaves: watch::Receiver<bool>,
    opened: Instant,
    watcher: Watcher,
}

impl Connection {
    async fn serve(self, stream: TcpStream, peer: IpAddr, tls: Option<Arc<ServerConfig>>) {
        // Without it, the end of a response may wait for an acknowledgement.
        _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.answer(stream, peer).await };
        let handshake = TlsAcceptor::from(tls).accept(stream);
        if let Ok(Ok(stream)) = timeout(HEAD_TIMEOUT, handshake).await {
            self.answer(stream, peer).await;
        }
    }

    /// Answers requests until the client or the server closes the connection.
    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static, peer: IpAddr) {
        let Connection { site, slots, leaves, opened, watcher } = self;
        let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| async {
            let (head, _) = request.into_parts();
            let mut response =
                site.answer(&head.method, head.uri.path(), &head.headers, peer).await;
            if opened.elapsed() > OLD || slots.available_permits() < FEW || *leaves.borrow() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD);
        // A client that has sent its last request still reads the response.
        http.half_close(true);
        let served = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
        // An error is one of the client or of the network.
        _ = timeout(MAX_AGE, served).await;
    }
}
