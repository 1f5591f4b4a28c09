//! An Envoy process, from its start to its end.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::ops::{Deref, RangeBounds};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::thread;

use kit::process_clock::{self, Wall, to_mid_hour};
use serde_json::{Value, json};

use super::bootstrap::{Gateway, access_log_of, socket_of};
use super::client::{exchange, request};
use super::response::Response;
use super::shipped;
use super::wait::eventually;

pub(super) const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub(super) const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";

/// The id of the node of each Envoy.
pub const NODE: &str = "gateway-7";

/// The folder for files in memory on Linux.
const MEMORY: &str = "/dev/shm";

/// A running gateway. A separate Envoy stops when it is dropped.
pub struct Envoy {
    process: Arc<Process>,
    /// The name of the gateway.
    pub(super) name: String,
    /// Its port on loopback.
    pub port: u16,
}

/// An Envoy process. Dropping it kills it.
pub struct Process {
    child: Child,
    pub(super) folder: PathBuf,
    admin: u16,
    /// Whether a test has failed, so that the files are kept.
    has_failed: AtomicBool,
}

/// An Envoy that tests share, and the content of its files.
struct Shared {
    process: Arc<Process>,
    listeners: Vec<Value>,
    clusters: Vec<Value>,
}

/// By the number of workers.
static SHARED: Mutex<BTreeMap<u32, Shared>> = Mutex::new(BTreeMap::new());

impl Gateway {
    /// Starts it in a separate Envoy, and waits until it serves requests.
    #[track_caller]
    pub fn start(&self) -> Envoy {
        start_all(std::slice::from_ref(self)).remove(0)
    }

