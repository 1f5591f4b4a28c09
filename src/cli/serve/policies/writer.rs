//! Writes the status of policies, if this replica holds the Lease.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use diana_compose::PolicyObject;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use super::fleet::{GatewayProcess, Pollers, ask};
use super::lease::WriterLease;
use super::settings::Replicas;
use super::status::{PodDocuments, Standing, Versions};
use super::watches::WatchedKind;
use crate::serve::log;
use crate::text::plain;

/// The interval of reading polls.
const INTERVAL: Duration = Duration::from_secs(1);

/// What became of all policies.
#[derive(Debug, Default)]
pub struct PolicyReport {
    /// The policies.
    pub standings: Vec<Standing>,
    /// The documents of late.
    pub versions: Versions,
}

/// Writes each status that has changed.
pub struct StatusWriter {
    pub client: Client,
    pub lease: WriterLease,
    /// The other replicas.
    pub replicas: Replicas,
    pub pollers: Arc<Pollers>,
    /// The name of the companion among those of other releases.
    pub controller: String,
    /// The message about the CustomResourceDefinition for each status, if there is one.
    pub advice: watch::Receiver<Option<String>>,
    /// The versions of the policies of which the status was written, or cannot be: until the watch
    /// has the next one, the known status is old.
    pub written: BTreeMap<String, String>,
    /// The last problem in the log.
    pub problem: Option<String>,
}

impl StatusWriter {
    /// Writes until this server leaves.
    pub async fn run(
        mut self,
        reports: watch::Receiver<Arc<PolicyReport>>,
        mut leaves: watch::Receiver<bool>,
    ) {
        tokio::select! {
            () = self.follow(reports) => {}
            _ = leaves.wait_for(|leaves| *leaves) => {}
        }
        if let Err(error) = self.lease.release().await {
            log(&plain(&format!("the Lease cannot be released: {error}")));
        }
    }

    /// Writes until the sender of reports ends.
    async fn follow(&mut self, mut reports: watch::Receiver<Arc<PolicyReport>>) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = reports.changed() => if changed.is_err() { return },
            }
            let report = reports.borrow_and_update().clone();
            let written = self.write_all(&report).await;
            let why = written
                .err()
                .map(|error| plain(&format!("the status of policies cannot be written: {error}")));
            if let Some(why) = why.as_ref().filter(|why| self.problem.as_ref() != Some(*why)) {
                log(why);
            }
            self.problem = why;
        }
    }

    async fn write_all(&mut self, report: &PolicyReport) -> Result<(), kube::Error> {
        // There are no policies.
        if report.standings.is_empty() || !self.lease.is_held().await? {
            return Ok(());
        }
        let fleet = self.pollers.fleet();
        let advice = self.advice.borrow().clone();
        let pods = fleet.latest(&self.polls().await);
        let (versions, controller) = (&report.versions, self.controller.as_str());
        let documents = PodDocuments { fleet: &fleet, versions, pods, advice, controller };
        let present: BTreeMap<&str, &str> = report
            .standings
            .iter()
            .map(|it| (it.policy.uid.as_str(), it.policy.version.as_str()))
            .collect();
        self.written.retain(|uid, version| present.get(uid.as_str()) == Some(&version.as_str()));
        for standing in &report.standings {
            let policy = &standing.policy;
            if self.written.contains_key(&policy.uid) {
                continue;
            }
            let Some(status) = standing.status(&documents, Timestamp::now()) else { continue };
            // To write thousands takes longer than the Lease holds.
            if !self.lease.is_held().await? {
                return Ok(());
            }
            match self.write(standing, &status).await {
                Ok(()) => _ = self.written.insert(policy.uid.clone(), policy.version.clone()),
                // It was changed or deleted: the watch will have an event.
                Err(kube::Error::Api(status)) if [404, 409, 422].contains(&status.code) => {}
                // Of this policy only: it is too large, or an admission webhook fails.
                Err(kube::Error::Api(status)) if [400, 413, 500].contains(&status.code) => {
                    let PolicyObject { namespace, name, .. } = &policy.object;
                    log(&plain(&format!(
                        "the status of `{namespace}/{name}` cannot be written: {status}"
                    )));
                    self.written.insert(policy.uid.clone(), policy.version.clone());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The polls of all replicas.
    async fn polls(&self) -> Vec<GatewayProcess> {
        let Replicas { port, tls, .. } = self.replicas;
        let fleet = self.pollers.fleet();
        let asked = fleet.replicas.iter().map(|address| {
            let address = SocketAddr::from((*address, port));
            spawn_blocking(move || ask(address, tls))
        });
        let mut polls = self.pollers.processes();
        // One that starts or ends has no polls.
        for asked in asked.collect::<Vec<_>>() {
            polls.extend(asked.await.into_iter().flatten().flatten());
        }
        polls
    }

    async fn write(&self, standing: &Standing, status: &Value) -> Result<(), kube::Error> {
        let policy = &standing.policy;
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": policy.version},
            {"op": "add", "path": "/status", "value": status},
        ]);
        let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        let api = WatchedKind::Policies.within(&self.client, &policy.object.namespace);
        let patch = Patch::<()>::Json(patch);
        api.patch_status(&policy.object.name, &PatchParams::default(), &patch).await.map(|_| ())
    }
}
