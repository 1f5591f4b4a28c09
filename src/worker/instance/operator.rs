//! Operators' access to an instance.

use super::Instance;
use crate::operator::Operator;
use diana_policy::time::Micros;

impl Instance {
    /// The origin of its rules, and the wall-clock time since when they apply.
    pub(crate) fn origin(&self) -> (&'static str, Micros) {
        self.origin
    }

    /// The access of operators, if configured.
    pub(crate) fn operator(&self) -> Option<&Operator> {
        self.operator.as_deref()
    }
}
