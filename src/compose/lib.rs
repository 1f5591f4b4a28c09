//! The document of a platform and the `LimitPolicy` objects of its teams become one document.
//!
//! [`compose`] depends only on its arguments, the objects of the API server, so replicas of the
//! companion serve the same bytes. Each entry of a policy has a condition on the routes that the
//! policy names, so it decides about requests of these routes only. A document that gateways would
//! refuse is never composed: the newest policies are left out of it.

mod compose;
mod form;
mod objects;
mod rights;
mod routes;
mod text;

pub use compose::{Composition, PolicyStatus, compose};
pub use form::{PolicyReason, PolicyRefusal};
pub use objects::{AcceptedSpec, AttachedRoute, Namespace, Plane, Platform, PolicyObject};
pub use rights::{Expression, Labels, NamespaceSelector, Rights};
