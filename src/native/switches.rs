//! The switches of operators in Envoy's runtime, which they change without an update of the configuration.
//!
//! Envoy reads its runtime on the main thread only, so the thread of this module makes the main thread look at it. A switch that
//! has changed is an update by the same document, and requests do not read it.

use diana_policy::Switches;
use diana_policy::time::{Micros, SECOND};

use crate::abi;

/// The time between two looks.
pub(crate) const PERIOD: Micros = SECOND;

/// The switches of a namespace. Only on the main thread.
pub(crate) fn read(namespace: &str) -> Switches {
    let Switches { disabled, enforce } = Switches::default();
    let key = |name: &str| format!("diana.{namespace}.{name}");
    let percent = abi::runtime_int(&key("enforce"), enforce.into());
    Switches {
        disabled: abi::runtime_bool(&key("disabled"), disabled),
        enforce: u8::try_from(percent).unwrap_or(enforce).min(enforce),
    }
}

/// The line of the log about switches of a namespace.
pub(crate) fn line(namespace: &str, switches: Switches) -> String {
    let Switches { disabled, enforce } = switches;
    let effect = match (disabled, enforce) {
        (true, _) => "no request is counted, held or refused, and usage stays".into(),
        (false, 100) => "the document applies as it is".into(),
        (false, 0) => "all rules are in shadow".into(),
        (false, _) => format!(
            "rules are enforced for at most {enforce} per cent of callers, and rules for `all` are in shadow"
        ),
    };
    format!("`diana.{namespace}` in Envoy's runtime: {effect}")
}
