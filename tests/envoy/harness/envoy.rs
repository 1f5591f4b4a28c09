//! One Envoy process, from its start to its end.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::ops::RangeBounds;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use kit::process_clock::{self, Wall, to_mid_hour};
use serde_json::Value;

use super::bootstrap::Gateway;
use super::client::{exchange, request};
use super::response::Response;
use super::shipped;
use super::wait::eventually;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A running Envoy; dropping it stops it.
pub struct Envoy {
    process: Child,
    pub(super) folder: PathBuf,
    admin: u16,
    /// Where its gateway listens on loopback.
    pub port: u16,
}

impl Gateway {
    /// Starts Envoy and waits until it serves.
    #[track_caller]
    pub fn start(&self) -> Envoy {
        start_all(std::slice::from_ref(self)).remove(0)
    }

    fn launch(&self) -> Envoy {
        let folder = new_folder();
        write(&folder.join("lds.json"), &self.listeners(&folder));
        write(&folder.join("cds.json"), &self.clusters_in_file());
        write(&folder.join("bootstrap.json"), &self.dynamic(&folder));
        Envoy { process: spawn(&folder, self), folder, admin: 0, port: 0 }
    }
}

/// Starts several Envoys at once and waits until they serve.
#[track_caller]
pub fn start_all(gateways: &[Gateway]) -> Vec<Envoy> {
    let mut envoys: Vec<Envoy> = gateways.iter().map(Gateway::launch).collect();
    envoys.iter_mut().for_each(Envoy::wait_until_it_serves);
    envoys
}

