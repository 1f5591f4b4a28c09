//! A real Redis that can be stopped, killed and emptied.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kit::process_clock::{self, Wall, to_mid_hour};

use super::port;
use super::resp::{Reply, call};
use super::wait::eventually;

/// A Redis on loopback without persistence. Dropping it kills it.
pub struct Redis {
    pub port: u16,
    /// Lines of its configuration.
    settings: Vec<String>,
    /// The command by which tests authenticate. Empty if not required.
    login: Vec<&'static str>,
    process: Child,
}

impl Redis {
    /// Without authentication.
    pub fn start() -> Self {
        Self::with(vec![], vec![])
    }

    /// With this password.
    pub fn with_password(password: &'static str) -> Self {
        Self::with(vec![format!("requirepass {password}")], vec!["AUTH", password])
    }

    /// With these lines in its configuration. `login` is the command by which tests authenticate.
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

    /// Executes a command.
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

    /// A number in the output of `INFO`, such as `total_commands_processed`.
    #[track_caller]
    pub fn info(&self, name: &str) -> u64 {
        let Reply::Bulk(text) = self.command(&["INFO"]) else { panic!("INFO is text") };
        let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
    }

    /// Removes all data.
    pub fn flush(&self) {
        assert_eq!(self.command(&["FLUSHALL"]), Reply::Simple("OK".into()));
    }

    /// Changes the password.
    pub fn change_password(&mut self, password: &'static str) {
        self.configure("requirepass", password);
        self.login = vec!["AUTH", password];
    }

    /// Changes a setting.
    pub fn configure(&self, setting: &str, value: &str) {
        assert_eq!(self.command(&["CONFIG", "SET", setting, value]), Reply::Simple("OK".into()));
    }

    /// Makes it a replica of `host port`, or a primary with `NO ONE`.
    pub fn follow(&self, whom: &str) {
        let words: Vec<&str> = ["REPLICAOF"].into_iter().chain(whom.split(' ')).collect();
        assert_eq!(self.command(&words), Reply::Simple("OK".into()));
    }

    /// Stops the process: connections open, but there are no replies.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Continues the process.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Kills it: from now on connections are refused.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Restarts it on the same port with its initial settings, empty.
    pub fn restart(&mut self) {
        self.process = spawn(self.port, &self.settings);
        self.wait();
    }

    /// Continues or restarts it.
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
