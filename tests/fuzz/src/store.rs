//! Several workers of a gateway, as the tests of the stores have them.

#[path = "../../it/store/gateway.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
pub mod gateway;
#[path = "../../it/store/rule.rs"]
#[allow(dead_code, reason = "others share it and use the rest")]
pub mod rule;
