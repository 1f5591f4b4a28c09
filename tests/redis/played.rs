//! A simulated fleet is played to the model and to a real Redis at once: the same calls, the same answers,
//! to the byte. So what is simulated with the model holds with Redis.

use std::time::{Duration, Instant};

use diana_core::redis::protocol::resp::{command, word};
use diana_core::time::Micros;

use kit::model::redis::Redis as Model;
use kit::model::wire::commands;
use kit::seed;
use kit::server::Server;
use kit::simulation::Simulation;
use kit::simulation::network::Redis;
use kit::simulation::plan::{Line, Plan};

/// Keys live a second longer than need be. A machine on which the played time is that much slower than
/// the real one sees them end too early.
const PATIENCE: Duration = Duration::from_millis(800);

/// The model, and a real Redis that is asked the same.
struct Both<'s> {
    model: Model,
    server: &'s Server,
    began: Instant,
    first: Option<Micros>,
    compared: &'s mut usize,
}

impl Redis for Both<'_> {
    fn answer(&mut self, body: &[u8], time: Micros) -> Vec<u8> {
        let answer = Redis::answer(&mut self.model, body, time);
        let played = Duration::from_micros(time - *self.first.get_or_insert(time));
        let real = self.server.exchange(&at(body, time));
        if self.began.elapsed() < played + PATIENCE {
            let [model, redis] = [&answer, &real].map(|bytes| String::from_utf8_lossy(bytes));
            let unknown = redis.starts_with("-NOSCRIPT") && model.starts_with("-NOSCRIPT");
            assert!(unknown || model == redis, "Redis says {redis:?}, the model {model:?}");
            *self.compared += 1;
        }
        answer
    }

    fn asks(&self) -> u64 {
        self.model.asks()
    }
}

/// The same call for one who is told the time.
fn at(body: &[u8], time: Micros) -> Vec<u8> {
    let mut out = Vec::new();
    for mut words in commands(body) {
        let time = time.to_string();
        if let Some(keys) = words.get(2) {
            let keys: usize = str::from_utf8(keys).unwrap().parse().unwrap();
            words[3 + keys] = time.as_bytes();
        }
        command(&mut out, words.len());
        words.iter().for_each(|one| word(&mut out, one));
    }
    out
}

#[test]
fn a_fleet_gets_the_same_answers_from_the_model_as_from_redis() {
    let server = Server::start();
    let start = seed::fresh();
    for (number, algo) in (0..).zip(["W", "SW", "TB", "LB"]) {
        server.command(&["SCRIPT", "FLUSH"]);
        server.command(&["FLUSHALL"]);
        let line = Line { lost: 5, ..Line::default() };
        let plan = Plan {
            seed: start.wrapping_add(number),
            algo,
            gateways: 3,
            workers: 2,
            rpu: 300,
            callers: 20,
            zipf: 1.5,
            demand: 1500,
            seconds: 3,
            line,
            ..Plan::default()
        };
        let mut compared = 0;
        let (model, began) = (Model::default(), Instant::now());
        let both = Both { model, server: &server, began, first: None, compared: &mut compared };
        let seen = Simulation::new(&plan, both).run();
        println!("{algo}: {compared} answers are the same; {seen:?}");
        assert!(compared > 200, "too tame");
    }
}
