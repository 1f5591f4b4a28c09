//! What requests turn out to use, where all gateways count together.

use super::{Fleet, gateway};
use crate::settling::{crowd, upstream};

const TIMEOUT: u64 = 250_000;

#[test]
fn accounts_are_charged_what_they_used() {
    for algo in ["W", "SW"] {
        let service = upstream::start();
        let together = "{actor: all, unit: day, rpu: 1000000, scope: global}";
        let together = format!("\n  - {{Url: /together, rules: [{together}]}}");
        let rules = crowd::rules(algo, "global") + &together;
        let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
        fleet.comes_together("/together");
        crowd::play(&fleet.envoys, &service);
        fleet.assert_unharmed();
    }
}
