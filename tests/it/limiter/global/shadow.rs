//! A rule in shadow with enforced rules: of all requests, however fast they come, it admits some,
//! would refuse others, and was not asked about the rest.

use diana_policy::redis::OnFailure;
use fastrand::Rng;
use kit::fake::FakeMetrics;
use kit::model::redis::Redis;
use kit::seed;

use super::{Worker, request};

#[test]
fn every_request_counts_once_under_a_rule_in_shadow() {
    let mut rng = Rng::with_seed(seed::next());
    let mut all_not_asked = 0;
    for round in 0..24 {
        let scope = ["global", "gateway", "local"][round % 3];
        let algo = ["W", "SW", "TB"][rng.usize(..3)];
        let (limit, own) = (rng.u64(1..40), rng.u64(1..40));
        let text = format!(
            "redis: {{cluster: redis}}\nlimits: [{{Url: /, rules: [\
             {{name: r, actor: account, unit: minute, rpu: {limit}, algo: W, scope: local}}, \
             {{name: s, actor: account, unit: minute, rpu: {own}, algo: {algo}, scope: {scope}, shadow: true}}]}}]"
        );
        let mut worker = Worker::of(&text, OnFailure::Gateway);
        let mut redis = Redis::default();
        let pause = [0, 1, 5, 30][rng.usize(..4)];
        const REQUESTS: u64 = 200;
        for _ in 0..REQUESTS {
            worker.request(&request());
            worker.steps(pause, &mut |call, time| Some(redis.answer(&call.body, time)));
        }
        worker.steps(60, &mut |call, time| Some(redis.answer(&call.body, time)));
        assert_eq!(worker.verdicts.len() as u64, REQUESTS);
        let lines = FakeMetrics::default();
        worker.limiter.flush("n", &lines);
        let lines = lines.0.take();
        let of = |what: &str| -> u64 {
            let name = format!("diana.n.rule.s.{what} ");
            let line = lines.iter().find_map(|line| line.strip_prefix(&name));
            line.map_or(0, |amount| amount.parse().unwrap())
        };
        let all = ["allowed", "shadow_refused", "refused_by_others", "not_asked"].map(of);
        assert_eq!(all.iter().sum::<u64>(), REQUESTS, "{scope} {algo} {pause}: {all:?}");
        let [.., not_asked] = all;
        assert!(scope == "global" || not_asked == 0, "{scope}: {all:?}");
        all_not_asked += not_asked;
    }
    assert!(all_not_asked > 0, "too tame");
}
