//! The objects of the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use diana_compose::{AcceptedSpec, AttachedRoute, Labels, Namespace, Plane, PolicyObject};
use diana_config::resource::PolicyTargetRef;
use diana_policy::tree::Tree;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;

use super::fleet::GatewayFleet;
use super::settings::{GatewayRef, Settings};
use super::watches::{KINDS, News, WatchedKind};
use crate::serve::log;
use crate::serve::order::DocumentOrder;
use crate::serve::rules::Behind;
use crate::text::plain;

/// The namespace and the name of an object.
pub type ObjectKey = (String, String);

/// A policy.
#[derive(Debug, Clone)]
pub struct TeamPolicy {
    /// Differs from that of a deleted object of the same name.
    pub uid: String,
    /// Changes with each write of the object.
    pub version: String,
    /// The input of the composition.
    pub object: PolicyObject,
    /// Its status.
    pub status: Value,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchedRoute {
    rules: Vec<Option<String>>,
    parents: Vec<ObjectKey>,
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its labels.
    pub labels: Labels,
    /// Its address, if it has one yet.
    pub address: Option<IpAddr>,
    /// Whether all of its containers have ended.
    pub has_ended: bool,
}

/// The effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectChange {
    /// None.
    Nothing,
    /// The status of policies.
    Status,
    /// The document, too.
    Document,
}

/// An object that differs may change the document.
fn differ<T: PartialEq>(one: &T, other: &T) -> ObjectChange {
    if one == other { ObjectChange::Nothing } else { ObjectChange::Document }
}

/// All objects that are known.
#[derive(Debug, Default)]
pub struct ClusterObjects {
    policies: Shelf<Arc<TeamPolicy>>,
    routes: [Shelf<WatchedRoute>; 2],
    /// Gateways with their class.
    gateways: Shelf<String>,
    namespaces: Shelf<Labels>,
    pods: BTreeMap<WatchedKind, Shelf<Pod>>,
    /// The names of routes in VirtualServices that may be those of other objects' routes.
    virtual_services: Shelf<Vec<String>>,
}

/// The objects of a kind.
#[derive(Debug)]
struct Shelf<T> {
    objects: BTreeMap<ObjectKey, T>,
    /// Those of a list that is being read.
    incoming: BTreeMap<ObjectKey, T>,
    is_listed: bool,
    /// The version of the newest object.
    version: u64,
    /// The newest request to list the objects again that is fulfilled.
    confirmed: u64,
    /// Why they cannot be read.
    problem: Option<String>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf {
            objects: BTreeMap::new(),
            incoming: BTreeMap::new(),
            is_listed: false,
            version: 0,
            confirmed: 0,
            problem: None,
        }
    }
}

