//! `near` of a rule: from what per cent of its limit on admitted requests are counted.

use crate::fields::Fields;
use diana_core::algorithm::Algorithm;
use diana_core::time::Now;

/// Reads `near`.
pub fn read(fields: &Fields<'_>, algorithm: Option<&dyn Algorithm>) -> Option<u8> {
    let node = fields.get("near")?;
    let near = node.whole(1, 99).and_then(|near| u8::try_from(near).ok())?;
    let tells = |algorithm: &dyn Algorithm| {
        let nobody = vec![0; algorithm.words()];
        algorithm.remaining(&nobody, Now::default()) == algorithm.policy().0
    };
    if !algorithm.is_none_or(tells) {
        node.key_problem(
            "means nothing where permits come one by one, as with `LB` and `warm_up`".into(),
        );
    }
    Some(near)
}