    /// Starts it in an Envoy shared with other gateways of the same number of workers, and waits
    /// until it serves requests. It has a separate VM.
    ///
    /// An Envoy compiles the module once for all of its VMs, which takes more than a second.
    #[track_caller]
    pub fn start_shared(&self) -> Envoy {
        if shipped::is_native() {
            // Compiles nothing, and its environment is that of the process.
            return self.start();
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = self.worker_count();
        // It is inserted again only if the gateway serves requests.
        let mut shared = all.remove(&workers).unwrap_or_else(|| Shared::start(workers));
        let mut gateway = self.clone();
        gateway.name = format!("gateway-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let (process, name) = (Arc::clone(&shared.process), gateway.name.clone());
        let clusters = gateway.clusters_in_file();
        if !clusters.is_empty() {
            shared.clusters.extend(clusters);
            process.put_clusters(&shared.clusters);
        }
        shared.listeners.push(gateway.listener(&process.folder));
        process.put_listeners(&shared.listeners);
        let port = process.wait_for_listener(&name);
        all.insert(workers, shared);
        Envoy { process, name, port }
    }

    fn launch(&self) -> Process {
        let folder = new_folder();
        write(&folder.join("lds.json"), &resources(LISTENER, &[self.listener(&folder)]));
        write(&folder.join("cds.json"), &resources(CLUSTER, &self.clusters_in_file()));
        write(&folder.join("bootstrap.json"), &self.dynamic(&folder));
        let child = spawn(&folder, self);
        Process { child, folder, admin: 0, has_failed: AtomicBool::new(false) }
    }
}

/// Starts several Envoys concurrently, and waits until they serve requests.
#[track_caller]
pub fn start_all(gateways: &[Gateway]) -> Vec<Envoy> {
    let launched: Vec<Process> = gateways.iter().map(Gateway::launch).collect();
    let serve = launched.into_iter().zip(gateways).map(|(mut process, Gateway { name, .. })| {
        process.wait_for_admin();
        let port = process.wait_for_listener(name);
        Envoy { process: Arc::new(process), name: name.clone(), port }
    });
    serve.collect()
}

/// Starts an Envoy with this bootstrap and the settings of a gateway for its process, and waits until
/// its listener of this name serves requests.
#[track_caller]
pub(super) fn start_file(settings: &Gateway, bootstrap: &Value, name: &str) -> Envoy {
    let folder = new_folder();
    write(&folder.join("bootstrap.json"), bootstrap);
    let child = spawn(&folder, settings);
    let mut process = Process { child, folder, admin: 0, has_failed: AtomicBool::new(false) };
    process.wait_for_admin();
    let port = eventually("Envoy's listener", || {
        process.admin("/ready").filter(|answer| answer.status == 200)?;
        process.listener_port(name)
    });
    Envoy { process: Arc::new(process), name: name.into(), port }
}

impl Shared {
    /// Its first gateway is idle.
    fn start(workers: u32) -> Self {
        let first = Gateway::with("limits: []").workers(workers);
        let process = Arc::clone(&first.start().process);
        let listeners = vec![first.listener(&process.folder)];
        end_with_tests();
        Shared { process, listeners, clusters: vec![] }
    }
}

/// Ends shared Envoys at the exit of the test process, since statics are not dropped.
#[allow(unsafe_code, reason = "the standard library has no such function")]
fn end_with_tests() {
    static ONCE: Once = Once::new();
    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> i32;
    }
    extern "C" fn end() {
        SHARED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    // SAFETY: the function takes no argument, and exists until the end.
    ONCE.call_once(|| assert_eq!(unsafe { atexit(end) }, 0));
}

/// The content of a file that Envoy watches: resources of one kind.
pub(super) fn resources(kind: &str, all: &[Value]) -> Value {
    let mut all = all.to_vec();
    all.iter_mut().for_each(|resource| resource["@type"] = kind.into());
    json!({"resources": all})
}

impl Envoy {
    /// The Unix domain socket of a gateway that has one.
    pub fn socket(&self) -> PathBuf {
        socket_of(&self.process.folder, &self.name)
    }

    /// Sends a GET on a new connection.
    #[track_caller]
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        exchange(self.port, &request("GET", path, headers)).expect("an answer")
    }

    /// The statuses of `count` equal GETs in sequence.
    #[track_caller]
    pub fn statuses(&self, count: usize, path: &str, headers: &[(&str, &str)]) -> Vec<u16> {
        (0..count).map(|_| self.get(path, headers).status).collect()
    }

    /// The number of active requests.
    pub fn active(&self) -> u64 {
        self.stat(&format!("http.{}.downstream_rq_active", self.name)).unwrap_or(0)
    }

    /// The value of a counter or gauge of the filter.
    pub fn metric(&self, name: &str) -> Option<u64> {
        self.metric_of(&self.name, name)
    }

    /// Waits until the number of active requests is in this range.
    #[track_caller]
    pub fn wait_for_active(&self, count: impl RangeBounds<u64> + Debug) {
        let reached = || count.contains(&self.active()).then_some(());
        eventually(&format!("{count:?} requests under way"), reached);
    }

    /// The lines of the access log.
    pub fn access_log(&self) -> Vec<String> {
        let bytes = fs::read(access_log_of(&self.folder, &self.name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
    }

    /// Fails if the filter has trapped, panicked, or been reloaded since the start.
    #[track_caller]
    pub fn assert_unharmed(&self) {
        assert_no_trap(&self.log());
        if shipped::is_native() {
            return;
        }
        for count in ["vm_reload", "vm_reload_success", "vm_reload_backoff", "vm_reload_failure"] {
            // Envoy 1.38 counts those of a cluster's filter under the cluster.
            let found = self.stats(&format!(r"(^|\.)wasm\.diana\.{count}$")).unwrap_or_default();
            let is_unharmed = !found.is_empty() && found.iter().all(|(_, value)| *value == 0);
            assert!(is_unharmed, "{found:?}:\n{}", self.log());
        }
    }

    /// Ends Envoy gracefully, and returns its exit status and log.
    #[track_caller]
    pub fn quit(mut self) -> (ExitStatus, String) {
        exchange(self.admin, &request("POST", "/quitquitquit", &[("content-length", "0")]))
            .unwrap();
        let process = Arc::get_mut(&mut self.process).expect("an Envoy of its own");
        let status = eventually("Envoy to end", || process.child.try_wait().unwrap());
        (status, self.log())
    }
}

impl Process {
    #[track_caller]
    fn wait_for_admin(&mut self) {
        self.admin = eventually("Envoy's admin port", || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "Envoy ended at once:\n{}", self.log());
            port_of(&fs::read_to_string(self.folder.join("admin.txt")).ok()?)
        });
    }

    /// Waits until the gateway of this name serves requests. Returns its port.
    #[track_caller]
    fn wait_for_listener(&self, name: &str) -> u16 {
        eventually("Envoy's listener", || {
            if self.stat("listener_manager.lds.update_rejected")? > 0 {
                let log = || Some(self.log()).filter(|log| log.contains("rejected"));
                panic!("Envoy refused its configuration:\n{}", eventually("the reason", log));
            }
            self.admin("/ready").filter(|answer| answer.status == 200)?;
            self.listener_port(name)
        })
    }

    fn listener_port(&self, name: &str) -> Option<u16> {
        let listeners: Value =
            serde_json::from_str(&self.admin("/listeners?format=json")?.body).ok()?;
        let all = listeners["listener_statuses"].as_array()?;
        let found = all.iter().find(|status| status["name"] == name)?;
        let port = found.pointer("/local_address/socket_address/port_value")?.as_u64()?;
        port.try_into().ok()
    }

    /// A response of the admin interface.
    pub fn admin(&self, path: &str) -> Option<Response> {
        exchange(self.admin, &request("GET", path, &[])).ok()
    }

    /// The port of the admin interface.
    pub fn admin_port(&self) -> u16 {
        self.admin
    }

    /// The log of Envoy and the filter.
    pub fn log(&self) -> String {
        // Envoy writes to it at once, but to a file of `--log-path` later.
        let bytes = fs::read(self.folder.join("logs/stderr.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The process memory in KiB, after it has been constant for a second.
    pub fn memory(&self) -> u64 {
        let (mut last, mut times) = (0, 0);
        eventually("memory to settle", || {
            let memory = self.memory_now();
            times = if memory == last { times + 1 } else { 0 };
            last = memory;
            (times == 100).then_some(memory)
        })
    }

    /// Sets the microseconds that the wall clock is ahead, for a gateway with an adjustable clock.
    pub fn set_clock_ahead(&self, ahead: i64) {
        process_clock::set(&self.folder, Wall::Ahead(to_mid_hour() + ahead));
    }

    /// The process memory in KiB.
    pub fn memory_now(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Deref for Envoy {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        self.process.has_failed.fetch_or(thread::panicking(), Ordering::Relaxed);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if *self.has_failed.get_mut() || thread::panicking() {
            eprintln!("the files of this Envoy are kept in {}", self.folder.display());
        } else {
            let _ = remove(&self.folder);
        }
    }
}

/// Fails if a log contains a crash of the module.
#[track_caller]
pub fn assert_no_trap(log: &str) {
    for sign in
        ["panicked", "the panic in", "Uncaught RuntimeError", "Proxy-Wasm plugin in-VM backtrace"]
    {
        assert!(!log.contains(sign), "the module crashed:\n{log}");
    }
}

/// The output of `envoy --mode validate` for a gateway.
pub fn validate(gateway: &Gateway) -> Output {
    let folder = new_folder();
    let file = folder.join("bootstrap.json");
    write(&file, &gateway.fixed(&folder));
    let result = command().args(["--mode", "validate", "-l", "warning", "-c"]).arg(file).output();
    remove(&folder).unwrap();
    result.unwrap()
}

fn spawn(folder: &Path, gateway: &Gateway) -> Child {
    if !shipped::is_native() {
        shipped::module();
    }
    command()
        .args(["--concurrency", &gateway.worker_count().to_string()])
        .args(["--file-flush-interval-msec", "50", "--drain-strategy", "immediate"])
        .args(["--service-node", NODE])
        .args(
            gateway
                .drain_time()
                .iter()
                .flat_map(|time| ["--drain-time-s".into(), time.to_string()]),
        )
        .args(["-l", "warning", "--component-log-level", "wasm:info,dynamic_modules:info"])
        .args(["--log-format", "[%E.%f][%t][%l][%n] %v"])
        .arg("-c")
        .arg(folder.join("bootstrap.json"))
        .arg("--admin-address-path")
        .arg(folder.join("admin.txt"))
        .envs(gateway.environment(folder))
        .stderr(File::create(folder.join("logs/stderr.log")).unwrap())
        .spawn()
        .unwrap()
}

fn command() -> Command {
    let mut command = Command::new(binary());
    command.current_dir(shipped::root()).arg("--disable-hot-restart");
    // Where Envoy finds the library, if the tests run it.
    command.env("ENVOY_DYNAMIC_MODULES_SEARCH_PATH", shipped::libraries());
    command
}

/// The Envoy in `DIANA_ENVOY`, or else that of `make run`.
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

/// A folder for the files of one Envoy, with a subfolder `logs`.
fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("envoy-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    fs::create_dir_all(&folder).unwrap();
    // Logs are in memory: a worker that writes a log line to a disk waits while the disk is busy.
    // Files that Envoy reads cannot be there, since Envoy up to 1.38 accepts no file below /dev.
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
