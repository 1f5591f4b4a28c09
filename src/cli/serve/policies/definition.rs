//! The CustomResourceDefinition of policies, which is applied apart from this server.

use std::time::Duration;

use diana_config::resource::{GROUP, crd};
use kube::Client;
use kube::api::{Api, DynamicObject};
use tokio::sync::watch;
use tokio::time::sleep;

use super::watches::resource;
use crate::serve::log;
use crate::text::plain;

/// The interval of looking at it.
const INTERVAL: Duration = Duration::from_secs(60);

/// Compares its version with that of this server. Sends the remedy if they differ.
pub async fn follow(client: Client, advice: watch::Sender<Option<String>>) {
    let kind = "CustomResourceDefinition";
    let kind = resource("apiextensions.k8s.io", "v1", kind, "customresourcedefinitions");
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    loop {
        if let Ok(Some(found)) = api.get_opt(&format!("limitpolicies.{GROUP}")).await {
            let annotations = found.metadata.annotations.unwrap_or_default();
            let version = annotations.get(crd::VERSION_ANNOTATION).map_or("none", String::as_str);
            let own = env!("CARGO_PKG_VERSION");
            let new = (version != own).then(|| {
                let version = plain(version);
                format!("its CustomResourceDefinition has version {version}, and the companion {own}; apply charts/diana-crds {own}")
            });
            advice.send_if_modified(|known| {
                if let Some(line) = new.as_ref().filter(|_| *known != new) {
                    log(&format!("LimitPolicy: {line}"));
                }
                std::mem::replace(known, new.clone()) != new
            });
        }
        sleep(INTERVAL).await;
    }
}
