//! Watches of the API server.

use std::fmt;
use std::sync::Arc;

use diana_compose::Plane;
use diana_config::resource::{GROUP, KIND, crd};
use futures_util::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use tokio::sync::{mpsc, watch};

use super::settings::{PodSelector, Settings};
use crate::serve::rules::Behind;

/// The kinds that a document is made of, in the order of [`DocumentOrder`](crate::serve::order::DocumentOrder).
pub const KINDS: [WatchedKind; 5] = [
    WatchedKind::Policies,
    WatchedKind::HttpRoutes,
    WatchedKind::GrpcRoutes,
    WatchedKind::Gateways,
    WatchedKind::Namespaces,
];

/// A kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedKind {
    /// Policies of all namespaces.
    Policies,
    /// HTTPRoutes.
    HttpRoutes,
    /// GRPCRoutes.
    GrpcRoutes,
    /// Gateways.
    Gateways,
    /// Namespaces.
    Namespaces,
    /// Pods by this selector of the settings; the last one is of the replicas.
    Pods(usize),
    /// VirtualServices of Istio, which may have names of other objects' routes.
    VirtualServices,
}

impl fmt::Display for WatchedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WatchedKind::Policies => "LimitPolicies",
            WatchedKind::HttpRoutes => "HTTPRoutes",
            WatchedKind::GrpcRoutes => "GRPCRoutes",
            WatchedKind::Gateways => "Gateways",
            WatchedKind::Namespaces => "Namespaces",
            WatchedKind::Pods(_) => "Pods",
            WatchedKind::VirtualServices => "VirtualServices",
        })
    }
}

/// The resource of Leases.
pub fn lease() -> ApiResource {
    resource("coordination.k8s.io", "v1", "Lease", "leases")
}

/// The Leases of this server's namespace.
pub fn leases(client: &Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &lease())
}

/// A resource of the API server.
pub fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: if group.is_empty() { version.into() } else { format!("{group}/{version}") },
        kind: kind.into(),
        plural: plural.into(),
    }
}

impl WatchedKind {
    fn resource(self) -> ApiResource {
        let route = |kind, plural| resource("gateway.networking.k8s.io", "v1", kind, plural);
        match self {
            WatchedKind::Policies => resource(GROUP, crd::VERSION, KIND, "limitpolicies"),
            WatchedKind::HttpRoutes => route("HTTPRoute", "httproutes"),
            WatchedKind::GrpcRoutes => route("GRPCRoute", "grpcroutes"),
            WatchedKind::Gateways => route("Gateway", "gateways"),
            WatchedKind::Namespaces => resource("", "v1", "Namespace", "namespaces"),
            WatchedKind::Pods(_) => resource("", "v1", "Pod", "pods"),
            WatchedKind::VirtualServices => {
                resource("networking.istio.io", "v1", "VirtualService", "virtualservices")
            }
        }
    }

    /// The objects of a namespace.
    pub fn within(self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), namespace, &self.resource())
    }
}

/// News of a watch.
#[derive(Debug)]
pub struct News {
    /// A kind of objects.
    pub kind: WatchedKind,
    /// The requests that this watch fulfils with its first list.
    pub began: Arc<Behind>,
    /// The event.
    pub event: Result<watcher::Event<DynamicObject>, watcher::Error>,
}

/// Watches all that the settings need. A watch begins again if a gateway may have a newer document.
pub fn start(
    client: &Client,
    settings: &Settings,
    behind: &watch::Receiver<Behind>,
) -> mpsc::Receiver<News> {
    // The reader of the events is slower than a list of the API server.
    let (news, receiver) = mpsc::channel(1024);
    let of_istio = (settings.plane() == Plane::Istio).then_some(WatchedKind::VirtualServices);
    for kind in KINDS.into_iter().chain(of_istio) {
        let api = Api::all_with(client.clone(), &kind.resource());
        let behind = KINDS.contains(&kind).then(|| behind.clone());
        tokio::spawn(run(kind, api, watcher::Config::default(), behind, news.clone()));
    }
    let own = PodSelector {
        namespace: client.default_namespace().into(),
        labels: settings.companion.labels.clone(),
    };
    for (number, pods) in settings.pods.iter().chain([&own]).enumerate() {
        let kind = WatchedKind::Pods(number);
        let selector = pods.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let config = watcher::Config::default().labels(&selector.collect::<Vec<_>>().join(","));
        let api = kind.within(client, &pods.namespace);
        tokio::spawn(run(kind, api, config, None, news.clone()));
    }
    receiver
}

async fn run(
    kind: WatchedKind,
    api: Api<DynamicObject>,
    config: watcher::Config,
    mut behind: Option<watch::Receiver<Behind>>,
    news: mpsc::Sender<News>,
) {
    loop {
        let began = behind.as_mut().map(|it| it.borrow_and_update().clone()).unwrap_or_default();
        let began = Arc::new(began);
        let events = watcher(api.clone(), config.clone()).default_backoff();
        let mut events = std::pin::pin!(events);
        let again = async {
            match &mut behind {
                Some(behind) => behind.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        let mut again = std::pin::pin!(again);
        // A list that is being read is completed first: requests may come faster than lists.
        let mut is_listed = false;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                is_there = &mut again, if is_listed => if is_there { break } else { return },
            };
            let Some(event) = event else { break };
            is_listed |= matches!(event, Ok(watcher::Event::InitDone));
            if news.send(News { kind, began: began.clone(), event }).await.is_err() {
                return;
            }
        }
    }
}
