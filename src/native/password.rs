//! The password of Redis in a secret of Envoy, which may change without an update of the configuration.

use std::mem;

use diana_policy::Policy;

use crate::abi::{self, ConfigCall};

const NEEDS_SECRETS: &str = "redis.password_secret: needs Envoy 1.40 or later; use `password_env`";

/// The password of a configuration.
#[derive(Default)]
pub(crate) struct Password {
    /// Envoy's number of the secret, if the document names one.
    secret: Option<usize>,
    /// Its value, once Envoy has it.
    value: Option<String>,
}

impl Password {
    /// Subscribes to the secret of a document, only while the configuration is created.
    ///
    /// # Errors
    /// Why that fails.
    pub(crate) fn subscribe(
        policy: Option<&Policy>,
        call: &ConfigCall,
    ) -> Result<Password, String> {
        let redis = policy.and_then(|policy| policy.redis.as_ref());
        let Some((redis, secret)) = redis.and_then(|it| Some((it, it.password_secret.as_ref()?)))
        else {
            return Ok(Password::default());
        };
        if !abi::has_secrets() {
            return match redis.password_env {
                Some(_) => Ok(Password::default()),
                None => Err(NEEDS_SECRETS.into()),
            };
        }
        let id = call.subscribe(&secret.name, secret.sds.as_deref().unwrap_or_default());
        let id = id.ok_or_else(|| {
            let name = &secret.name;
            format!(
                "redis.password_secret: Envoy has no static secret `{name}`, or cannot use `sds`"
            )
        })?;
        let mut password = Password { secret: Some(id), value: None };
        password.look(call);
        Ok(password)
    }

    /// Reads it. Returns true if it has changed.
    pub(crate) fn look(&mut self, call: &ConfigCall) -> bool {
        let Some(id) = self.secret else { return false };
        let value = call.secret(id);
        mem::replace(&mut self.value, value.clone()) != value
    }

    /// Returns true if Envoy has not received it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.secret.is_some() && self.value.is_none()
    }

    pub(crate) fn value(&self) -> Option<String> {
        self.value.clone()
    }
}
