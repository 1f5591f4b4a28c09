//! A simulated fleet is played to the model and to a real Redis at once: the same calls, the same answers,
//! to the byte. So what is simulated with the model holds with Redis.

use diana_core::algorithm::IN_FLIGHT;
use diana_core::policy::Quota;
use diana_core::redis::protocol::resp::{command, word};
use diana_core::redis::protocol::{Back, Login, Script, Settles};
use diana_core::time::{Micros, SECOND, Unit};
use fastrand::Rng;
use kit::laws::case::Case;
use kit::model::rule::Rule;
use kit::rules::{today, trip};

use kit::model::redis::Redis as Model;
use kit::model::wire::commands;
use kit::seed;
use kit::server::Server;
use kit::simulation::Simulation;
use kit::simulation::network::Redis;
use kit::simulation::plan::{Line, Plan};
use kit::simulation::seen::Seen;

/// The model, and a real Redis that is asked the same.
struct Both<'s> {
    model: Model,
    server: &'s Server,
    compared: &'s mut usize,
}

impl Redis for Both<'_> {
    fn answer(&mut self, body: &[u8], time: Micros) -> Vec<u8> {
        let answer = Redis::answer(&mut self.model, body, time);
        let real = self.server.exchange(&at(body, time));
        let [model, redis] = [&answer, &real].map(|bytes| String::from_utf8_lossy(bytes));
        let unknown = redis.starts_with("-NOSCRIPT") && model.starts_with("-NOSCRIPT");
        assert!(unknown || model == redis, "Redis says {redis:?}, the model {model:?}");
        *self.compared += 1;
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

/// Plays a fleet to both. What there was to see.
fn play(server: &Server, plan: &Plan) -> Seen {
    server.command(&["SCRIPT", "FLUSH"]);
    server.command(&["FLUSHALL"]);
    let mut compared = 0;
    let both = Both { model: Model::default(), server, compared: &mut compared };
    let seen = Simulation::new(plan, both).run();
    println!("{}: {compared} answers are the same; {seen:?}", plan.algo);
    assert!(compared > 200, "too tame");
    seen
}

fn plan(seed: u64, algo: &'static str) -> Plan {
    let line = Line { lost: 5, ..Line::default() };
    Plan {
        seed,
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
    }
}

#[test]
fn a_fleet_gets_the_same_answers_from_the_model_as_from_redis() {
    let server = Server::start();
    let start = seed::next();
    for (number, algo) in (0..).zip(["W", "SW", "TB", "LB"]) {
        play(&server, &plan(start.wrapping_add(number), algo));
    }
}

/// Each of them has one plan and another in turn, several times a second, while permits of both are on lease in all workers.
#[test]
fn callers_whose_plans_change_get_the_same_answers_and_no_more_than_the_largest_plan() {
    let server = Server::start();
    let start = seed::next();
    for (number, algo) in (0..).zip(["W", "SW", "TB"]) {
        let seed = start.wrapping_add(number);
        let seen = play(&server, &Plan { rpu: 40, gold: Some(250), ..plan(seed, algo) });
        let fullest = seen.extremes.fullest;
        assert_eq!(fullest.over(), 0, "{algo} seed {seed}: {seen:?}");
        assert!(4 * fullest.used > fullest.allowed, "{algo} seed {seed}: too tame, {seen:?}");
    }
}

/// Whoever holds places is believed for longer than each of these takes.
#[test]
fn places_in_flight_are_the_same_in_the_model_as_in_redis() {
    const CALLERS: usize = 3;
    const HOLDERS: usize = 3;
    let server = Server::start();
    let mut rng = Rng::with_seed(seed::next());
    let quota = Quota::new(Unit::Second, 6);
    let algorithm = (IN_FLIGHT.build)(&quota).unwrap();
    let rule = Rule::of(IN_FLIGHT, Case { quota, algorithm }).unwrap();
    let mut compared = 0;
    for _ in 0..40 {
        server.command(&["FLUSHALL"]);
        let mut time = today(&mut rng);
        let mut both = Both { model: Model::default(), server: &server, compared: &mut compared };
        let (mut held, mut numbers) = ([[0_u64; CALLERS]; HOLDERS], [0; HOLDERS]);
        for _ in 0..60 {
            time += rng.u64(..SECOND / 100);
            let (caller, holder) = (rng.usize(..CALLERS), rng.usize(..HOLDERS));
            let places = &mut held[holder][caller];
            let back = match rng.u8(..4) {
                0 => None,
                1 => {
                    *places += 1;
                    let term = time / SECOND - rng.u64(..2);
                    Some(Back::Holds { term, places: *places })
                }
                2 => {
                    *places = places.saturating_sub(1);
                    Some(Back::Frees { places: *places })
                }
                _ => Some(Back::Lives),
            };
            let mut charge = rule.charge(caller as u64 + 1, u64::from(back.is_none()), 0);
            let settles = back.map(|back| {
                charge.back = back;
                charge.numbers = charge.numbers.held_by(holder as u64 + 1);
                // Some are sent once more.
                numbers[holder] += u64::from(numbers[holder] == 0 || rng.u8(..5) > 0);
                Settles { sender: holder as u64 + 1, number: numbers[holder], asks: 1 }
            });
            let mut trip = trip(Some(time), vec![charge]);
            (trip.calls[0].settles, trip.calls[0].script) = (settles, Script::Text);
            both.answer(&trip.pipeline(&Login::default()), time);
        }
    }
    println!("{compared} answers are the same");
    assert!(compared > 1000, "too tame");
}
