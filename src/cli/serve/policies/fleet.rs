//! The pods of gateways, and the documents that their polls name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::header::HeaderMap;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::objects::{ObjectKey, Pod};

/// The header with the identity of a gateway.
const GATEWAY: &str = "x-diana-gateway";

/// The header with its document.
const DOCUMENT: &str = "x-diana-document";

/// Processes that are remembered. Any client of this server can send made-up ones.
const MOST: usize = 10_000;

/// Time after which a process without a poll is forgotten.
const FORGET: Duration = Duration::from_secs(600);

/// Labels that control planes give to the pods of a Gateway.
const ENVOY_GATEWAY: [&str; 2] =
    ["gateway.envoyproxy.io/owning-gateway-namespace", "gateway.envoyproxy.io/owning-gateway-name"];
const ENVOY_GATEWAY_CLASS: &str = "gateway.envoyproxy.io/owning-gatewayclass";
const ISTIO: &str = "gateway.networking.k8s.io/gateway-name";

/// The Gateway, or the class, of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Of one Gateway.
    Gateway(ObjectKey),
    /// Of all Gateways of a class.
    Class(String),
    /// Of all Gateways of the platform.
    All,
}

impl Owner {
    fn of(namespace: &str, pod: &Pod) -> Owner {
        let label = |key: &str| pod.labels.get(key).cloned();
        let [of_namespace, of_name] = ENVOY_GATEWAY.map(label);
        match (of_namespace.zip(of_name), label(ENVOY_GATEWAY_CLASS), label(ISTIO)) {
            (Some(gateway), ..) => Owner::Gateway(gateway),
            (None, Some(class), _) => Owner::Class(class),
            (None, None, Some(name)) => Owner::Gateway((namespace.into(), name)),
            (None, None, None) => Owner::All,
        }
    }

    fn is_of(&self, gateway: &ObjectKey, class: &str) -> bool {
        match self {
            Owner::Gateway(key) => key == gateway,
            Owner::Class(name) => name == class,
            Owner::All => true,
        }
    }
}

/// The pods of gateways that exist and have not ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GatewayFleet {
    pods: BTreeMap<ObjectKey, (Owner, Option<IpAddr>)>,
    /// The classes of the Gateways.
    classes: BTreeMap<ObjectKey, String>,
    /// The number of pods of an owner. It is empty before all are known.
    numbers: BTreeMap<Owner, usize>,
    /// The addresses of the replicas of this server.
    pub replicas: BTreeSet<IpAddr>,
}

impl GatewayFleet {
    /// A fleet of pods. It has no numbers unless these are all.
    pub fn new<'p>(
        pods: impl Iterator<Item = (&'p ObjectKey, &'p Pod)>,
        classes: BTreeMap<ObjectKey, String>,
        replicas: BTreeSet<IpAddr>,
        are_all: bool,
    ) -> GatewayFleet {
        let pods: BTreeMap<ObjectKey, (Owner, Option<IpAddr>)> = pods
            .filter(|(_, pod)| !pod.has_ended)
            .map(|(key, pod)| (key.clone(), (Owner::of(&key.0, pod), pod.address)))
            .collect();
        let mut numbers = BTreeMap::new();
        for (owner, _) in pods.values().filter(|_| are_all) {
            *numbers.entry(owner.clone()).or_default() += 1;
        }
        GatewayFleet { pods, classes, numbers, replicas }
    }

    /// The pods of a Gateway.
    pub fn of(&self, gateway: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        let class = self.classes.get(gateway).map_or("", String::as_str);
        let is_its = move |owner: &Owner| owner.is_of(gateway, class);
        self.pods.iter().filter(move |(_, (owner, _))| is_its(owner)).map(|(key, _)| key)
    }

    /// The pod of a process: by its identity in Envoy, else by its address.
    fn pod(&self, process: &GatewayProcess) -> Option<&ObjectKey> {
        let name = process.name.as_deref().unwrap_or_default();
        // Istio: `router~<address>~<pod>.<namespace>~<domain>`.
        let is_it = |(namespace, pod): &ObjectKey| match name.split('~').nth(2) {
            Some(both) => {
                both.strip_prefix(pod.as_str()).and_then(|it| it.strip_prefix('.'))
                    == Some(namespace)
            }
            None => pod == name,
        };
        let by_address = || {
            let is_it =
                |it: &(&ObjectKey, &(Owner, Option<IpAddr>))| it.1.1 == Some(process.address);
            self.pods.iter().find(is_it).map(|(key, _)| key)
        };
        self.pods.keys().find(|key| is_it(key)).or_else(by_address)
    }

    /// The number of gateways of the process's Gateway, if it is known.
    fn number(&self, process: &GatewayProcess) -> Option<usize> {
        let (owner, _) = self.pods.get(self.pod(process)?)?;
        self.numbers.get(owner).copied()
    }

    /// The latest poll of each pod.
    pub fn latest(&self, processes: &[GatewayProcess]) -> BTreeMap<ObjectKey, GatewayProcess> {
        let mut latest: BTreeMap<ObjectKey, GatewayProcess> = BTreeMap::new();
        for process in processes {
            let Some(pod) = self.pod(process) else { continue };
            let known = latest.get(pod).map_or(u64::MAX, |known| known.milliseconds);
            if process.milliseconds < known {
                latest.insert(pod.clone(), process.clone());
            }
        }
        latest
    }
}

