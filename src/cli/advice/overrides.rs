//! Policies of Envoy Gateway that replace the one with Diana for a route or a listener.

use crate::finding::{Finding, FindingLevel};
use crate::manifest::attached::{ExtensionPolicy, ObjectName, Objects, PolicyTarget};

/// A finding for each replaced route or listener.
pub fn of(objects: &Objects) -> Vec<Finding> {
    let ours = || objects.policies.iter().filter(|policy| policy.has_diana);
    let gateways = || {
        let targets = ours().flat_map(|policy| &policy.targets);
        targets.filter(|target| target.object.kind == "Gateway" && !target.is_section)
    };
    let others = objects.policies.iter().filter(|policy| !policy.has_diana && !policy.is_merged);
    let mut found = Vec::new();
    for policy in others {
        for target in &policy.targets {
            let about = |gateway: &PolicyTarget| about(objects, policy, target, &gateway.object);
            found.extend(gateways().find_map(about));
        }
    }
    found
}

/// The finding about one target of a policy, if the policy replaces that of the gateway there.
fn about(
    objects: &Objects,
    policy: &ExtensionPolicy,
    PolicyTarget { object, is_section }: &PolicyTarget,
    gateway: &ObjectName,
) -> Option<Finding> {
    let (name, gateway_name) = (&policy.name, &gateway.name);
    let remedy = "set `mergeType: StrategicMerge` in it, so that both apply";
    let (level, message) = if object.kind == "Gateway" {
        if object != gateway || !is_section {
            return None;
        }
        let message = format!(
            "the policy `{name}` of one listener replaces the policy with Diana of the Gateway `{gateway_name}`, so Diana \
             limits nothing there; add Diana to it"
        );
        (FindingLevel::Mistake, message)
    } else {
        let route = format!("{} `{}`", object.kind, object.name);
        let known = objects.routes.iter().find(|route| route.object == *object);
        match known.map(|route| route.parents.contains(gateway)) {
            Some(false) => return None,
            Some(true) => {
                let message = format!(
                    "the policy `{name}` of the {route} replaces the policy with Diana of the Gateway `{gateway_name}`, so \
                     Diana limits nothing of this route; {remedy}"
                );
                (FindingLevel::Mistake, message)
            }
            None => {
                let message = format!(
                    "if the {route} is attached to the Gateway `{gateway_name}`, its policy `{name}` replaces the policy with \
                     Diana, so Diana limits nothing of this route; {remedy}"
                );
                (FindingLevel::Advice, message)
            }
        }
    };
    Some(Finding {
        id: "overridden-policy",
        level,
        part: policy.part.clone(),
        spans: policy.span.into_iter().collect(),
        path: String::new(),
        rules: Vec::new(),
        message,
    })
}