impl<T> Shelf<T> {
    /// Applies an event, and returns its effect. `compare` returns that of a changed object.
    fn take(
        &mut self,
        news: News,
        read: impl Fn(&DynamicObject) -> T,
        compare: impl Fn(&T, &T) -> ObjectChange,
    ) -> ObjectChange {
        let News { kind, began, event } = news;
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.fail(kind, &began, &error),
        };
        let version =
            |object: &DynamicObject| object.metadata.resource_version.as_ref()?.parse().ok();
        if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = &event {
            self.version = self.version.max(version(object).unwrap_or(0));
        }
        self.solve(kind);
        match event {
            Event::Init => {
                self.incoming.clear();
                ObjectChange::Nothing
            }
            // The objects of a list are used once it is complete.
            Event::InitApply(object) => {
                self.incoming.insert(key(&object), read(&object));
                ObjectChange::Nothing
            }
            Event::InitDone => {
                let before =
                    std::mem::replace(&mut self.objects, std::mem::take(&mut self.incoming));
                let is_same = self.is_listed && before.keys().eq(self.objects.keys());
                let changes = before.values().zip(self.objects.values());
                let change = changes.map(|(before, now)| compare(before, now)).max();
                self.complete(kind, &began);
                if is_same {
                    change.unwrap_or(ObjectChange::Nothing)
                } else {
                    ObjectChange::Document
                }
            }
            Event::Apply(object) => {
                let read = read(&object);
                let change = self.objects.get(&key(&object)).map(|known| compare(known, &read));
                self.objects.insert(key(&object), read);
                change.unwrap_or(ObjectChange::Document)
            }
            Event::Delete(object) => {
                self.objects.remove(&key(&object));
                ObjectChange::Document
            }
        }
    }

    /// All objects are known of the time at which a watch began.
    fn complete(&mut self, kind: WatchedKind, began: &Behind) {
        self.is_listed = true;
        self.confirmed = self.confirmed.max(began.number);
        // The document that a gateway had at that time is not newer.
        let position = KINDS.iter().position(|it| *it == kind).unwrap_or(KINDS.len());
        self.version = self.version.max(began.order.version(position));
    }

    fn fail(&mut self, kind: WatchedKind, began: &Behind, error: &watcher::Error) -> ObjectChange {
        let code = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchError(status)
            | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
            _ => 0,
        };
        let (is_absent, first) = (code == 404, !self.is_listed);
        let why = match code {
            // The version from which it watched is too old. It lists them again.
            410 => return ObjectChange::Nothing,
            // A connection has ended. It is a problem only if no watch begins again.
            0 if matches!(error, watcher::Error::WatchFailed(_)) => return ObjectChange::Nothing,
            404 => "this kind is not installed, so there are none; it is asked for again".into(),
            401 | 403 => {
                format!("the API server refuses to tell them: {error}; see the roles of the chart")
            }
            _ => format!("the API server does not answer: {error}"),
        };
        if self.problem.as_ref() != Some(&why) {
            let then = if first && !is_absent { "" } else { "; the known ones stay in force" };
            log(&plain(&format!("{kind}: {why}{then}")));
            self.problem = Some(why);
        }
        if is_absent {
            self.complete(kind, began);
        }
        if is_absent && first { ObjectChange::Document } else { ObjectChange::Nothing }
    }

    fn solve(&mut self, kind: WatchedKind) {
        if self.problem.take().is_some() {
            log(&format!("{kind}: the API server tells them again"));
        }
    }
}

fn key(object: &DynamicObject) -> ObjectKey {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&object.metadata.namespace), text(&object.metadata.name))
}

fn labels(object: &DynamicObject) -> Labels {
    object.metadata.labels.clone().unwrap_or_default()
}

impl ClusterObjects {
    /// Applies an event, and returns its effect.
    pub fn take(&mut self, news: News) -> ObjectChange {
        let [http, grpc] = &mut self.routes;
        match news.kind {
            WatchedKind::Policies => self.policies.take(
                news,
                |it| Arc::new(policy(it)),
                |one, other| {
                    let is_same = one.uid == other.uid && one.object == other.object;
                    if is_same { ObjectChange::Status } else { ObjectChange::Document }
                },
            ),
            WatchedKind::HttpRoutes => http.take(news, route, differ),
            WatchedKind::GrpcRoutes => grpc.take(news, route, differ),
            WatchedKind::Gateways => {
                let class = |it: &DynamicObject| text(it.data.pointer("/spec/gatewayClassName"));
                self.gateways.take(news, |it| class(it).unwrap_or_default(), differ)
            }
            WatchedKind::Namespaces => self.namespaces.take(news, labels, differ),
            WatchedKind::Pods(_) => {
                let change = self.pods.entry(news.kind).or_default().take(news, pod, differ);
                change.min(ObjectChange::Status)
            }
            WatchedKind::VirtualServices => {
                let change = self.virtual_services.take(news, forged_names, differ);
                change.min(ObjectChange::Status)
            }
        }
    }

    /// The state of each kind of a document: whether it was listed, the newest version, the
    /// newest fulfilled request, and the problem.
    fn shelves(&self) -> [(bool, u64, u64, &Option<String>); 5] {
        fn of<T>(shelf: &Shelf<T>) -> (bool, u64, u64, &Option<String>) {
            (shelf.is_listed, shelf.version, shelf.confirmed, &shelf.problem)
        }
        let [http, grpc] = &self.routes;
        [of(&self.policies), of(http), of(grpc), of(&self.gateways), of(&self.namespaces)]
    }

    /// The reason why there is no document yet, if there is one.
    pub fn waits(&self) -> Option<String> {
        let shelves = KINDS.iter().zip(self.shelves()).filter(|(_, (is_listed, ..))| !is_listed);
        let lines: Vec<String> = shelves
            .map(|(kind, (.., problem))| {
                let why = problem.as_deref().unwrap_or("the API server has not listed them yet");
                format!("waits for {kind}: {}\n", plain(why))
            })
            .collect();
        (!lines.is_empty()).then(|| lines.concat())
    }

