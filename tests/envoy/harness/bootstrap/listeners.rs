//! The file that tells Envoy which listeners there are, and may change.

use std::path::Path;

use serde_json::{Value, json};

use super::Gateway;

/// The names of the listeners.
pub const FIRST: &str = "gateway";
pub const SECOND: &str = "second";

impl Gateway {
    /// With another listener in the same VM, which has these rules of its own.
    pub fn second_listener(mut self, rules: &str) -> Self {
        self.second = Some(Self::with(rules).configuration);
        self
    }

    /// The content of `lds.json` without any listener.
    pub fn no_listeners() -> Value {
        json!({"resources": []})
    }

    /// The content of `lds.json`.
    pub fn listeners(&self, folder: &Path) -> Value {
        let mut listeners = vec![self.listener(folder)];
        if let Some(rules) = &self.second {
            let second = Self { configuration: rules.clone(), ..self.clone() };
            listeners.push(second.listener(folder));
            listeners[1]["name"] = SECOND.into();
        }
        for listener in &mut listeners {
            listener["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener".into();
        }
        json!({"resources": listeners})
    }
}
