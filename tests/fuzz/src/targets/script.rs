//! The script in a real Redis, compared with the same steps in Rust, with questions that the fuzzer
//! chooses.

use kit::rules::counted_in_redis;

use kit::compare;
use kit::server::Server;

thread_local! {
    // The parent process ends it together with this process.
    static SERVER: &'static Server = Box::leak(Box::new(Server::start()));
}

pub fn run(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    fastrand::feed(rest);
    SERVER.with(|server| {
        server.command(&["FLUSHALL"]);
        compare::play(server, counted_in_redis(usize::from(*first)), 0);
    });
}
