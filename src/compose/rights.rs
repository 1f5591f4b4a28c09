//! What teams may do. The platform decides it.

use std::collections::{BTreeMap, BTreeSet};

use diana_policy::Scope;

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Keys of rules that change requests of other routes: Diana removes the header that they name from
/// every request, so no platform can allow them.
pub const FORBIDDEN: [&str; 2] = ["over", "hot"];

/// The rights of all policies.
#[derive(Debug, Clone)]
pub struct Rights {
    /// The namespaces with policies.
    pub namespaces: NamespaceSelector,
    /// The rules of all policies of a namespace, at most.
    pub rules: usize,
    /// The callers for which all tables of a namespace have room, equally many in each: at least one.
    pub callers: usize,
    /// The scopes of rules.
    pub scopes: Vec<Scope>,
    /// The keys of entries and rules. Later versions of Diana have further keys, which no policy may
    /// use before they are in this list.
    pub keys: BTreeSet<String>,
    /// The rules of the platform's document that a policy may replace.
    pub defaults: BTreeSet<String>,
}

/// A label selector of Kubernetes.
#[derive(Debug, Clone, Default)]
pub struct NamespaceSelector {
    /// Labels that a namespace has.
    pub labels: Labels,
    /// Further requirements.
    pub expressions: Vec<(String, Expression)>,
}

/// A requirement on the value of a label.
#[derive(Debug, Clone)]
pub enum Expression {
    /// It is one of these.
    In(Vec<String>),
    /// It is absent, or none of these.
    NotIn(Vec<String>),
    /// It is present.
    Exists,
    /// It is absent.
    DoesNotExist,
}

impl NamespaceSelector {
    /// Returns true if a namespace with these labels is selected. An empty selector selects all.
    #[must_use]
    pub fn selects(&self, labels: &Labels) -> bool {
        let holds = |(key, expression): &(String, Expression)| {
            let value = labels.get(key);
            match expression {
                Expression::In(values) => value.is_some_and(|value| values.contains(value)),
                Expression::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Expression::Exists => value.is_some(),
                Expression::DoesNotExist => value.is_none(),
            }
        };
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(holds)
    }
}
