//! The Lease: only the replica that holds it writes status.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::watches;

/// The time for which it holds.
const LENGTH: Duration = Duration::from_secs(15);

/// The time after which its holder renews it, and others look at it again.
const RENEWAL: Duration = Duration::from_secs(5);

/// The Lease, as this replica knows it.
pub struct WriterLease {
    api: Api<DynamicObject>,
    name: String,
    /// This replica.
    identity: String,
    next: Instant,
    /// When it ends unless it is renewed.
    until: Option<Instant>,
    /// What another one wrote, and since when it is the same here: clocks of machines differ.
    seen: Option<(Value, Instant)>,
}

impl WriterLease {
    /// A Lease that is not held.
    pub fn new(client: &kube::Client, name: &str, identity: String) -> WriterLease {
        let api = watches::leases(client);
        WriterLease {
            api,
            name: name.into(),
            identity,
            next: Instant::now(),
            until: None,
            seen: None,
        }
    }

    /// Returns true if this replica holds it. Renews or takes it, if that is due.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn is_held(&mut self) -> Result<bool, kube::Error> {
        let now = Instant::now();
        if now >= self.next {
            self.next = now + RENEWAL;
            if self.take(now).await? {
                self.until = Some(now + LENGTH - RENEWAL);
            }
        }
        Ok(self.until.is_some_and(|until| Instant::now() < until))
    }

    /// Renews or takes it, unless another replica has it.
    async fn take(&mut self, now: Instant) -> Result<bool, kube::Error> {
        let Some(mut present) = self.api.get_opt(&self.name).await? else {
            let new = self.written(None, 0);
            return taken(self.api.create(&PostParams::default(), &new).await);
        };
        let spec = present.data.get("spec").cloned().unwrap_or_default();
        let holder = spec.get("holderIdentity").and_then(Value::as_str).unwrap_or_default();
        let transitions = spec.get("leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let is_own = holder == self.identity;
        let (_, since) = match self.seen.take().filter(|(seen, _)| *seen == spec) {
            Some(seen) => self.seen.insert(seen),
            None => self.seen.insert((spec.clone(), now)),
        };
        if !is_own && !holder.is_empty() && now.duration_since(*since) < LENGTH {
            return Ok(false);
        }
        let acquired = spec.get("acquireTime").filter(|_| is_own);
        let next = transitions + i64::from(!is_own);
        present.data = self.written(acquired, next).data;
        taken(self.api.replace(&self.name, &PostParams::default(), &present).await)
    }

    /// Gives it up, so that another replica takes it when it looks next, and not after its length.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn release(&mut self) -> Result<(), kube::Error> {
        if self.until.take().is_none() {
            return Ok(());
        }
        let Some(mut present) = self.api.get_opt(&self.name).await? else { return Ok(()) };
        let Some(spec) = present.data.get_mut("spec").and_then(Value::as_object_mut) else {
            return Ok(());
        };
        let nobody = Value::from("");
        if spec.insert("holderIdentity".into(), nobody).is_some_and(|it| it == *self.identity) {
            taken(self.api.replace(&self.name, &PostParams::default(), &present).await)?;
        }
        Ok(())
    }

    fn written(&self, acquired: Option<&Value>, transitions: i64) -> DynamicObject {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let now = Value::from(now);
        let spec = json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LENGTH.as_secs(),
            "acquireTime": acquired.unwrap_or(&now),
            "renewTime": now,
            "leaseTransitions": transitions,
        });
        DynamicObject::new(&self.name, &watches::lease()).data(json!({"spec": spec}))
    }
}

/// Returns false if another replica was faster.
fn taken(written: Result<DynamicObject, kube::Error>) -> Result<bool, kube::Error> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}
