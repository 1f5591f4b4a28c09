//! The scope of a rule.

use std::rc::Rc;

use diana_algorithm::{Entry, token_bucket};
use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_redis::store::{NoCodec, RedisStore};
use diana_store::CounterSpec;
use diana_store::stores::Stores;
use diana_store::tables::Tables;
use kit::fake::FakeSharedData;

use kit::store::rule::Rule;
use kit::store::together;

/// An algorithm that the Redis script does not support.
static UNKNOWN: Entry = Entry { codec: None, ..token_bucket::ENTRY };

#[test]
fn algorithm_unknown_to_redis_fails_to_open() {
    let quota = Quota::new(Unit::Second, 5);
    let known = || Rule::new("TB", quota).spec(10);
    let unknown = CounterSpec { entry: &UNKNOWN, ..known() };
    let cold = Rule::new("TB", Quota { warm_up: Some(SECOND), ..quota }).spec(10);
    for (spec, fails) in [(known(), false), (unknown, true), (cold, true)] {
        let mut tables = Tables::default();
        let data = Rc::new(FakeSharedData::default());
        let mut stores = Stores::new("test".into(), data, &mut tables);
        let opened = RedisStore::new(spec, 0, together(), &mut stores).err();
        assert_eq!(opened, fails.then_some(NoCodec));
    }
}
