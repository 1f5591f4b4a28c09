//! Equal decisions in Redis and in the model: random questions about random rules, with a clock
//! that steps back.

use kit::compare::play;
use kit::rules::counted_in_redis;
use kit::seed;
use kit::server::Server;

#[test]
fn redis_answers_like_the_steps_in_rust() {
    let server = Server::start();
    let start = seed::next();
    let (mut trips, mut leased, mut given_back, mut refused, mut held) = (0, 0, 0, 0, 0);
    let (mut lends, mut shared, mut owed, mut soon) = (0, 0, 0, 0);
    let (mut resets, mut in_arrears) = (0, 0);
    for number in 0..320 {
        let seed = start.wrapping_add(number);
        let play = play(&server, counted_in_redis(number as usize), seed);
        trips += play.trips;
        leased += play.leased;
        lends += play.lends;
        shared += play.shared;
        owed += play.owed;
        soon += play.soon;
        resets += play.resets;
        in_arrears += play.in_arrears;
        given_back += play.given_back;
        refused += play.refused;
        held += play.waited;
        server.command(&["FLUSHALL"]);
    }
    println!(
        "{trips} trips: {leased} leases, {given_back} back, {refused} refused, {lends} while leases were outstanding and {soon} for what is reserved, {held} held, {shared} by shared buckets"
    );
    assert!(lends > 50 && shared > 400 && owed > 400 && soon > 100 && resets > 400, "too tame");
    assert!(in_arrears > 400, "too tame: {in_arrears}");
    assert!(
        [trips, leased, given_back, refused, held].iter().all(|count| *count > 400),
        "too tame"
    );
}