impl Envoy {
    #[track_caller]
    fn wait_until_it_serves(&mut self) {
        self.admin = eventually("Envoy's admin port", || {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "Envoy ended at once:\n{}", self.log());
            port_of(&fs::read_to_string(self.folder.join("admin.txt")).ok()?)
        });
        self.port = eventually("Envoy's listener", || {
            if self.stat("listener_manager.lds.update_rejected")? > 0 {
                let told = || Some(self.log()).filter(|log| log.contains("rejected"));
                panic!("Envoy refused its configuration:\n{}", eventually("the reason", told));
            }
            self.admin("/ready").filter(|answer| answer.status == 200)?;
            self.listener_port()
        });
    }

    fn listener_port(&self) -> Option<u16> {
        let listeners: Value =
            serde_json::from_str(&self.admin("/listeners?format=json")?.body).ok()?;
        let all = listeners["listener_statuses"].as_array()?;
        let found = all.iter().find(|status| status["name"] == "gateway")?;
        let port = found.pointer("/local_address/socket_address/port_value")?.as_u64()?;
        port.try_into().ok()
    }

    /// Sends a GET on a connection of its own.
    #[track_caller]
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        exchange(self.port, &request("GET", path, headers)).expect("an answer")
    }

    /// The statuses of so many equal GETs, one after the other.
    #[track_caller]
    pub fn statuses(&self, count: usize, path: &str, headers: &[(&str, &str)]) -> Vec<u16> {
        (0..count).map(|_| self.get(path, headers).status).collect()
    }

    /// Asks the admin interface.
    pub fn admin(&self, path: &str) -> Option<Response> {
        exchange(self.admin, &request("GET", path, &[])).ok()
    }

    /// Requests that are under way.
    pub fn active(&self) -> u64 {
        self.stat("http.gateway.downstream_rq_active").unwrap_or(0)
    }

    /// Waits until so many requests are under way.
    #[track_caller]
    pub fn wait_for_active(&self, count: impl RangeBounds<u64> + Debug) {
        let reached = || count.contains(&self.active()).then_some(());
        eventually(&format!("{count:?} requests under way"), reached);
    }

    /// What Envoy and the filter have logged.
    pub fn log(&self) -> String {
        let part = |name| fs::read(self.folder.join(name)).unwrap_or_default();
        let bytes = [part("logs/envoy.log"), part("logs/stderr.log")].concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The lines of the access log.
    pub fn access_log(&self) -> Vec<String> {
        let bytes = fs::read(self.folder.join("logs/access.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    /// Kibibytes of memory that the process has in use, once that has been the same for a second.
    pub fn memory(&self) -> u64 {
        let (mut last, mut times) = (0, 0);
        eventually("memory to settle", || {
            let memory = self.memory_now();
            times = if memory == last { times + 1 } else { 0 };
            last = memory;
            (times == 100).then_some(memory)
        })
    }

    /// Sets how many microseconds the wall clock is ahead, of a gateway with one that can be set.
    pub fn set_clock_ahead(&self, ahead: i64) {
        process_clock::set(&self.folder, Wall::Ahead(to_mid_hour() + ahead));
    }

    /// Kibibytes of memory that the process has in use.
    pub fn memory_now(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Fails if the filter has trapped, panicked, or been loaded anew since the start.
    #[track_caller]
    pub fn assert_unharmed(&self) {
        for count in ["vm_reload", "vm_reload_success", "vm_reload_backoff", "vm_reload_failure"] {
            assert_eq!(
                self.stat(&format!("wasm.diana.{count}")),
                Some(0),
                "{count}:\n{}",
                self.log()
            );
        }
        assert_no_trap(&self.log());
    }

    /// Asks Envoy to end, and returns how it ended and what it has logged.
    #[track_caller]
    pub fn quit(mut self) -> (ExitStatus, String) {
        exchange(self.admin, &request("POST", "/quitquitquit", &[("content-length", "0")]))
            .unwrap();
        let status = eventually("Envoy to end", || self.process.try_wait().unwrap());
        (status, self.log())
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the files of this Envoy are kept in {}", self.folder.display());
        } else {
            let _ = remove(&self.folder);
        }
    }
}

/// Fails if a log tells of a crash inside the module.
#[track_caller]
pub fn assert_no_trap(log: &str) {
    for sign in ["panicked", "Uncaught RuntimeError", "Proxy-Wasm plugin in-VM backtrace"] {
        assert!(!log.contains(sign), "the module crashed:\n{log}");
    }
}

/// What `envoy --mode validate` says of a gateway.
pub fn validate(gateway: &Gateway) -> Output {
    let folder = new_folder();
    let file = folder.join("bootstrap.json");
    write(&file, &gateway.fixed(&folder));
    let result = command().args(["--mode", "validate", "-l", "warning", "-c"]).arg(file).output();
    remove(&folder).unwrap();
    result.unwrap()
}

fn spawn(folder: &Path, gateway: &Gateway) -> Child {
    shipped::module();
    command()
        .args(["--concurrency", &gateway.worker_count().to_string()])
        .args(["--file-flush-interval-msec", "50", "--drain-strategy", "immediate"])
        .args(
            gateway
                .drain_time()
                .iter()
                .flat_map(|time| ["--drain-time-s".into(), time.to_string()]),
        )
        .args(["-l", "warning", "--component-log-level", "wasm:info"])
        .args(["--log-format", "[%E.%f][%t][%l][%n] %v"])
        .arg("-c")
        .arg(folder.join("bootstrap.json"))
        .arg("--admin-address-path")
        .arg(folder.join("admin.txt"))
        .arg("--log-path")
        .arg(folder.join("logs/envoy.log"))
        .envs(gateway.environment(folder))
        .stderr(File::create(folder.join("logs/stderr.log")).unwrap())
        .spawn()
        .unwrap()
}

fn command() -> Command {
    let mut command = Command::new(binary());
    command.current_dir(shipped::root()).arg("--disable-hot-restart");
    command
}

/// The Envoy that `DIANA_ENVOY` names, or else the one that `make run` takes.
fn binary() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = std::env::var_os("DIANA_ENVOY") {
            return path.into();
        }
        let tool =
            Command::new("python3").arg("tools/envoy.py").current_dir(shipped::root()).output();
        let text = String::from_utf8(tool.expect("python3 runs").stdout).unwrap();
        text.lines().last().expect("tools/envoy.py finds an Envoy").into()
    })
}

/// A folder for the files of one Envoy, with a folder `logs` inside.
fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("envoy-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    fs::create_dir_all(&folder).unwrap();
    // Where a log is written to a disk, a worker that writes a line stands still for as long as that is busy.
    // What Envoy reads cannot lie there: up to 1.38 it takes no file below /dev.
    let (memory, logs) = (Path::new(MEMORY).join(name), folder.join("logs"));
    if fs::create_dir(&memory).is_ok() {
        symlink(memory, logs).unwrap();
    } else {
        fs::create_dir(logs).unwrap();
    }
    folder
}

fn remove(folder: &Path) -> io::Result<()> {
    if let Ok(memory) = fs::read_link(folder.join("logs")) {
        fs::remove_dir_all(memory)?;
    }
    fs::remove_dir_all(folder)
}

pub fn write(path: &Path, content: &Value) {
    fs::write(path, content.to_string()).unwrap();
}

/// The port in `127.0.0.1:1234`.
fn port_of(address: &str) -> Option<u16> {
    address.trim().rsplit_once(':')?.1.parse().ok()
}
