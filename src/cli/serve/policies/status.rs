//! The status of a policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use diana_compose::{PolicyReason, PolicyStatus};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::fleet::{GatewayFleet, GatewayProcess};
use super::objects::{ObjectKey, TeamPolicy};

/// Silence of a pod after which its document is unknown, in milliseconds.
const SILENCE: u64 = 60_000;

/// Bytes of a form that a status keeps. An object has at most 1.5 MiB, with the present form.
const MOST_FORM: usize = 512 << 10;

/// Pods that a message names.
const MOST_NAMES: usize = 5;

/// After a mistake, the last good form of a large policy is known only until the companion restarts.
const TOO_LARGE: &str = "\nit is too large for its status to keep this form; divide it, or its limits end if it has a mistake while \
                         the companion restarts";

/// The generation of each policy in a document, by its identity.
pub type Generations = BTreeMap<String, i64>;

/// The policies of each document, by its version.
pub type Versions = BTreeMap<u64, Arc<Generations>>;

/// The documents of the pods of gateways.
pub struct PodDocuments<'p> {
    pub fleet: &'p GatewayFleet,
    pub versions: &'p Versions,
    pub pods: BTreeMap<ObjectKey, GatewayProcess>,
    /// A message for each status.
    pub advice: Option<String>,
    /// The name of this companion: others write about the Gateways of their releases.
    pub controller: &'p str,
}

impl PodDocuments<'_> {
    /// Why a pod does not limit by a policy, if it does not.
    fn lack(&self, pod: &ObjectKey, uid: &str, generation: i64) -> Option<&'static str> {
        let Some(process) = self.pods.get(pod).filter(|process| process.milliseconds < SILENCE)
        else {
            return Some("has not polled");
        };
        let version = |text: &String| u64::from_str_radix(text, 16).ok();
        let of = |text: &String| self.versions.get(&version(text)?)?.get(uid).copied();
        if process.document.as_ref().and_then(of) == Some(generation) {
            return None;
        }
        Some(match &process.refused {
            Some(_) => "refuses the document, see its log",
            None => "has another document",
        })
    }
}

/// A policy, and what became of it.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The policy.
    pub policy: Arc<TeamPolicy>,
    /// What became of it.
    pub composed: Arc<PolicyStatus>,
    /// The Gateways of its routes.
    pub gateways: Arc<[ObjectKey]>,
}

/// A condition, without the time of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StatusCondition {
    kind: &'static str,
    is_true: bool,
    reason: String,
    message: String,
}

impl Standing {
    /// The status, if it differs from the present one.
    pub fn status(&self, documents: &PodDocuments<'_>, now: Timestamp) -> Option<Value> {
        let before = &self.policy.status;
        let kept = self.composed.in_force.as_ref().map(|form| {
            json!({"generation": form.generation, "spec": serde_json::to_value(&form.spec).unwrap_or_default()})
        });
        let is_large = kept.as_ref().is_some_and(|form| form.to_string().len() > MOST_FORM);
        let of = |gateways: &[ObjectKey], before: Option<&Value>| -> Vec<Value> {
            let mut accepted = self.accepted();
            if is_large {
                accepted.message.push_str(TOO_LARGE);
            }
            let advice = documents.advice.iter().map(|advice| format!("\n{advice}"));
            accepted.message.extend(advice);
            let conditions = [accepted, self.programmed(documents, gateways)];
            conditions.iter().map(|it| it.value(self.composed.generation, before, now)).collect()
        };
        let ancestors = before.get("ancestors").and_then(Value::as_array);
        let (own, mut ancestors): (Vec<Value>, Vec<Value>) =
            ancestors.into_iter().flatten().cloned().partition(|it| {
                it.get("controllerName").and_then(Value::as_str) == Some(documents.controller)
            });
        let leads = self.leads(documents.controller, &ancestors);
        ancestors.extend(self.gateways.iter().map(|gateway| {
            let reference = reference(gateway);
            let before = own.iter().find(|it| it.get("ancestorRef") == Some(&reference));
            let conditions = of(std::slice::from_ref(gateway), before.and_then(|it| it.get("conditions")));
            json!({"ancestorRef": reference, "controllerName": documents.controller, "conditions": conditions})
        }));
        let mut status = before.as_object().cloned().unwrap_or_default();
        status.insert("ancestors".into(), ancestors.into());
        if leads {
            let conditions = of(&self.gateways, before.get("conditions"));
            status.insert("observedGeneration".into(), self.composed.generation.into());
            status.insert("conditions".into(), conditions.into());
            status.remove("inForce");
            if let Some(form) = kept.filter(|_| !is_large) {
                status.insert("inForce".into(), form);
            }
        }
        let status = Value::from(status);
        (status != *before).then_some(status)
    }

