//! Replies of a simulated Redis.

use diana_policy::key::Seed;
use diana_policy::port::Call;
use diana_redis::protocol::Script;
use diana_redis::protocol::resp::{Value, values};

/// A call in the form that Redis receives.
#[derive(Debug)]
pub struct Seen {
    pub script: Script,
    /// The callers of the questions, in order.
    pub callers: Vec<u64>,
}

impl Seen {
    pub fn of(call: &Call) -> Seen {
        let replies = values(&call.body).unwrap();
        let [Value::Array(eval), Value::Array(quit)] = &replies[..] else { panic!("{replies:?}") };
        assert_eq!(quit[..], [Value::Bulk(b"QUIT")]);
        let words: Vec<&[u8]> = eval.iter().map(bulk).collect();
        let text = |place: usize| String::from_utf8_lossy(words[place]).into_owned();
        let keys: usize = text(2).parse().unwrap();
        let caller = |key: usize| {
            let key = text(3 + key);
            u64::from_str_radix(&key[key.len() - 16..], 16).unwrap()
        };
        Seen {
            script: if words[0] == b"EVAL" { Script::Text } else { Script::Digest },
            callers: (3..keys).map(caller).collect(),
        }
    }
}

fn bulk<'b>(reply: &Value<'b>) -> &'b [u8] {
    match reply {
        Value::Bulk(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

/// The reply that admits all questions of the call, with one rule each.
pub fn admits(call: &Call) -> Vec<u8> {
    let one = [0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0];
    decides(&one.repeat(Seen::of(call).callers.len()))
}

/// A reply of these numbers, from one of two gateways.
pub fn decides(numbers: &[i64]) -> Vec<u8> {
    decides_at(7, numbers)
}

/// As [`decides`], at this time of Redis's clock.
pub fn decides_at(time: u64, numbers: &[i64]) -> Vec<u8> {
    let mut out = format!("*{}\r\n:2\r\n:0\r\n:{time}\r\n", numbers.len() + 3);
    numbers.iter().for_each(|number| out += &format!(":{number}\r\n"));
    (out + "+OK\r\n").into_bytes()
}

pub fn no_script() -> Vec<u8> {
    b"-NOSCRIPT No matching script.\r\n+OK\r\n".into()
}

pub fn other_seed(Seed { k0, k1 }: Seed) -> Vec<u8> {
    format!("*1\r\n$32\r\n{k0:016x}{k1:016x}\r\n+OK\r\n").into_bytes()
}
