//! The settings of the platform for policies: the file of `--policies`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use diana_compose::{Expression, Labels, NamespaceSelector, Plane, Rights};
use diana_config::{ConfigSource, Reader};
use diana_policy::remote::Own;
use diana_policy::tree::Tree;
use diana_policy::{ModuleKind, Scope};
use serde::Deserialize;

use crate::input;
use crate::text::plain;

/// The file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    control_plane: ControlPlane,
    /// The Gateways whose routes policies may limit.
    pub gateways: Vec<GatewayRef>,
    /// The pods of their gateways.
    pub pods: Vec<PodSelector>,
    /// The keys of the gateways' own configuration, without which some documents are wrong.
    #[serde(default)]
    settings: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    namespaces: LabelSelector,
    rules: usize,
    callers: usize,
    keys: Vec<String>,
    scopes: Vec<RuleScope>,
    #[serde(default)]
    defaults: Vec<String>,
    /// The name of the Lease of the replica that writes status.
    pub lease: String,
    /// The replicas.
    pub companion: Replicas,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum ControlPlane {
    #[serde(rename = "envoy-gateway")]
    EnvoyGateway,
    #[serde(rename = "istio")]
    Istio,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleScope {
    Local,
    Gateway,
    Global,
}

/// Gateways: one, or all of a class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum GatewayRef {
    /// A Gateway.
    One {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All Gateways of a class.
    Class {
        /// The class.
        class: String,
    },
}

/// Pods of a namespace.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodSelector {
    /// The namespace.
    pub namespace: String,
    /// Labels that they have.
    pub labels: Labels,
}

/// The replicas of this server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replicas {
    /// Labels that their pods have.
    pub labels: Labels,
    /// Their port.
    pub port: u16,
    /// Whether they are servers of HTTPS.
    #[serde(default)]
    pub tls: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LabelSelector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, Deserialize)]
struct Requirement {
    key: String,
    operator: SelectorOperator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Settings {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn read(path: &Path, module: ModuleKind) -> io::Result<Settings> {
        let about = |why: String| {
            io::Error::other(format!("{}: {}", plain(&path.to_string_lossy()), plain(&why)))
        };
        let text = input::bytes(path).map_err(about)?;
        let source = ConfigSource::read(&text).map_err(|problems| about(problems.to_string()))?;
        let tree = source.documents().first().unwrap_or(&Tree::Null);
        let read = serde_json::to_value(tree).and_then(serde_json::from_value::<Settings>);
        let settings = read.map_err(|error| about(error.to_string()))?;
        settings.own(module).map_err(|why| about(format!("settings: {why}")))?;
        Ok(settings)
    }

    /// The settings of the gateways.
    ///
    /// # Errors
    /// The problems of `settings`.
    pub fn own(&self, module: ModuleKind) -> Result<Own, String> {
        let mut settings = self.settings.clone();
        settings.insert("limits".into(), serde_json::Value::Array(Vec::new()));
        let policy =
            Reader::new(module).policy(serde_json::Value::from(settings).to_string().as_bytes());
        policy.map(|policy| policy.own()).map_err(|problems| problems.to_string())
    }

    /// The control plane.
    pub fn plane(&self) -> Plane {
        match self.control_plane {
            ControlPlane::EnvoyGateway => Plane::EnvoyGateway,
            ControlPlane::Istio => Plane::Istio,
        }
    }

    /// What teams may do.
    pub fn rights(&self) -> Rights {
        let LabelSelector { match_labels, match_expressions } = self.namespaces.clone();
        let expression = |Requirement { key, operator, values }: Requirement| {
            let expression = match operator {
                SelectorOperator::In => Expression::In(values),
                SelectorOperator::NotIn => Expression::NotIn(values),
                SelectorOperator::Exists => Expression::Exists,
                SelectorOperator::DoesNotExist => Expression::DoesNotExist,
            };
            (key, expression)
        };
        let scope = |scope: &RuleScope| match scope {
            RuleScope::Local => Scope::Local,
            RuleScope::Gateway => Scope::Gateway,
            RuleScope::Global => Scope::Global,
        };
        Rights {
            namespaces: NamespaceSelector {
                labels: match_labels,
                expressions: match_expressions.into_iter().map(expression).collect(),
            },
            rules: self.rules,
            callers: self.callers,
            scopes: self.scopes.iter().map(scope).collect(),
            keys: self.keys.iter().cloned().collect(),
            defaults: self.defaults.iter().cloned().collect(),
        }
    }
}
