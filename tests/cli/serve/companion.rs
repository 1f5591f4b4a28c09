//! A running `diana serve`, and its clients.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A process of `diana serve` on loopback.
#[derive(Debug)]
pub struct Companion {
    process: Child,
    log: Lines<BufReader<ChildStderr>>,
    pub address: SocketAddr,
    /// The log up to its start.
    pub started: Vec<String>,
}

impl Companion {
    /// Serves the rules and the modules of a folder.
    pub fn start(folder: &Path) -> Companion {
        Companion::with(folder, &folder.join("rules.yaml"), &[])
    }

    /// Serves these rules and the modules of a folder, with further arguments.
    pub fn with(folder: &Path, rules: &Path, more: &[&str]) -> Companion {
        let mut companion = Companion::begin(folder, rules, ([127, 0, 0, 1], 0).into(), more);
        let url = loop {
            let line = companion.any_line();
            match line.split_once("listening on ") {
                Some((_, url)) => break url.to_owned(),
                None => companion.started.push(line),
            }
        };
        companion.address = url.rsplit('/').next().unwrap().parse().unwrap();
        companion
    }

    /// The same at an address, without waiting for the start.
    pub fn begin(folder: &Path, rules: &Path, address: SocketAddr, more: &[&str]) -> Companion {
        let mut command = Command::new(env!("CARGO_BIN_EXE_diana"));
        command.args(["serve", "--listen", &address.to_string(), "--rules"]).arg(rules);
        command.arg("--modules").arg(folder.join("modules")).args(more);
        command.env("KUBECONFIG", folder.join("kubeconfig"));
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(process.stderr.take().unwrap()).lines();
        Companion { process, log, address, started: Vec::new() }
    }

    /// The next line of the log.
    pub fn any_line(&mut self) -> String {
        self.log.next().unwrap_or_else(|| panic!("it has ended: {:?}", self.started)).unwrap()
    }

    /// Reads the log up to a line with this text.
    pub fn wait_for(&mut self, text: &str) {
        while !self.any_line().contains(text) {}
    }

    /// Reads the next line of the log, which has this text.
    pub fn next_line(&mut self, text: &str) {
        let line = self.any_line();
        assert!(line.contains(text), "found `{line}` instead of `{text}`");
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Sends these bytes, closes the client's direction, and returns the bytes of the answers.
    pub fn exchange_bytes(&self, sent: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let mut answer = Vec::new();
        // The server may close a connection with bytes that it has not read.
        _ = stream.write_all(sent);
        _ = stream.shutdown(Shutdown::Write);
        _ = stream.read_to_end(&mut answer);
        answer
    }

    /// The same as text, without the headers `date`.
    pub fn exchange(&self, sent: &[u8]) -> String {
        let answer = String::from_utf8(self.exchange_bytes(sent)).unwrap();
        answer.split_inclusive('\n').filter(|line| !line.starts_with("date: ")).collect()
    }

    /// The answer to a request.
    pub fn request(&self, method: &str, path: &str) -> String {
        self.exchange(format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes())
    }

    /// The number of the process.
    #[cfg(feature = "policies")]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let sent = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    pub fn exit_code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The status in the first line of an answer.
pub fn status(answer: &str) -> &str {
    let line = answer.lines().next().unwrap_or_default();
    line.split_once(' ').map_or(line, |(_, status)| status)
}
