//! How a stream ended is read of that stream, whichever root waits for what its end brings to do.

use super::{MILLISECOND, SECOND, admits, answer_all, open};
use host::Host;
use host::request::Request;

const REDIS: &str = "
namespace: shop
redis: {cluster: redis, timeout: 20ms}
limits:
  - Url: /
    rules: [{name: told, actor: device, unit: day, rpu: 1000, algo: W, scope: global,
      cost: {response: {header: x-used}, reserve: 10, max: 30}}]
";

/// No response comes to the filter where the gateway follows it, so that the stream still counts as one that may wait.
#[test]
fn a_response_that_is_followed_used_nothing_on_whichever_listener() {
    for is_first in [true, false] {
        let mut host = Host::new(11);
        host.add_cluster("redis");
        let mut vm = host.start_vm(REDIS).unwrap();
        let first = vm.in_force();
        vm.configure(&format!("{REDIS}# another listener\n")).unwrap();
        let root = if is_first { first } else { vm.in_force() };
        let [told, followed] = ["ann", "bob"].map(|caller| open(&mut vm, root, "/", caller));
        vm.run(5 * MILLISECOND);
        answer_all(&mut vm, admits);
        // From now on something is due, for which the latest root is waited for.
        let response: &[(&str, &str)] = &[(":status", "200"), ("x-used", "20")];
        let upstream = "via_upstream";
        vm.end(told, Some((response, upstream)), (Some(200), upstream, 0)).unwrap();
        vm.end(followed, None, (Some(302), "internal_redirect", 0)).unwrap();
        vm.run(2 * SECOND);
        assert_eq!(host.counter("diana.shop.rule.told.refunded"), Some(10), "{is_first}");
        assert_eq!(host.counter("diana.shop.rule.told.untold_cut"), None, "{is_first}");
    }
}

/// It was let through and charged when it came first: nobody is asked again, and what it used is what the second response says.
/// By another connection it is another one.
#[test]
fn a_request_that_comes_once_more_by_its_connection_is_charged_once() {
    for is_same in [true, false] {
        let mut host = Host::new(12);
        host.add_cluster("redis");
        let mut vm = host.start_vm(REDIS).unwrap();
        let by = |connection: u64| {
            let request = Request::get("/").header("x-device-id", "ann");
            request.property(&["connection", "id"], connection.to_le_bytes())
        };
        let first = vm.open(&by(7)).unwrap();
        vm.run(5 * MILLISECOND);
        answer_all(&mut vm, admits);
        vm.end(first, None, (Some(302), "internal_redirect", 0)).unwrap();
        let second = vm.open(&by(if is_same { 7 } else { 8 })).unwrap();
        vm.run(5 * MILLISECOND);
        assert_eq!(vm.call_outs().is_empty(), is_same, "nobody is asked about it again");
        answer_all(&mut vm, admits);
        let response: &[(&str, &str)] = &[(":status", "200"), ("x-used", "20")];
        let upstream = "via_upstream";
        vm.end(second, Some((response, upstream)), (Some(200), upstream, 0)).unwrap();
        vm.run(5 * MILLISECOND);
        answer_all(&mut vm, admits);
        vm.run(2 * SECOND);
        let counter = |what: &str| host.counter(&format!("diana.shop.rule.told.{what}"));
        assert_eq!(counter("allowed"), Some(if is_same { 1 } else { 2 }));
        assert_eq!(counter("debt"), Some(10));
        assert_eq!(counter("refunded"), (!is_same).then_some(10));
    }
}
