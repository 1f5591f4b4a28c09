//! Several workers of one gateway.

use host::Host;
use host::request::Request;

const SECOND: u64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND as i64;

fn config(scope: &str, unit: &str, rpu: u64) -> String {
    format!(
        "limits: [{{Url: /, rules: [{{actor: device, unit: {unit}, rpu: {rpu}, algo: W, \
         scope: {scope}}}]}}]"
    )
}

#[test]
fn workers_share_a_window_despite_a_clock_step() {
    let caller = Request::get("/").header("x-device-id", "ann");
    for step in [HOUR, -HOUR] {
        let mut host = Host::new(11);
        let mut proxy = host.start_proxy(2, &config("gateway", "minute", 100)).unwrap();
        let mut send = |worker: usize| proxy.workers[worker].request(&caller).is_admitted();
        // They read the wall clock half a second apart.
        let mut admitted = usize::from(send(0));
        host.advance(SECOND / 2);
        admitted += usize::from(send(1));
        host.clock().step_wall(step);
        for _ in 0..30 {
            host.advance(SECOND / 20);
            admitted += (0..20).filter(|turn| send(turn % 2)).count();
        }
        let most = if step > 0 { 200 } else { 100 };
        assert!((100..=most).contains(&admitted), "{step}: {admitted}");
    }
}

#[test]
fn shared_data_has_a_bounded_number_of_keys() {
    let mut host = Host::new(3);
    for rpu in 1..20 {
        let mut proxy = host.start_proxy(2, &config("local", "day", rpu)).unwrap();
        for caller in 0..50 {
            let request = Request::get("/").header("x-device-id", format!("{caller}"));
            proxy.workers[caller % 2].request(&request);
        }
    }
    // The seed, the rules, the entries, and a fixed number of slots for the last accepted configurations.
    assert!(host.shared_keys() <= 11, "they can never be deleted: {}", host.shared_keys());
}
