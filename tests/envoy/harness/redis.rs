//! A real Redis that can be stopped, killed and emptied.

use std::process::{Child, Command, Stdio};

use super::machine::watch_process;
use super::port;
use super::resp::{Reply, call};
use super::wait::eventually;

/// A Redis on loopback that writes nothing to disk; dropping it kills it.
pub struct Redis {
    pub port: u16,
    password: Option<&'static str>,
    process: Child,
}

impl Redis {
    /// Anybody may use it.
    pub fn start() -> Self {
        Self::with(None)
    }

    /// It wants this password.
    pub fn with_password(password: &'static str) -> Self {
        Self::with(Some(password))
    }

    fn with(password: Option<&'static str>) -> Self {
        let port = port::free();
        let redis = Self { port, password, process: spawn(port, password) };
        redis.wait();
        redis
    }

    fn wait(&self) {
        eventually("Redis", || {
            let replies = self.replies(&[&["PING"]]).ok()?;
            (replies == [Reply::Simple("PONG".into())]).then_some(())
        });
        watch_process(self.process.id(), "redis-server");
    }

    /// Carries out a command.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> Reply {
        self.replies(&[words]).expect("Redis answers").remove(0)
    }

    fn replies(&self, commands: &[&[&str]]) -> std::io::Result<Vec<Reply>> {
        let Some(password) = self.password else { return call(self.port, commands) };
        let login: &[&str] = &["AUTH", password];
        let mut replies = call(self.port, &[&[login], commands].concat())?;
        replies.remove(0);
        Ok(replies)
    }

    /// A number that `INFO` tells, such as `total_commands_processed`.
    #[track_caller]
    pub fn info(&self, name: &str) -> u64 {
        let Reply::Bulk(text) = self.command(&["INFO"]) else { panic!("INFO is text") };
        let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
    }

    /// Forgets everything.
    pub fn flush(&self) {
        assert_eq!(self.command(&["FLUSHALL"]), Reply::Simple("OK".into()));
    }

    /// Wants another password from now on.
    pub fn change_password(&mut self, password: &'static str) {
        self.configure("requirepass", password);
        self.password = Some(password);
    }

    /// Changes a setting.
    pub fn configure(&self, setting: &str, value: &str) {
        assert_eq!(self.command(&["CONFIG", "SET", setting, value]), Reply::Simple("OK".into()));
    }

    /// Becomes a replica of `host port`, or of `NO ONE`.
    pub fn follow(&self, whom: &str) {
        let words: Vec<&str> = ["REPLICAOF"].into_iter().chain(whom.split(' ')).collect();
        assert_eq!(self.command(&words), Reply::Simple("OK".into()));
    }

    /// Lets the process sleep: connections to it open, and nothing answers.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Ends it as a crash does: from now on connections are refused.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again where it was, empty.
    pub fn restart(&mut self) {
        self.process = spawn(self.port, self.password);
        self.wait();
    }

    fn signal(&self, name: &str) {
        let command = format!("kill -{name} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(port: u16, password: Option<&str>) -> Child {
    Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir", env!("CARGO_TARGET_TMPDIR")])
        .args(password.into_iter().flat_map(|password| ["--requirepass", password]))
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed: `make test STAGES=envoy` sees to that")
}
