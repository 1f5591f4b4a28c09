//! `--policies`: the document of the rules and of the policies in the API server.
//!
//! It depends only on these objects, so replicas serve the same bytes. While the API server does not
//! tell them, the last document stays.

mod definition;
mod fleet;
mod lease;
mod objects;
mod settings;
mod status;
mod watches;
mod writer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::io;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use diana_compose::{AcceptedSpec, Composition, Platform, PolicyObject, PolicyStatus, compose};
use diana_config::ConfigSource;
use diana_config::resource::GROUP;
use diana_policy::ModuleKind;
use diana_policy::tree::Tree;
use diana_worker::remote;
use kube::{Client, Config};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::rules::{Behind, Publisher};
use super::{Files, READ_INTERVAL, log};
use crate::text::plain;
use lease::WriterLease;
use objects::{ClusterObjects, ObjectChange, ObjectKey};
use settings::Settings;
use status::{Generations, Standing, Versions};
use watches::News;
use writer::{PolicyReport, StatusWriter};

pub use fleet::Pollers;

/// Silence after which a connection to the API server is given up. It sends something each minute.
const SILENCE: Duration = Duration::from_secs(75);

/// Documents of which the policies are remembered. Gateways have one of the newest.
const MOST_VERSIONS: usize = 16;

/// Policies of the cluster.
#[derive(Debug)]
pub struct Policies {
    desk: Desk,
    news: mpsc::Receiver<News>,
}

/// The parts of a document.
#[derive(Debug)]
struct Desk {
    settings: Settings,
    module: ModuleKind,
    publisher: Publisher,
    objects: ClusterObjects,
    /// The last document of the file without problems.
    platform: Option<Tree>,
    /// The problems of its present content.
    problems: Option<String>,
    /// The version of the last composed document.
    version: u64,
    /// The latest forms that were accepted, by the identity of the policy: its status may not have
    /// them yet.
    accepted: BTreeMap<String, AcceptedSpec>,
    /// What became of each policy.
    composed: BTreeMap<ObjectKey, (Arc<PolicyStatus>, Arc<[ObjectKey]>)>,
    /// The documents of late.
    versions: VecDeque<(u64, Arc<Generations>)>,
    /// The forged names that were logged.
    forged: BTreeSet<String>,
    pollers: Arc<Pollers>,
    /// The name of this replica's pod.
    own_pod: String,
    reports: watch::Sender<Arc<PolicyReport>>,
}

impl Policies {
    /// Begins to watch the API server. Needs a runtime.
    ///
    /// # Errors
    /// A file that cannot be used, or no way to an API server.
    pub async fn start(
        path: &Path,
        module: ModuleKind,
        publisher: Publisher,
        behind: &watch::Receiver<Behind>,
        pollers: Arc<Pollers>,
        leaves: watch::Receiver<bool>,
    ) -> io::Result<Policies> {
        let settings = Settings::read(path, module)?;
        let mut config = Config::infer().await.map_err(io::Error::other)?;
        config.read_timeout = Some(SILENCE);
        // Watches begin again by themselves, and the log has the reason.
        config.default_retry = false;
        let client = Client::try_from(config).map_err(io::Error::other)?;
        let news = watches::start(&client, &settings, behind);
        let own_pod = env::var("POD_NAME").unwrap_or_else(|_| format!("pid-{}", process::id()));
        let (reports, receiver) = watch::channel(Arc::default());
        let (advice, advised) = watch::channel(None);
        tokio::spawn(definition::follow(client.clone(), advice));
        let writer = StatusWriter {
            advice: advised,
            controller: format!("{GROUP}/{}-{}", client.default_namespace(), settings.lease),
            lease: WriterLease::new(&client, &settings.lease, own_pod.clone()),
            client,
            replicas: settings.companion.clone(),
            pollers: pollers.clone(),
            written: BTreeMap::new(),
            problem: None,
        };
        tokio::spawn(writer.run(receiver, leaves));
        let desk = Desk {
            settings,
            module,
            publisher,
            objects: ClusterObjects::default(),
            platform: None,
            problems: None,
            version: 0,
            accepted: BTreeMap::new(),
            composed: BTreeMap::new(),
            versions: VecDeque::new(),
            forged: BTreeSet::new(),
            pollers,
            own_pod,
            reports,
        };
        Ok(Policies { desk, news })
    }

