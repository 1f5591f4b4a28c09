//! A proxy with a Redis for each part of the keys.

use std::collections::{BTreeSet, HashMap};

use diana_redis::protocol::resp::{command, word};

use super::redis::Redis;
use super::wire::commands;

/// Each hash tag lies elsewhere.
#[derive(Default)]
pub struct Proxy {
    parts: HashMap<Vec<u8>, Redis>,
    /// Whether all parts lie in one Redis, so that a script that came for one of them is known for all.
    is_one: bool,
    knows_script: bool,
    /// Numbers of the parts that are away.
    pub away: BTreeSet<usize>,
}

impl Proxy {
    /// All parts lie in one Redis.
    pub fn one() -> Proxy {
        Proxy { is_one: true, ..Proxy::default() }
    }

    /// The answer to a POST that comes when the clock shows `time`.
    pub fn answer(&mut self, body: &[u8], time: u64) -> Vec<u8> {
        let commands = commands(body);
        let (quit, calls) = commands.split_last().expect("commands");
        assert_eq!(quit[..], [b"QUIT"]);
        let answers = calls.iter().map(|call| {
            let tag = tag(call[3]);
            match self.away.contains(&number(tag)) {
                true => "-upstream failure\r\n".into(),
                false => {
                    let redis = self.parts.entry(tag.into()).or_default();
                    redis.knows_script |= self.is_one && self.knows_script;
                    let answer = redis.command(call, time);
                    self.knows_script |= redis.knows_script;
                    answer
                }
            }
        });
        (answers.collect::<String>() + "+OK\r\n").into_bytes()
    }

    /// Asks that were decided.
    pub fn asks(&self) -> u64 {
        self.parts.values().map(|redis| redis.asks).sum()
    }

    /// Parts that were ever asked.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }
}

/// What the proxy makes of a POST: one for each of its calls, with the number of the part that it is about.
pub fn split(body: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let commands = commands(body);
    let (quit, calls) = commands.split_last().expect("commands");
    let post = |call: &Vec<&[u8]>| {
        let mut out = Vec::new();
        for words in [call, quit] {
            command(&mut out, words.len());
            words.iter().for_each(|one| word(&mut out, one));
        }
        (number(tag(call[3])), out)
    };
    calls.iter().map(post).collect()
}

/// What stands between the braces of a key.
fn tag(key: &[u8]) -> &[u8] {
    let rest = key.split(|byte| *byte == b'{').nth(1).expect("a tag");
    rest.split(|byte| *byte == b'}').next().expect("a tag")
}

/// The number of the part with this tag: `2:namespace:number:…`, or `2:namespace` where there is one.
fn number(tag: &[u8]) -> usize {
    let number = tag.split(|byte| *byte == b':').nth(2);
    number.map_or(0, |number| str::from_utf8(number).unwrap().parse().unwrap())
}
