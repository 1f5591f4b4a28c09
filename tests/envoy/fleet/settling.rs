//! What requests turn out to use, where all gateways count together.

use super::{Fleet, gateway};
use crate::settling::{crowd, logins, upstream};

/// Longer than an answer takes on a busy machine: whoever goes alone is charged elsewhere.
const TIMEOUT: u64 = 900_000;

/// By which the gateways come together.
const TOGETHER: &str = "
  - {Url: /together, rules: [{actor: all, unit: day, rpu: 1000000, scope: global}]}";

#[test]
fn accounts_are_charged_what_they_used() {
    for algo in ["W", "SW"] {
        let service = upstream::start();
        let rules = crowd::rules(algo, "global") + TOGETHER;
        let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
        fleet.comes_together("/together");
        crowd::play(&fleet.envoys, &service);
        fleet.assert_unharmed();
    }
}

#[test]
fn five_wrong_passwords_and_never_a_sixth() {
    let service = upstream::start();
    let rules = logins::rules("global") + TOGETHER;
    let fleet = Fleet::start_with(|port, _| gateway(TIMEOUT, &rules, port).before(&service));
    fleet.comes_together("/together");
    logins::play(&fleet.envoys);
    fleet.assert_unharmed();
}
