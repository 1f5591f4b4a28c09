//! What a Redis of the test's own says to a call.

use diana_core::redis::protocol::resp::{Value, values};

use host::call_out::{CallOut, Response};

/// What it says about one rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Ticks after which to come back; zero admits.
    pub retry: u64,
    /// Permits leased.
    pub block: u64,
}

impl Rule {
    pub const ADMITS: Rule = Rule { retry: 0, block: 0 };

    pub fn refuses(retry: u64) -> Rule {
        Rule { retry, block: 0 }
    }
}

/// How many asks of one rule each a call carries.
pub fn asks(call: &CallOut) -> usize {
    let replies = values(&call.body).expect("a pipeline");
    let Some(Value::Array(words)) = replies.first() else { panic!("{replies:?}") };
    let Some(Value::Bulk(keys)) = words.get(2) else { panic!("{words:?}") };
    let keys: usize = std::str::from_utf8(keys).unwrap().parse().unwrap();
    // The seed, the clock, and the register of gateways come first.
    keys - 3
}

/// The answer to a call of so many asks, to each of them alike.
pub fn answer(asks: usize, Rule { retry, block }: Rule) -> Response {
    let mut body = format!("*{}\r\n:1\r\n:0\r\n:7\r\n", 11 * asks + 3);
    let (wait, spend) = if retry > 0 { (-1, 0) } else { (0, 500_000) };
    for _ in 0..asks {
        let numbers = [wait, retry as i64, 0, 50, 1, 2, block as i64, 1, 0, spend, 0];
        numbers.iter().for_each(|number| body += &format!(":{number}\r\n"));
    }
    Response::new(200, &(body + "+OK\r\n"))
}
