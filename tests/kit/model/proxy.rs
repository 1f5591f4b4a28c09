//! A proxy with a separate Redis for each shard.

use std::collections::{BTreeSet, HashMap};

use diana_redis::protocol::resp::{command, word};

use super::redis::Redis;
use super::wire::commands;

/// Each hash tag is in a separate Redis.
#[derive(Default)]
pub struct Proxy {
    parts: HashMap<Vec<u8>, Redis>,
    /// Whether all shards are in one Redis, so that a script loaded for one is known for all.
    is_one: bool,
    knows_script: bool,
    /// Numbers of unavailable shards.
    pub away: BTreeSet<usize>,
}

impl Proxy {
    /// A proxy with all shards in one Redis.
    pub fn one() -> Proxy {
        Proxy { is_one: true, ..Proxy::default() }
    }

    /// The response to a POST at the wall clock `time`.
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

    /// The number of decided questions.
    pub fn asks(&self) -> u64 {
        self.parts.values().map(|redis| redis.asks).sum()
    }

    /// The number of shards that received a question.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }
}

/// Splits a POST into one per call, with the number of its shard.
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

/// The text between the braces of a key.
fn tag(key: &[u8]) -> &[u8] {
    let rest = key.split(|byte| *byte == b'{').nth(1).expect("a tag");
    rest.split(|byte| *byte == b'}').next().expect("a tag")
}

/// The number of the shard with this tag: `2:namespace:number:…`, or `2:namespace` if there is only
/// one.
fn number(tag: &[u8]) -> usize {
    let number = tag.split(|byte| *byte == b':').nth(2);
    number.map_or(0, |number| str::from_utf8(number).unwrap().parse().unwrap())
}
