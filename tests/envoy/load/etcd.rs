//! A real etcd, polled as in envoy/remote/etcd.yaml.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::harness::{Gateway, eventually, exchange, request};
use crate::remote::{document, in_force, metric, settles_on, wait_for_line};

/// A running etcd. Dropping it stops it.
struct Etcd {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Etcd {
    fn start() -> Etcd {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("etcd-{}", std::process::id()));
        let free =
            || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let port = free();
        let [client, peer] = [port, free()].map(|port| format!("http://127.0.0.1:{port}"));
        let process = Command::new("etcd")
            .args(["--name", "test", "--data-dir"])
            .arg(&folder)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd is installed: `make test STAGES=envoy` sees to that");
        let etcd = Etcd { process, folder, port };
        eventually("etcd", || {
            let answer = exchange(port, &request("GET", "/health", &[])).ok()?;
            answer.body.contains("true").then_some(())
        });
        etcd
    }

    /// Sends a POST to the JSON gateway.
    #[track_caller]
    fn post(&self, path: &str, body: &str) {
        let length = body.len().to_string();
        let mut bytes = request("POST", path, &[("content-length", &length)]);
        bytes.extend(body.as_bytes());
        let answer = exchange(self.port, &bytes).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    fn put(&self, key: &str, text: &str) {
        let text = BASE64_STANDARD.encode(text);
        self.post("/v3/kv/put", &format!(r#"{{"key": "{key}", "value": "{text}"}}"#));
    }

    fn delete(&self, key: &str) {
        self.post("/v3/kv/deleterange", &format!(r#"{{"key": "{key}"}}"#));
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn rules_are_put_changed_and_deleted() {
    let etcd = Etcd::start();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../envoy/remote/etcd.yaml");
    let example = fs::read_to_string(example).unwrap();
    let config = example.replace("remote:\n", "remote:\n  every: 1s\n");
    let envoy = Gateway::with(&config).cluster("config_centre", etcd.port).workers(2).start();
    wait_for_line(
        &envoy,
        "the response has no value at `/kvs/0/value`; the gateway's own rules stay active",
    );
    let key = BASE64_STANDARD.encode("diana/rules");
    for name in ["first", "second"] {
        etcd.put(&key, &document(name, 10));
        settles_on(&envoy, name);
    }
    etcd.delete(&key);
    wait_for_line(&envoy, "the response has no value at `/kvs/0/value`");
    assert_eq!(in_force(&envoy).as_deref(), Some("second"));
    etcd.put(&key, "limits: {}");
    wait_for_line(&envoy, "is invalid");
    etcd.put(&key, &document("third", 10));
    settles_on(&envoy, "third");
    drop(etcd);
    wait_for_line(&envoy, "if it cannot connect");
    assert_eq!(in_force(&envoy).as_deref(), Some("third"));
    assert!(metric(&envoy, "rejected") >= 1);
    envoy.assert_unharmed();
}