    /// Serves what files and objects make. Returns only if that fails.
    pub async fn follow(self, mut files: Files, started: &str) -> io::Error {
        let Policies { mut desk, mut news } = self;
        let mut started = Some(started);
        let mut ticks = interval(READ_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut change;
            tokio::select! {
                _ = ticks.tick() => {
                    let reading = spawn_blocking(move || (files.read(), files)).await;
                    let content;
                    (content, files) = match reading {
                        Ok(read) => read,
                        Err(error) => return io::Error::other(error),
                    };
                    change = content.map_or(ObjectChange::Nothing, |content| desk.read(content));
                    if let Some(line) = started.take() {
                        log(line);
                    }
                }
                Some(item) = news.recv() => {
                    change = desk.objects.take(item);
                    while let Ok(item) = news.try_recv() {
                        change = change.max(desk.objects.take(item));
                    }
                }
            }
            if change != ObjectChange::Nothing {
                let fleet = desk.objects.fleet(&desk.settings, &desk.own_pod);
                desk.pollers.know(fleet);
                desk.look_for_forged();
            }
            if let Some(waits) = desk.objects.waits() {
                desk.publisher.wait(waits);
            } else if change < ObjectChange::Document {
                // The document is also that of the newest objects.
                desk.confirm();
                if change == ObjectChange::Status {
                    desk.report();
                }
            } else {
                let composing = spawn_blocking(move || {
                    desk.compose();
                    desk
                });
                desk = match composing.await {
                    Ok(desk) => desk,
                    Err(error) => return io::Error::other(error),
                };
            }
        }
    }
}

impl Desk {
    /// Takes a changed content of the file.
    fn read(&mut self, content: Result<Vec<u8>, String>) -> ObjectChange {
        let checked = content.and_then(|text| self.publisher.check(&text).map(|_| text));
        let source = checked
            .and_then(|text| ConfigSource::read(&text).map_err(|problems| problems.to_string()));
        match source {
            Ok(source) => {
                self.platform = source.documents().first().cloned();
                self.problems = None;
                ObjectChange::Document
            }
            Err(problems) => {
                self.publisher.refuse(problems.clone());
                self.problems = Some(problems);
                ObjectChange::Nothing
            }
        }
    }

    /// Serves the document of the file and the objects.
    fn compose(&mut self) {
        let (Some(document), Ok(own)) = (self.platform.clone(), self.settings.own(self.module))
        else {
            return;
        };
        let platform = Platform {
            document,
            own,
            rights: self.settings.rights(),
            plane: self.settings.plane(),
        };
        let policies: Vec<PolicyObject> = self
            .objects
            .policies()
            .values()
            .map(|policy| {
                let of_status = policy.object.in_force.clone();
                let known = self.accepted.get(&policy.uid).cloned();
                let in_force = known.into_iter().chain(of_status).max_by_key(|it| it.generation);
                PolicyObject { in_force, ..policy.object.clone() }
            })
            .collect();
        let routes = self.objects.routes(&self.settings);
        let Composition { document, policies } =
            compose(&platform, &policies, &routes, &self.objects.namespaces());
        let text = document.into_bytes();
        let version = remote::version_of(&text);
        if version != self.version {
            match self.publisher.check(&text) {
                Ok(rules) => {
                    self.version = version;
                    self.publisher.serve(text, rules, self.objects.order(), self.problems.clone());
                }
                // The document of the platform itself.
                Err(problems) => self.publisher.refuse(problems),
            }
        }
        self.confirm();
        self.composed.clear();
        for composed in policies {
            let key = (composed.namespace.clone(), composed.name.clone());
            let Some(policy) = self.objects.policies().get(&key) else { continue };
            let gateways = self.objects.gateways(&self.settings, &policy.object);
            self.composed.insert(key, (Arc::new(composed), gateways.into()));
        }
        let known = self.objects.policies().iter();
        let accepted = known.filter_map(|(key, policy)| {
            let (composed, _) = self.composed.get(key)?;
            Some((policy.uid.clone(), composed.in_force.clone()?))
        });
        self.accepted = accepted.collect();
        let generation = |(uid, form): (&String, &AcceptedSpec)| (uid.clone(), form.generation);
        let generations = self.accepted.iter().map(generation).collect();
        self.versions.retain(|(known, _)| *known != version);
        self.versions.push_front((version, Arc::new(generations)));
        self.versions.truncate(MOST_VERSIONS);
        self.report();
    }

    /// The document is that of the objects that are known.
    fn confirm(&self) {
        self.publisher.confirm(self.objects.order(), self.objects.confirmed());
    }

    /// Reports names of routes that may be those of another object's routes in Istio: objects that
    /// are older than the admission policy of the chart may have them.
    fn look_for_forged(&mut self) {
        let forged = self.objects.forged(&self.settings);
        for found in forged.difference(&self.forged) {
            log(&plain(&format!("{found}, which may be that of another team's route; rename it")));
        }
        self.forged = forged;
    }

    /// Reports the outcome of each policy.
    fn report(&self) {
        let standing = |(key, policy): (&ObjectKey, &Arc<objects::TeamPolicy>)| {
            let (composed, gateways) = self.composed.get(key)?.clone();
            Some(Standing { policy: policy.clone(), composed, gateways })
        };
        let standings = self.objects.policies().iter().filter_map(standing).collect();
        let versions: Versions = self.versions.iter().cloned().collect();
        self.reports.send_replace(Arc::new(PolicyReport { standings, versions }));
    }
}
