//! Operators' access to an instance.

use super::{Instance, mark};
use crate::host::Host;
use crate::operator::Operator;
use diana_limiter::{Explained, Verdict};
use diana_policy::port::Request;
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

    /// Decides about a request, and explains the decision. The report of the verdict has the rules that decided, and the
    /// rules that do not apply are in the list.
    pub fn decide_explained(
        &self,
        request: &dyn Request,
        host: &dyn Host,
    ) -> (Verdict, Vec<Explained>) {
        let mut skipped = Vec::new();
        let verdict = self.judge(host, |limiter| {
            limiter.explain(true);
            let (verdict, rules) = limiter.decide_explained(request, &self.clock(host));
            limiter.explain(false);
            skipped = rules;
            if limiter.is_hot() && !matches!(verdict, Verdict::Refuse(_)) {
                mark(limiter, host);
            }
            verdict
        });
        (verdict, skipped)
    }
}
