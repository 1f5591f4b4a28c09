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

/// Permits and places of the first leg of a redirect are free again when the second leg comes.
#[test]
fn second_leg_of_a_redirect_is_judged_like_any_request() {
    const RULES: &str = "
namespace: shop
limits:
  - Url: /
    rules:
    - {name: places, actor: device, in_flight: 1, scope: local}
    - {name: tokens, actor: device, unit: day, rpu: 10, algo: W, scope: local,
       cost: {response: {header: x-used}, reserve: 10, max: 30}}
    - {name: plain, actor: device, unit: day, rpu: 3, algo: W, scope: local}
";
    let mut host = Host::new(12);
    let mut vm = host.start_vm(RULES).unwrap();
    let ann = Request::get("/").header("x-device-id", "ann");
    let mut leg = None;
    for _ in 0..3 {
        if let Some(before) = leg {
            vm.end(before, None, (Some(302), "internal_redirect", 0)).unwrap();
        }
        leg = Some(vm.open(&ann).expect("one place and ten tokens are free"));
        assert!(vm.request(&ann).is_refused(), "they are taken");
    }
    let response: &[(&str, &str)] = &[(":status", "200"), ("x-used", "7")];
    let upstream = "via_upstream";
    vm.end(leg.unwrap(), Some((response, upstream)), (Some(200), upstream, 0)).unwrap();
    vm.run(2 * SECOND);
    let counter = |what: &str| host.counter(&format!("diana.shop.rule.{what}"));
    assert_eq!(counter("tokens.refunded"), Some(10 + 10 + 3));
    assert_eq!(counter("plain.allowed"), Some(3), "each leg is charged");
}
