//! Configurations and listeners that change while requests are held.

use super::{assert_all_ok, changed_line, line, send};
use crate::harness::alone;

const RPU: u32 = 25;

#[test]
fn a_change_of_the_rules_strands_nobody() {
    alone();
    for scope in ["local", "gateway"] {
        let envoy = line(scope, RPU).workers(2).start();
        let mut clients = vec![send(&envoy, 25)];
        for status in [429, 503] {
            envoy.wait_for_active(10..);
            envoy.update(&changed_line(scope, RPU, &format!("response: {{status: {status}}}")));
            clients.push(send(&envoy, 25));
        }
        for (mut client, ids) in clients {
            assert_all_ok(&mut client, &ids);
        }
        envoy.wait_for_active(..=0);
        envoy.assert_unharmed();
    }
}

#[test]
fn the_end_of_a_listener_strands_nobody() {
    alone();
    let envoy = line("gateway", RPU).workers(2).start();
    let (mut client, ids) = send(&envoy, 40);
    envoy.wait_for_active(30..);
    envoy.remove_listener();
    assert_all_ok(&mut client, &ids);
    envoy.assert_unharmed();
}
