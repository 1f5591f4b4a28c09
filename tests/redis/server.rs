//! A Redis of the test's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use diana_core::redis::protocol::resp::{Reply, command, replies, word};
use diana_core::redis::protocol::{Answer, Decided, Failure, Login, Script, Trip};

pub struct Server {
    process: Child,
    folder: PathBuf,
}

impl Server {
    pub fn start() -> Server {
        Server::with(&[])
    }

    /// With more arguments. It keeps nothing on disk and listens nowhere but on its socket.
    pub fn with(arguments: &[&str]) -> Server {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("diana-redis-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut process = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no"])
            .args(arguments)
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-server can be started");
        let mut log = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = log.by_ref().map_while(Result::ok).any(|line| line.contains("ready to accept"));
        let server = Server { process, folder };
        assert!(ready, "redis-server did not start with {arguments:?}");
        // So that it never waits for a reader.
        std::thread::spawn(move || log.for_each(drop));
        server
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
        read(&replies(&self.exchange(&out)).unwrap()[0])
    }

    pub fn ask(&self, trip: &Trip, login: &Login) -> Result<Answer, Failure> {
        let ask = |script| trip.answer(login, &self.exchange(&trip.pipeline(login, script)));
        match ask(Script::Digest) {
            Err(Failure::NoScript) => ask(Script::Text),
            answer => answer,
        }
    }

    /// What was decided, where nothing can go wrong.
    pub fn decide(&self, trip: &Trip) -> Decided {
        match self.ask(trip, &Login::default()) {
            Ok(Answer::Decided(decided)) => decided,
            Ok(Answer::Seed(_)) => panic!("the seed is another"),
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Keys of callers.
    pub fn callers(&self) -> Vec<String> {
        self.keys(&format!("diana:*:????????????????:{}", "?".repeat(32)))
    }

    /// Keys of filters.
    pub fn pieces(&self) -> Vec<String> {
        self.keys("diana:*:????????????????:*")
    }

    /// In order, since Redis tells them in another one each time that it runs.
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

/// A command.
pub fn spell(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    command(&mut out, words.len());
    words.iter().for_each(|one| word(&mut out, one.as_bytes()));
    out
}

fn read(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Error(text) | Reply::Bulk(text) => {
            String::from_utf8_lossy(text).into_owned()
        }
        Reply::Integer(number) => number.to_string(),
        Reply::Nil => "nil".into(),
        Reply::Array(replies) => replies.iter().map(read).collect::<Vec<_>>().join(" "),
    }
}
