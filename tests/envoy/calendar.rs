//! Midnight on a wall clock that the test sets.

use crate::harness::{Gateway, eventually};

const DAY: i64 = 86_400 * 1_000_000;

#[test]
fn each_day_gives_each_account_its_permits() {
    let envoy = Gateway::with(
        "limits:
- {Url: /window, rules: [{actor: account, unit: day, rpu: 3, algo: W}]}
- {Url: /quota, rules: [{actor: account, unit: day, rpu: 3, algo: W, scope: local, quota: {accounts: 1000}}]}",
    )
    .start();
    let day = [200, 200, 200, 503, 503];
    let account = [("x-account-id", "a")];
    for path in ["/window", "/quota"] {
        assert_eq!(envoy.statuses(5, path, &account), day, "{path}");
    }
    for number in 1..=3 {
        envoy.set_clock_ahead(number * DAY);
        for path in ["/window", "/quota"] {
            // A worker reads the wall clock once a second.
            eventually("the next day", || (envoy.get(path, &account).status == 200).then_some(()));
            assert_eq!(envoy.statuses(4, path, &account), day[1..], "{path}");
        }
    }
    envoy.assert_unharmed();
}