    /// Whether this companion writes the summary of the status. Of several, the first by name with a
    /// Gateway of the policy does, while it reads newer forms.
    fn leads(&self, controller: &str, others: &[Value]) -> bool {
        let is_first = |other: &Value| {
            let name = other.get("controllerName").and_then(Value::as_str).unwrap_or_default();
            let generation = other.pointer("/conditions/0/observedGeneration");
            let is_present = generation.and_then(Value::as_i64) >= Some(self.composed.generation);
            is_present && (name < controller || self.gateways.is_empty())
        };
        !others.iter().any(is_first)
    }

    fn accepted(&self) -> StatusCondition {
        let PolicyStatus { generation, refusal, in_force, .. } = &*self.composed;
        let Some(refusal) = refusal else {
            return StatusCondition {
                kind: "Accepted",
                is_true: true,
                reason: "Accepted".into(),
                message: "it is in the document of the gateways".into(),
            };
        };
        let then = match in_force {
            Some(form) if form.generation != *generation => {
                format!("\ngeneration {} stays in force", form.generation)
            }
            Some(_) => String::new(),
            None if refusal.reason == PolicyReason::TargetNotFound => String::new(),
            None => "\nit limits nothing".into(),
        };
        StatusCondition {
            kind: "Accepted",
            is_true: false,
            reason: refusal.reason.to_string(),
            message: format!("{}{then}", refusal.message),
        }
    }
}

impl Standing {
    /// Whether all pods of these Gateways limit by the policy.
    fn programmed(&self, documents: &PodDocuments<'_>, gateways: &[ObjectKey]) -> StatusCondition {
        let PolicyStatus { generation, in_force, .. } = &*self.composed;
        let of = |is_true: bool, reason: &str, message: String| StatusCondition {
            kind: "Programmed",
            is_true,
            reason: reason.into(),
            message,
        };
        let Some(form) = in_force.as_ref().filter(|_| !gateways.is_empty()) else {
            return of(false, "NotAccepted", "it is in no document of a gateway".into());
        };
        let mut pods: Vec<&ObjectKey> =
            gateways.iter().flat_map(|it| documents.fleet.of(it)).collect();
        pods.sort();
        pods.dedup();
        let lacks: Vec<(&ObjectKey, &str)> = pods
            .iter()
            .filter_map(|pod| Some((*pod, documents.lack(pod, &self.policy.uid, form.generation)?)))
            .collect();
        let what = if form.generation == *generation {
            String::new()
        } else {
            format!("generation {} is ", form.generation)
        };
        let mut message =
            format!("{what}in force on {} of {} pods", pods.len() - lacks.len(), pods.len());
        for ((namespace, name), why) in lacks.iter().take(MOST_NAMES) {
            message.push_str(&format!("\n{namespace}/{name} {why}"));
        }
        if lacks.len() > MOST_NAMES {
            message.push_str(&format!("\nand {} more", lacks.len() - MOST_NAMES));
        }
        if form.generation != *generation {
            of(false, "NotAccepted", message)
        } else if pods.is_empty() {
            of(false, "NoPods", message)
        } else if lacks.is_empty() {
            of(true, "Programmed", message)
        } else {
            of(false, "Pending", message)
        }
    }
}

impl StatusCondition {
    /// Its form in a status. The time is that of the last change of its truth.
    fn value(&self, generation: i64, before: Option<&Value>, now: Timestamp) -> Value {
        let status = if self.is_true { "True" } else { "False" };
        let conditions = before.and_then(Value::as_array).into_iter().flatten();
        let mut same = conditions.filter(|it| {
            let is = |key, text: &str| it.get(key).and_then(Value::as_str) == Some(text);
            is("type", self.kind) && is("status", status)
        });
        let since = same.next().and_then(|it| it.get("lastTransitionTime")).cloned();
        let now = || Value::from(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        json!({
            "type": self.kind,
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": since.unwrap_or_else(now),
            "reason": self.reason,
            "message": self.message,
        })
    }
}

fn reference((namespace, name): &ObjectKey) -> Value {
    json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": namespace, "name": name})
}
