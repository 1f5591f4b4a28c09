//! Bans: the step, and who is remembered.

mod fleet;
mod flood;
mod gateway;
mod law;
mod lifted;

use diana_core::key::Key;
use diana_core::policy::Ban;
use diana_core::time::SECOND;

const BAN: Ban = Ban {
    after: 10,
    within: 60 * SECOND,
    period: 100 * SECOND,
    max: 400 * SECOND,
    halve_after: 400 * SECOND,
};
const ANN: Key = Key { hash: 0xa55, second_hash: 5 };