/// The latest poll of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayProcess {
    /// Its identity in Envoy.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    /// Its address.
    address: IpAddr,
    /// The document in force in all of its workers: its version in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub document: Option<String>,
    /// A newer one that it refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<String>,
    /// The time since then.
    pub milliseconds: u64,
}

impl GatewayProcess {
    /// Reads the headers of a poll.
    fn read(headers: &HeaderMap, address: IpAddr) -> Option<GatewayProcess> {
        let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let (document, refused) = match text(DOCUMENT)?.split_once(" refused=") {
            Some((document, refused)) => (document, Some(refused)),
            None => (text(DOCUMENT)?, None),
        };
        let version = |text: &str| {
            let is_one = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_one.then(|| text.to_owned())
        };
        Some(GatewayProcess {
            name: text(GATEWAY).filter(|name| !name.is_empty()).map(Into::into),
            address,
            document: version(document),
            refused: refused.and_then(version),
            milliseconds: 0,
        })
    }

    fn key(&self) -> ProcessId {
        (self.address, self.name.clone())
    }
}

/// Identifies a process.
type ProcessId = (IpAddr, Option<String>);

/// The polls of this replica.
#[derive(Debug, Default)]
pub struct Pollers {
    polls: Mutex<BTreeMap<ProcessId, (GatewayProcess, Instant)>>,
    fleet: Mutex<Arc<GatewayFleet>>,
}

impl Pollers {
    /// Takes a poll. Returns the number of gateways, if it is known.
    pub fn take_poll(&self, headers: &HeaderMap, address: IpAddr) -> Option<usize> {
        let process = GatewayProcess::read(headers, address)?;
        let number = self.fleet().number(&process);
        let mut polls = self.polls.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if polls.len() >= MOST {
            polls.retain(|_, (_, at)| now.duration_since(*at) < FORGET);
        }
        if polls.len() < MOST || polls.contains_key(&process.key()) {
            polls.insert(process.key(), (process, now));
        }
        number
    }

    /// The latest poll of each process that is not forgotten.
    pub fn processes(&self) -> Vec<GatewayProcess> {
        let polls = self.polls.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |(process, at): &(GatewayProcess, Instant)| GatewayProcess {
            milliseconds: at.elapsed().as_millis() as u64,
            ..process.clone()
        };
        let processes = polls.values().map(since);
        processes.filter(|process| process.milliseconds < FORGET.as_millis() as u64).collect()
    }

    /// The pods of gateways.
    pub fn fleet(&self) -> Arc<GatewayFleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the pods of gateways.
    pub fn know(&self, fleet: GatewayFleet) {
        *self.fleet.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fleet);
    }
}

/// Asks another replica for its polls.
///
/// # Errors
/// No answer, or another one.
pub fn ask(address: SocketAddr, tls: bool) -> std::io::Result<Vec<GatewayProcess>> {
    let answer = crate::ready::ask(address, tls, "/polls.json")?;
    let body = answer.windows(4).position(|end| end == b"\r\n\r\n").map(|at| at + 4);
    let body = body.and_then(|at| answer.get(at..)).unwrap_or_default();
    serde_json::from_slice(body).map_err(std::io::Error::other)
}
