//! `diana serve`: serves one document of rules and the modules of a folder to gateways.
//!
//! It has no state. Rules and certificate are files, which are read again every second.

mod answer;
mod certificate;
mod connections;
mod metrics;
mod modules;
mod order;
#[cfg(feature = "policies")]
mod policies;
mod rules;
mod watched;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::arguments::ServeArguments;
use crate::exit::Exit;
use answer::Site;
use certificate::Certificate;
use rules::{Behind, Publisher, RulesFile};

/// Interval of reading the files.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Time from SIGTERM to the end. Proxies still connect until the cluster has told all of them that
/// this server leaves.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or Ctrl-C.
pub fn run(arguments: &ServeArguments) -> io::Result<Exit> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve(arguments))?;
    Ok(Exit::Fine)
}

async fn serve(arguments: &ServeArguments) -> io::Result<()> {
    let (publish, rules) = watch::channel(rules::Served::default());
    let publisher = Publisher::new(&arguments.rules, arguments.host.into(), publish);
    let files = Files {
        rules: RulesFile::new(&arguments.rules),
        certificate: Certificate::read(arguments)?,
    };
    let certificates = files.certificate.as_ref().map(Certificate::subscribe);
    let scheme = if certificates.is_some() { "https" } else { "http" };
    let site = Site {
        modules: modules::read(&arguments.modules)?,
        rules,
        behind: watch::Sender::new(Behind::default()),
        polls: metrics::Polls::default(),
        #[cfg(feature = "policies")]
        pollers: arguments.policies.as_ref().map(|_| Arc::default()),
    };
    let (leave, leaves) = watch::channel(false);
    let source = DocumentSource::of(arguments, publisher, &site, &leaves).await?;
    let listen = arguments.listen;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("{listen}: {error}")))?;
    // Both are installed before the first log line, after which a script may send one.
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let started = format!("listening on {scheme}://{}", listener.local_addr()?);
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {},
            _ = interrupt.recv() => return,
        }
        log(&format!("SIGTERM: the server still answers for {} s", LEAVE_TIME.as_secs()));
        leave.send_replace(true);
        tokio::select! {
            () = sleep(LEAVE_TIME) => {},
            _ = interrupt.recv() => {},
        }
    };
    let site = Arc::new(site);
    tokio::select! {
        failed = source.follow(files, &started) => Err(failed),
        () = connections::serve(listener, certificates, site, leaves, end) => {
            log("ended by a signal");
            Ok(())
        }
    }
}

/// Where documents come from.
enum DocumentSource {
    /// The file.
    File(Publisher),
    /// The file, and the policies of a cluster.
    #[cfg(feature = "policies")]
    Policies(Box<policies::Policies>),
}

impl DocumentSource {
    #[cfg(feature = "policies")]
    async fn of(
        arguments: &ServeArguments,
        publisher: Publisher,
        site: &Site,
        leaves: &watch::Receiver<bool>,
    ) -> io::Result<DocumentSource> {
        let (Some(path), Some(pollers)) = (&arguments.policies, site.pollers.clone()) else {
            return Ok(DocumentSource::File(publisher));
        };
        let (behind, module) = (site.behind.subscribe(), arguments.host.into());
        let (behind, leaves) = (&behind, leaves.clone());
        let policies =
            policies::Policies::start(path, module, publisher, behind, pollers, leaves).await?;
        Ok(DocumentSource::Policies(Box::new(policies)))
    }

    #[cfg(not(feature = "policies"))]
    async fn of(
        _: &ServeArguments,
        publisher: Publisher,
        _: &Site,
        _: &watch::Receiver<bool>,
    ) -> io::Result<DocumentSource> {
        Ok(DocumentSource::File(publisher))
    }

    /// Serves documents. Returns only if that fails, since a server that no longer reads the files
    /// would serve old rules unnoticed.
    async fn follow(self, files: Files, started: &str) -> io::Error {
        match self {
            DocumentSource::File(publisher) => follow(files, publisher, started).await,
            #[cfg(feature = "policies")]
            DocumentSource::Policies(policies) => policies.follow(files, started).await,
        }
    }
}

/// The files that may change.
struct Files {
    rules: RulesFile,
    certificate: Option<Certificate>,
}

impl Files {
    /// Reads them again, and applies a changed certificate. Returns changed rules.
    fn read(&mut self) -> Option<Result<Vec<u8>, String>> {
        if let Some(certificate) = &mut self.certificate {
            certificate.read_again();
        }
        self.rules.read()
    }
}

/// Reads the files at each interval; logs `started` after the first time.
async fn follow(mut files: Files, mut publisher: Publisher, started: &str) -> io::Error {
    let mut started = Some(started);
    loop {
        // A large document takes long to check, also the first one: meanwhile the server answers.
        let reading = spawn_blocking(move || {
            if let Some(content) = files.read() {
                publisher.offer(content);
            }
            (files, publisher)
        });
        (files, publisher) = match reading.await {
            Ok(read) => read,
            Err(error) => return io::Error::other(error),
        };
        if let Some(line) = started.take() {
            log(line);
        }
        sleep(READ_INTERVAL).await;
    }
}

/// Writes a line of the log. An error from a closed standard error is ignored.
fn log(line: &str) {
    _ = writeln!(io::stderr(), "diana: {line}");
}
