//! A Redis server for one test.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use diana_redis::protocol;
use diana_redis::protocol::resp::{Value, command, values, word};
use diana_redis::protocol::{BanReply, Failure, Login, Pipeline, Reply, Script, ScriptAnswer};

use diana_policy::time::Micros;

use crate::model::Outcome;
use crate::process_clock::{self, Wall};
use crate::rules::{START, by};

/// The decisions of one call.
#[derive(Debug)]
pub struct Decided {
    pub gateways: u64,
    pub is_apart: bool,
    pub is_mixed: Option<bool>,
    pub latest_ordinal: Option<u64>,
    pub now: u64,
    pub corrupt: u64,
    /// The outcome of each question about rules.
    pub asks: Vec<Outcome>,
    /// The replies about bans of each question.
    pub bans: Vec<Vec<BanReply>>,
}

impl Decided {
    pub fn of(decided: protocol::Decided) -> Decided {
        let (mut asks, mut bans) = (Vec::new(), Vec::new());
        let ban = |reply: &Reply| match reply {
            Reply::Rule(_) => None,
            Reply::Ban(reply) => Some(*reply),
        };
        for protocol::AskReply { wait, replies } in decided.asks {
            let rules = replies.iter().filter_map(Reply::rule).copied().collect();
            asks.push(Outcome { wait, rules });
            bans.push(replies.iter().filter_map(ban).collect());
        }
        let protocol::Decided {
            gateways, is_apart, is_mixed, latest_ordinal, now, corrupt, ..
        } = decided;
        Decided { gateways, is_apart, is_mixed, latest_ordinal, now, corrupt, asks, bans }
    }
}

/// A Redis process with a stopped wall clock that the test sets, so that keys expire only when the
/// test advances it.
pub struct Server {
    process: Child,
    folder: PathBuf,
    now: Cell<Micros>,
}

impl Server {
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// Starts Redis with additional arguments. It stores nothing on disk and listens on a Unix
    /// socket only.
    pub fn with(arguments: &[&str]) -> Server {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("diana-redis-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        process_clock::set(&folder, Wall::At(START));
        let mut process = Command::new("redis-server")
            .envs(process_clock::environment(&folder))
            .args(["--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no"])
            .args(arguments)
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server can be started");
        let mut log = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = log.by_ref().map_while(Result::ok).any(|line| line.contains("ready to accept"));
        let server = Server { process, folder, now: Cell::new(START) };
        assert!(ready, "redis-server did not start with {arguments:?}");
        // Drains the log, so that Redis never blocks on it.
        std::thread::spawn(move || log.for_each(drop));
        server
    }

    /// Its wall clock, in microseconds of Unix time.
    pub fn now(&self) -> Micros {
        self.now.get()
    }

    /// Advances its wall clock.
    pub fn advance(&self, by: Micros) {
        self.now.set(self.now.get() + by);
        process_clock::set(&self.folder, Wall::At(self.now.get()));
    }

    /// Restores the initial state.
    pub fn reset(&self) {
        self.rewind();
        self.command(&["SCRIPT", "FLUSH"]);
    }

    /// Restores the initial state, but keeps scripts.
    pub fn rewind(&self) {
        self.command(&["FLUSHALL"]);
        self.now.set(START);
        process_clock::set(&self.folder, Wall::At(START));
    }

    pub fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("s")).unwrap()
    }

    /// Sends bytes and reads until Redis closes.
    pub fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        back
    }

    /// The reply to one command, as text.
    pub fn command(&self, words: &[&str]) -> String {
        let mut out = spell(words);
        out.extend(spell(&["QUIT"]));
        read(&values(&self.exchange(&out)).unwrap()[0])
    }

    /// The memory of each of these keys in bytes.
    pub fn bytes_of(&self, keys: &[String]) -> Vec<u64> {
        let usage = |key: &String| spell(&["MEMORY", "USAGE", key, "SAMPLES", "0"]);
        let mut out: Vec<u8> = keys.iter().flat_map(usage).collect();
        out.extend(spell(&["QUIT"]));
        let back = self.exchange(&out);
        let replies = values(&back).unwrap();
        replies[..keys.len()].iter().map(|reply| read(reply).parse().unwrap()).collect()
    }

    pub fn ask(&self, pipeline: &Pipeline, login: &Login) -> Result<ScriptAnswer, Failure> {
        match self.answers(&by(Script::Digest, pipeline), login).remove(0) {
            Err(Failure::NoScript) => self.answers(&by(Script::Text, pipeline), login).remove(0),
            answer => answer,
        }
    }

    /// The response to each call.
    pub fn answers(
        &self,
        pipeline: &Pipeline,
        login: &Login,
    ) -> Vec<Result<ScriptAnswer, Failure>> {
        pipeline.answers(login, &self.exchange(&pipeline.encode(login)))
    }

    /// The decisions of a batch without failures.
    pub fn decide(&self, pipeline: &Pipeline) -> Decided {
        match self.ask(pipeline, &Login::default()) {
            Ok(ScriptAnswer::Decided(decided)) => Decided::of(decided),
            Ok(ScriptAnswer::Seed(_)) => panic!("the seed is another"),
            Err(failure) => panic!("{failure}"),
        }
    }

    /// The keys of callers.
    pub fn callers(&self) -> Vec<String> {
        self.keys(&format!("diana:*:????????????????:{}", "?".repeat(32)))
    }

    /// The keys of filters.
    pub fn pieces(&self) -> Vec<String> {
        self.keys("diana:*:????????????????:*")
    }

    /// Sorted, since the order in Redis differs between runs.
    pub fn keys(&self, pattern: &str) -> Vec<String> {
        let keys = self.command(&["KEYS", pattern]);
        let mut keys: Vec<String> = keys.split_whitespace().map(str::to_owned).collect();
        keys.sort_unstable();
        keys
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Encodes a command.
pub fn spell(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    command(&mut out, words.len());
    words.iter().for_each(|one| word(&mut out, one.as_bytes()));
    out
}

fn read(reply: &Value) -> String {
    match reply {
        Value::Simple(text) | Value::Error(text) | Value::Bulk(text) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Value::Integer(number) => number.to_string(),
        Value::Nil => "nil".into(),
        Value::Array(replies) => replies.iter().map(read).collect::<Vec<_>>().join(" "),
    }
}