    /// How new the objects are.
    pub fn order(&self) -> DocumentOrder {
        DocumentOrder::of(self.shelves().map(|(_, version, ..)| version))
    }

    /// The newest request to list them again that is fulfilled.
    pub fn confirmed(&self) -> u64 {
        self.shelves().iter().map(|(.., confirmed, _)| *confirmed).min().unwrap_or(0)
    }

    /// The policies.
    pub fn policies(&self) -> &BTreeMap<ObjectKey, Arc<TeamPolicy>> {
        &self.policies.objects
    }

    /// The namespaces.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let of = |((_, name), labels): (&ObjectKey, &Labels)| Namespace {
            name: name.clone(),
            labels: labels.clone(),
        };
        self.namespaces.objects.iter().map(of).collect()
    }

    /// The routes of the platform's Gateways.
    pub fn routes(&self, settings: &Settings) -> Vec<AttachedRoute> {
        let of = |(target, route): (PolicyTargetRef, &WatchedRoute), namespace: &String| {
            AttachedRoute { namespace: namespace.clone(), target, rules: route.rules.clone() }
        };
        let all = self.routes.iter().zip(["HTTPRoute", "GRPCRoute"]).flat_map(|(shelf, kind)| {
            shelf.objects.iter().map(move |(key, route)| (kind, key, route))
        });
        all.filter(|(.., route)| route.parents.iter().any(|it| self.is_of(settings, it)))
            .map(|(kind, (namespace, name), route)| {
                of((PolicyTargetRef { kind: kind.into(), name: name.clone() }, route), namespace)
            })
            .collect()
    }

    /// The names of routes in Istio that may be those of other objects' routes, each with its object.
    pub fn forged(&self, settings: &Settings) -> BTreeSet<String> {
        let routes = self.routes(settings).into_iter().map(|route| {
            let AttachedRoute { namespace, target, rules } = route;
            let named: Vec<String> =
                rules.into_iter().flatten().filter(|name| name.contains('.')).collect();
            (target.kind, namespace, target.name, named)
        });
        let services = self.virtual_services.objects.iter();
        let services = services.map(|((namespace, name), named)| {
            ("VirtualService".to_owned(), namespace.clone(), name.clone(), named.clone())
        });
        let all = routes.chain(services).flat_map(|(kind, namespace, object, named)| {
            let line = move |name| {
                format!("the {kind} `{namespace}/{object}` has the route name `{name}`")
            };
            named.into_iter().map(line)
        });
        all.filter(|_| settings.plane() == Plane::Istio).collect()
    }

    /// The Gateways of the platform to which the targets of a policy are attached.
    pub fn gateways(&self, settings: &Settings, policy: &PolicyObject) -> Vec<ObjectKey> {
        let targets = policy.spec.get("targetRefs").map_or(&[][..], items);
        let of = |target: &Tree| {
            let [http, grpc] = &self.routes;
            let shelf = match target.get("kind").and_then(Tree::text)? {
                "HTTPRoute" => http,
                _ => grpc,
            };
            let name = target.get("name").and_then(Tree::text)?;
            shelf.objects.get(&(policy.namespace.clone(), name.into()))
        };
        let parents = targets.iter().filter_map(of).flat_map(|route| &route.parents);
        let mut gateways: Vec<ObjectKey> =
            parents.filter(|gateway| self.is_of(settings, gateway)).cloned().collect();
        gateways.sort();
        gateways.dedup();
        gateways
    }

    /// The pods of gateways, and the other replicas of this server.
    pub fn fleet(&self, settings: &Settings, own_pod: &str) -> GatewayFleet {
        let own = WatchedKind::Pods(settings.pods.len());
        let shelves = self.pods.iter().filter(|(kind, _)| **kind != own);
        let are_all =
            shelves.clone().filter(|(_, shelf)| shelf.is_listed).count() == settings.pods.len();
        let replicas = self.pods.get(&own).into_iter().flat_map(|shelf| &shelf.objects);
        let replicas = replicas
            .filter(|((_, name), pod)| name != own_pod && !pod.has_ended)
            .filter_map(|(_, pod)| pod.address);
        let pods = shelves.flat_map(|(_, shelf)| &shelf.objects);
        GatewayFleet::new(pods, self.gateways.objects.clone(), replicas.collect(), are_all)
    }

    /// Returns true if a Gateway exists and is one of the platform.
    fn is_of(&self, settings: &Settings, gateway: &ObjectKey) -> bool {
        let Some(class) = self.gateways.objects.get(gateway) else { return false };
        settings.gateways.iter().any(|it| match it {
            GatewayRef::One { namespace, name } => (namespace, name) == (&gateway.0, &gateway.1),
            GatewayRef::Class { class: wanted } => wanted == class,
        })
    }
}

