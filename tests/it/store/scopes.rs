//! How widely a rule is counted.

use std::rc::Rc;

use diana_core::algorithm::{Entry, token_bucket};
use diana_core::policy::redis::OnFailure;
use diana_core::policy::{Quota, Scope};
use diana_core::redis::link::Link;
use diana_core::store::tables::Tables;
use diana_core::store::{Meter, NoCodec, Stores};
use diana_core::time::{SECOND, Unit};
use kit::fake::FakeSharedData;

use super::rule::Rule;

/// An algorithm that the script in Redis does not know.
static UNKNOWN: Entry = Entry { codec: None, ..token_bucket::ENTRY };

#[test]
fn what_redis_cannot_count_is_not_counted_elsewhere_in_silence() {
    let quota = Quota::new(Unit::Second, 5);
    let known = || Rule::new("TB", quota).meter(10);
    let unknown = Meter { entry: &UNKNOWN, ..known() };
    let cold = Rule::new("TB", Quota { warm_up: Some(SECOND), ..quota }).meter(10);
    for (meter, fails) in [(known(), false), (unknown, true), (cold, true)] {
        for has_redis in [false, true] {
            let mut tables = Tables::default();
            let data = Rc::new(FakeSharedData::default());
            let mut stores = Stores::new("test".into(), data, &mut tables);
            if has_redis {
                stores = stores.with_fleet(Rc::new(Link::new(OnFailure::Gateway)));
            }
            let opened =
                stores.open(Scope::Global, meter.clone()).map(|mut store| store.fleet().is_some());
            let expected = if has_redis && fails { Err(NoCodec) } else { Ok(has_redis) };
            assert_eq!(opened, expected);
        }
    }
}
