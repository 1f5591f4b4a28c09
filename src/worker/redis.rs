//! How an instance reaches Redis. Only this file knows which authority counts for the fleet.

use std::rc::Rc;

use diana_policy::key::Seed;
use diana_policy::port::{Environment, SharedData};
use diana_policy::redis::OnFailure;
use diana_policy::{Policy, Rule, Scope};
pub(crate) use diana_redis::backend::RedisConnection;
use diana_redis::client::{Client, Endpoint};
use diana_redis::protocol::Login;
use diana_redis::shard::Shards;

/// The address of Redis and its credentials, and what applies while it is unavailable.
#[derive(Clone)]
pub(crate) struct RedisAccess {
    /// The root id of the plugin that uses it.
    root_id: String,
    endpoint: Endpoint,
    on_failure: OnFailure,
    /// A line for the log if a variable of the environment is missing.
    pub(crate) missing: Option<String>,
}

impl RedisAccess {
    /// The access that a policy configures. `None` without Redis. If a variable of its credentials
    /// is missing, it does not log in: a Redis that requires a login refuses its calls, so that the
    /// gateway is in degraded mode, and serves.
    pub(crate) fn of(
        policy: &Policy,
        root_id: &str,
        environment: &dyn Environment,
    ) -> Option<RedisAccess> {
        let redis = policy.redis.as_ref()?;
        let mut missing = Vec::new();
        let mut variable = |key: &str, name: &Option<String>| {
            let name = name.as_ref()?;
            let value = environment.variable(name);
            if value.is_none() {
                missing.push(format!("redis.{key}: `{name}`"));
            }
            value
        };
        let username = variable("username_env", &redis.username_env);
        let has_secret = redis.password_secret.is_some() && environment.has_secrets();
        let password = match has_secret {
            true => environment.password(),
            false => variable("password_env", &redis.password_env),
        };
        let missing = (!missing.is_empty()).then(|| {
            format!(
                "{} is not in the environment of the VM, so Diana calls Redis without a login; \
                 see `environment_variables` of `vm_config`, and restart Envoy",
                missing.join(", ")
            )
        });
        // A user without a password cannot log in.
        let (username, password) = match (&missing, password) {
            (None, Some(password)) => (username, Some(password)),
            _ => (None, None),
        };
        let login = Login { username, password, db: redis.db };
        let (destination, timeout) = (redis.destination.clone(), redis.timeout);
        let (shards, gateways) = (Shards::new(redis.parts), redis.gateways);
        let endpoint = Endpoint { destination, timeout, login, shards, gateways };
        let (root_id, on_failure) = (root_id.into(), redis.on_failure);
        Some(RedisAccess { root_id, endpoint, on_failure, missing })
    }

    /// The connection of an instance to Redis. `random` identifies the instance there.
    pub(crate) fn open(
        self,
        namespace: &str,
        policy: &Policy,
        data: Rc<dyn SharedData>,
        seed: Seed,
        random: u64,
    ) -> RedisConnection {
        let client = Client::new(self.endpoint, namespace, data, seed, random);
        let client = client.with_rules(&self.root_id, number(policy));
        RedisConnection::new(client, self.on_failure)
    }
}

/// A number of the rules that Redis counts, in any order. Zero if there are none.
fn number(policy: &Policy) -> u64 {
    let rules = policy.rules();
    let global = rules.filter(|rule| rule.scope == Scope::Global);
    global.map(Rule::digest).fold(0, u64::wrapping_add)
}
