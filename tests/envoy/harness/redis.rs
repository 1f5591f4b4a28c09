//! A real Redis that can be stopped, killed and emptied.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kit::process_clock::{self, Wall, to_mid_hour};

use super::port;
use super::resp::{Reply, call};
use super::wait::eventually;

/// A Redis on loopback that writes nothing to disk; dropping it kills it.
pub struct Redis {
    pub port: u16,
    /// Lines of its configuration.
    settings: Vec<String>,
    /// How tests log in, if they have to.
    login: Vec<&'static str>,
    process: Child,
}

impl Redis {
    /// Anybody may use it.
    pub fn start() -> Self {
        Self::with(vec![], vec![])
    }

    /// It wants this password.
    pub fn with_password(password: &'static str) -> Self {
        Self::with(vec![format!("requirepass {password}")], vec!["AUTH", password])
    }

    /// With these lines in its configuration; `login` is the command by which tests log in.
    pub fn with(settings: Vec<String>, login: Vec<&'static str>) -> Self {
        let port = port::free();
        let process = spawn(port, &settings);
        let redis = Self { port, settings, login, process };
        redis.wait();
        redis
    }

    fn wait(&self) {
        eventually("Redis", || {
            let replies = self.replies(&[&["PING"]]).ok()?;
            (replies == [Reply::Simple("PONG".into())]).then_some(())
        });
    }

    /// Carries out a command.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> Reply {
        self.replies(&[words]).expect("Redis answers").remove(0)
    }

    fn replies(&self, commands: &[&[&str]]) -> std::io::Result<Vec<Reply>> {
        if self.login.is_empty() {
            return call(self.port, commands);
        }
        let mut replies = call(self.port, &[&[self.login.as_slice()], commands].concat())?;
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
        self.login = vec!["AUTH", password];
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

    /// Starts it again where it was, empty, as it was at first.
    pub fn restart(&mut self) {
        self.process = spawn(self.port, &self.settings);
        self.wait();
    }

    /// Has it go on, or starts it again.
    pub fn revive(&mut self) {
        if self.process.try_wait().unwrap().is_some() {
            self.restart();
        } else {
            self.thaw();
        }
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

fn spawn(port: u16, settings: &[String]) -> Child {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let clock = folder.join(format!("redis-{port}"));
    fs::create_dir_all(&clock).unwrap();
    process_clock::set(&clock, Wall::Ahead(to_mid_hour()));
    let mut process = Command::new("redis-server")
        .arg("-")
        .envs(process_clock::environment(&clock))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed: `make test STAGES=envoy` sees to that");
    let all = format!(
        "port {port}\nbind 127.0.0.1\nsave \"\"\ndir {}\n{}\n",
        folder.display(),
        settings.join("\n")
    );
    process.stdin.take().unwrap().write_all(all.as_bytes()).unwrap();
    process
}