fn items(tree: &Tree) -> &[Tree] {
    match tree {
        Tree::List(items) => items,
        _ => &[],
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(Into::into)
}

fn policy(object: &DynamicObject) -> TeamPolicy {
    let (namespace, name) = key(object);
    let status = object.data.get("status").cloned().unwrap_or_default();
    let in_force = status.get("inForce").and_then(|form| {
        Some(AcceptedSpec {
            generation: form.get("generation")?.as_i64()?,
            spec: tree(form.get("spec")?),
        })
    });
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (uid, version) = (text(&object.metadata.uid), text(&object.metadata.resource_version));
    let generation = object.metadata.generation.unwrap_or(0);
    let object = PolicyObject {
        namespace,
        name,
        created: object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
        generation,
        spec: object.data.get("spec").map_or(Tree::Null, tree),
        // Its own present form is none of before.
        in_force: in_force.filter(|form| form.generation != generation),
    };
    TeamPolicy { uid, version, object, status }
}

fn route(object: &DynamicObject) -> WatchedRoute {
    let list = |key: &str| object.data.pointer(key).and_then(Value::as_array);
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let parent = |parent: &Value| {
        let is = |key: &str, default: &str| {
            parent.get(key).and_then(Value::as_str).unwrap_or(default) == default
        };
        let is_gateway = is("group", "gateway.networking.k8s.io") && is("kind", "Gateway");
        let name = text(parent.get("name")).filter(|_| is_gateway)?;
        Some((text(parent.get("namespace")).unwrap_or_else(|| namespace.clone()), name))
    };
    WatchedRoute {
        rules: list("/spec/rules").map_or_else(Vec::new, |rules| {
            rules.iter().map(|rule| text(rule.get("name"))).collect()
        }),
        parents: list("/spec/parentRefs").into_iter().flatten().filter_map(parent).collect(),
    }
}

/// The names in a VirtualService that the chart's admission policy refuses.
///
/// Istio joins the name of a route and those of its matches by a dot, and the names of a route and of
/// its delegate by a hyphen: a delegate has no hosts.
fn forged_names(service: &DynamicObject) -> Vec<String> {
    fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
        value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    let name = |value: &Value| text(value.get("name")).unwrap_or_default();
    let spec = service.data.get("spec").unwrap_or(&Value::Null);
    let routes = list(spec, "http").iter().flat_map(|route| {
        let of_route = name(route);
        let is_part = list(spec, "hosts").is_empty() || route.get("delegate").is_some();
        let most = if is_part { 0 } else { 1 };
        let own = (of_route.matches('.').count() > most).then(|| of_route.clone());
        let of_matches = list(route, "match").iter().map(name).filter(|name| !name.is_empty());
        let joined = of_matches.map(move |of_match| format!("{of_route}.{of_match}"));
        own.into_iter().chain(joined.filter(|name| name.matches('.').count() > 1))
    });
    routes.collect()
}

fn pod(object: &DynamicObject) -> Pod {
    let phase = object.data.pointer("/status/phase").and_then(Value::as_str);
    Pod {
        labels: labels(object),
        address: text(object.data.pointer("/status/podIP")).and_then(|it| it.parse().ok()),
        has_ended: matches!(phase, Some("Succeeded" | "Failed")),
    }
}

/// A value of the API server as a node of a document.
fn tree(value: &Value) -> Tree {
    match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Tree::Int(whole.into()),
            None => Tree::Number(number.to_string()),
        },
        Value::String(text) => Tree::Text(text.clone()),
        Value::Array(items) => Tree::List(items.iter().map(tree).collect()),
        Value::Object(pairs) => {
            Tree::Map(pairs.iter().map(|(key, value)| (key.clone(), tree(value))).collect())
        }
    }
}
