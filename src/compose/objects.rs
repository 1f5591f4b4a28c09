//! The input of a composition.

use diana_config::resource::PolicyTargetRef;
use diana_policy::remote::Own;
use diana_policy::tree::Tree;

use crate::rights::{Labels, Rights};

/// The control plane of the gateways, which names routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plane {
    /// Envoy Gateway.
    EnvoyGateway,
    /// Istio.
    Istio,
}

/// The decisions of the platform.
#[derive(Debug)]
pub struct Platform {
    /// Its own document, which gateways accept.
    pub document: Tree,
    /// The settings of the gateways, which the document must fit.
    pub own: Own,
    /// What teams may do.
    pub rights: Rights,
    /// The control plane.
    pub plane: Plane,
}

/// A namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
}

/// A route that is attached to a gateway of the platform.
#[derive(Debug, Clone)]
pub struct AttachedRoute {
    /// Its namespace.
    pub namespace: String,
    /// Its kind and name.
    pub target: PolicyTargetRef,
    /// The name of each of its rules, if it has one.
    pub rules: Vec<Option<String>>,
}

/// A `LimitPolicy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// Its generation.
    pub generation: i64,
    /// Its `spec`.
    pub spec: Tree,
    /// The latest form of it that was accepted, from its status.
    pub in_force: Option<AcceptedSpec>,
}

/// A form of a policy that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSpec {
    /// Its generation.
    pub generation: i64,
    /// Its `spec`.
    pub spec: Tree,
}
