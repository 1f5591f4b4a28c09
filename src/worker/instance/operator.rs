//! What an instance does for operators.

use super::{Instance, mark};
use crate::host::Host;
use crate::operator::Operator;
use diana_limiter::report::explained::Explained;
use diana_limiter::verdict::Verdict;
use diana_policy::port::Request;
use diana_policy::time::Micros;

impl Instance {
    /// Where its rules come from, and since when they are in force, by the wall clock.
    pub(crate) fn origin(&self) -> (&'static str, Micros) {
        self.origin
    }

    /// What an operator may ask.
    pub(crate) fn operator(&self) -> Option<&Operator> {
        self.operator.as_deref()
    }

    /// As [`Instance::decide`], about a request that an operator asks about: beside the verdict stand the rules that do
    /// not apply.
    pub(crate) fn decide_explained(
        &self,
        request: &dyn Request,
        host: &dyn Host,
    ) -> (Verdict, Vec<Explained>) {
        let mut skipped = Vec::new();
        let verdict = self.judge(host, |engine| {
            engine.explain(true);
            let (verdict, rules) = engine.decide_explained(request, &self.clock(host));
            engine.explain(false);
            skipped = rules;
            if engine.is_hot() && !matches!(verdict, Verdict::Refuse(_)) {
                mark(engine, host);
            }
            verdict
        });
        (verdict, skipped)
    }
}
