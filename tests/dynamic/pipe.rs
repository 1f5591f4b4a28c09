//! Calls by a pipe to a fake Redis that replies, is missing, hangs, or fails in the middle of a reply.

use std::fs;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use fastrand::Rng;
use kit::model::redis::Redis;

use crate::gateway::Gateway;
use crate::stream::{self, Headers, Outcome, Stream};
use crate::worker::Queue;
use crate::{APART, TOKEN, WORKERS, callbacks, is_apart};

/// The end of a call.
const QUIT: &[u8] = b"*1\r\n$4\r\nQUIT\r\n";

/// The permits of a caller in a day.
const LIMIT: usize = 20;

/// A time in microseconds, at which no day ends.
const NOON: u64 = 1_700_000_000_000_000;

/// The most bytes that the module reads of a reply, and those that sockets buffer.
const MOST: usize = (1 << 20) + (1 << 20);

/// The rules of a gateway with Redis at a pipe. Without Redis it admits everything.
fn document(pipe: &str) -> String {
    let namespace = pipe.trim_start_matches('@');
    format!(
        "namespace: {namespace}
actors: {{account: [{{header: x-account}}]}}
redis: {{cluster: redis, pipe: '{pipe}', timeout: 1s, on_failure: allow}}
limits: [{{Url: /, rules: [{{name: fleet, actor: account, algo: W, unit: day, rpu: {LIMIT}, scope: global}}]}}]"
    )
}

/// An abstract name for one test.
fn name(test: &str) -> String {
    format!("@{test}-{}", std::process::id())
}

fn listen(pipe: &str) -> UnixListener {
    let address = SocketAddr::from_abstract_name(pipe.trim_start_matches('@')).unwrap();
    UnixListener::bind_addr(&address).unwrap()
}

/// Reads a call. `None` if the module ends the connection before.
fn call(connection: &mut UnixStream) -> Option<Vec<u8>> {
    let (mut body, mut bytes) = (Vec::new(), [0; 4096]);
    while !body.ends_with(QUIT) {
        match connection.read(&mut bytes).ok()? {
            0 => return None,
            count => body.extend(&bytes[..count]),
        }
    }
    Some(body)
}

/// Handles a call to a fake Redis, and the reply to it.
type Act = Box<dyn FnMut(&mut UnixStream, Vec<u8>) + Send>;

/// A fake Redis in a thread, which receives calls until the end of the test.
struct Fake {
    /// The number of calls.
    calls: Arc<AtomicUsize>,
    /// Handles the next ones.
    act: Arc<Mutex<Act>>,
}

impl Fake {
    fn start(pipe: &str, act: Act) -> Fake {
        let (listener, act) = (listen(pipe), Arc::new(Mutex::new(act)));
        let calls = Arc::new(AtomicUsize::new(0));
        let (acts, counts) = (act.clone(), calls.clone());
        thread::spawn(move || {
            let mut redis = Redis::default();
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some(body) = call(&mut connection) else { continue };
                counts.fetch_add(1, Ordering::SeqCst);
                let reply = redis.answer(&body, NOON);
                acts.lock().unwrap()(&mut connection, reply);
            }
        });
        Fake { calls, act }
    }

    fn act(&self, act: impl FnMut(&mut UnixStream, Vec<u8>) + Send + 'static) {
        *self.act.lock().unwrap() = Box::new(act);
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Replies.
fn answers() -> Act {
    Box::new(|connection, reply| _ = connection.write_all(&reply))
}

/// A request of a caller in one of the workers.
struct Request {
    stream: *mut Stream,
    queue: Arc<Queue>,
}

impl Request {
    fn begin(gateway: &Gateway, worker: usize, account: &str) -> Request {
        Request::to(gateway, "/fleet", worker, &[("x-account", account)])
    }

    fn to(
        gateway: &Gateway,
        path: &'static str,
        worker: usize,
        headers: &[(&str, &str)],
    ) -> Request {
        let queue: Arc<Queue> = Arc::default();
        let mut stream =
            Stream::new(gateway, 0, worker, path, queue.clone(), &mut Rng::with_seed(1));
        stream.request.retain(|(name, _)| name.starts_with(b":"));
        stream.request.extend(headers.iter().map(|&(name, value)| (name.into(), value.into())));
        stream.is_hasty = false;
        let stream = Box::into_raw(stream);
        stream::begin(stream);
        Request { stream, queue }
    }

    fn outcome(&self) -> Outcome {
        self.of(|stream| stream.outcome)
    }

    /// The worker runs the next event of the module.
    fn turn(&self) {
        loop {
            let event = self.queue.lock().unwrap().pop_front();
            match event {
                Some((_, event)) => return stream::schedule(self.stream, event),
                None => thread::yield_now(),
            }
        }
    }

    /// The worker runs the events of the module, if there are any. Those of ended streams are dropped.
    fn turn_all(&self) {
        loop {
            let event = self.queue.lock().unwrap().pop_front();
            match event {
                Some((_, event)) if self.of(|it| !it.has_ended) => {
                    stream::schedule(self.stream, event);
                }
                Some(_) => (),
                None => return,
            }
        }
    }

    /// What the module has done to the stream so far.
    fn of<T>(&self, read: impl FnOnce(&Stream) -> T) -> T {
        // SAFETY: `end` frees the stream, and no hook is called within.
        read(unsafe { &*self.stream })
    }

    fn end(self) {
        stream::end(self.stream);
        // SAFETY: no hook follows.
        drop(unsafe { Box::from_raw(self.stream) });
    }
}

/// Whether a request passes.
fn passes(gateway: &Gateway, worker: usize, account: &str) -> bool {
    let request = Request::begin(gateway, worker, account);
    while request.outcome() == Outcome::Open {
        request.turn();
    }
    let passes = request.outcome() == Outcome::Passed;
    request.end();
    passes
}

/// A gateway with a fake Redis.
fn gateway(pipe: &str) -> &'static Gateway {
    let gateway = Gateway::start();
    update(gateway, &document(pipe));
    gateway
}

/// Envoy gets this document.
fn update(gateway: &'static Gateway, document: &str) {
    // Envoy's main thread. The one of the test is that of the workers.
    thread::scope(|scope| {
        let main = scope.spawn(|| gateway.update(document).expect("the document is valid"));
        main.join().unwrap();
    });
}

/// The lines of the log about a pipe.
fn lines(pipe: &str) -> Vec<String> {
    let log = callbacks::LOG.lock().unwrap();
    log.iter().filter(|line| line.contains(&format!("pipe `{pipe}`"))).cloned().collect()
}

/// Sends requests of further callers until Redis decides those of each worker: it alone refuses.
fn until_redis_counts(gateway: &Gateway, name: &str) {
    for worker in 0..WORKERS {
        let is_refused = |number| {
            (0..=LIMIT).any(|_| !passes(gateway, worker, &format!("{name}-{worker}-{number}")))
        };
        assert!((0..).any(is_refused));
    }
}

#[test]
fn all_workers_share_a_limit_exactly() {
    let pipe = name("exact");
    let redis = Fake::start(&pipe, answers());
    let gateway = gateway(&pipe);
    let callouts = gateway.callouts.load(Ordering::SeqCst);
    let passed: usize = thread::scope(|scope| {
        let worker = |number| move || (0..LIMIT).filter(|_| passes(gateway, number, "ann")).count();
        let workers: Vec<_> = (0..WORKERS).map(|number| scope.spawn(worker(number))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(passed, LIMIT);
    assert!(redis.calls() > 0);
    assert_eq!(gateway.callouts.load(Ordering::SeqCst), callouts, "calls of the main thread");
    assert_eq!(lines(&pipe), Vec::<String>::new());
    gateway.end();
}

#[test]
fn pipe_that_is_away_is_logged_once_until_it_is_back() {
    let pipe = name("away");
    let gateway = gateway(&pipe);
    let unreachable =
        || lines(&pipe).iter().filter(|line| line.contains("cannot connect: ")).count();
    // More than the limit, since Redis cannot count them.
    assert!((0..2 * LIMIT).all(|number| passes(gateway, number % WORKERS, "ann")));
    assert_eq!(unreachable(), 1, "{:?}", lines(&pipe));
    let _redis = Fake::start(&pipe, answers());
    until_redis_counts(gateway, "bob");
    let passed = (0..2 * LIMIT).filter(|number| passes(gateway, number % WORKERS, "carl")).count();
    assert_eq!((passed, unreachable()), (LIMIT, 1));
    gateway.end();
}

/// Envoy may open the listener of the pipe after the first heartbeat.
#[test]
fn heartbeat_before_the_first_request_logs_nothing() {
    if !is_apart("pipe::heartbeat_before_the_first_request_logs_nothing") {
        return;
    }
    let pipe = name("starts");
    let gateway = gateway(&pipe);
    // The first heartbeat starts the thread for calls.
    while !thread_names().any(|name| name == "diana-pipe") {
        thread::yield_now();
    }
    let _redis = Fake::start(&pipe, answers());
    until_redis_counts(gateway, "ann");
    assert_eq!(lines(&pipe), Vec::<String>::new());
    gateway.end();
}

/// The names of this process's threads.
fn thread_names() -> impl Iterator<Item = String> {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let names = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("comm")));
    names.flatten().map(|name| name.trim_end().into())
}

#[test]
fn thread_for_calls_starts_when_there_is_room() {
    if !is_apart("pipe::thread_for_calls_starts_when_there_is_room") {
        return;
    }
    let pipe = name("room");
    // Before the gateway: its first heartbeat would start the thread for calls.
    let limit = limit_open_files(0);
    let gateway = gateway(&pipe);
    assert!((0..2 * LIMIT).all(|number| passes(gateway, number % WORKERS, "ann")));
    let lines = lines(&pipe);
    assert_eq!(
        lines.iter().filter(|line| line.contains("no thread for calls: ")).count(),
        1,
        "{lines:?}"
    );
    limit_open_files(limit);
    let _redis = Fake::start(&pipe, answers());
    until_redis_counts(gateway, "bob");
    let passed = (0..2 * LIMIT).filter(|number| passes(gateway, number % WORKERS, "carl")).count();
    assert_eq!(passed, LIMIT);
    gateway.end();
}

/// Lets this process open files below this number only. Returns the former limit.
fn limit_open_files(number: u64) -> u64 {
    const OPEN_FILES: i32 = 7;
    unsafe extern "C" {
        fn getrlimit(resource: i32, limit: *mut [u64; 2]) -> i32;
        fn setrlimit(resource: i32, limit: *const [u64; 2]) -> i32;
    }
    let mut limit = [0; 2];
    // SAFETY: both functions take Linux' structure of two numbers, the second of which stays.
    unsafe {
        assert_eq!(getrlimit(OPEN_FILES, &mut limit), 0);
        assert_eq!(setrlimit(OPEN_FILES, &[number, limit[1]]), 0);
    }
    limit[0]
}

/// Each failure costs a request its decision by Redis, and no more. Afterwards Redis decides again.
#[test]
fn no_failure_of_a_pipe_outlasts_it() {
    let pipe = name("fails");
    let redis = Fake::start(&pipe, answers());
    let gateway = gateway(&pipe);
    let (ended, ends) = mpsc::channel();
    let failures: [(&str, &str, Act); 6] = [
        (
            "hangs",
            "no reply within `timeout`",
            Box::new(move |connection, _| {
                // Until the module ends the connection.
                _ = connection.read(&mut [0]);
                ended.send(()).unwrap();
            }),
        ),
        ("ends at once", "the connection was closed before the reply", Box::new(|_, _| ())),
        (
            "ends in the middle",
            "the reply is not from Redis",
            Box::new(|connection, reply| {
                _ = connection.write_all(&reply[..reply.len() / 2]);
            }),
        ),
        (
            "sends garbage",
            "the reply is not from Redis",
            Box::new(|connection, _| _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
        ),
        (
            "sends too much",
            "the connection was closed before the reply",
            Box::new(|connection, _| {
                let sent =
                    (0..).take_while(|_| connection.write_all(&[b'+'; 1 << 10]).is_ok()).count();
                assert!(sent << 10 <= MOST, "{sent} KiB");
            }),
        ),
        (
            "never ends",
            "no reply within `timeout`",
            Box::new(|connection, reply| {
                _ = connection.write_all(&reply);
                _ = connection.read(&mut [0]);
            }),
        ),
    ];
    for (what, reason, act) in failures {
        until_redis_counts(gateway, what);
        let logged = lines(&pipe).len();
        *redis.act.lock().unwrap() = act;
        let passed =
            (0..2 * LIMIT).filter(|number| passes(gateway, number % WORKERS, what)).count();
        assert_eq!(passed, 2 * LIMIT, "{what}");
        let lines = &lines(&pipe)[logged..];
        assert!(lines.iter().any(|line| line.contains(reason)), "{what}: {lines:?}");
        redis.act(|connection, reply| _ = connection.write_all(&reply));
        until_redis_counts(gateway, &format!("after {what}"));
        let after = format!("later {what}");
        let passed =
            (0..2 * LIMIT).filter(|number| passes(gateway, number % WORKERS, &after)).count();
        assert_eq!(passed, LIMIT, "{what}");
    }
    assert!(ends.try_iter().count() > 0, "a call that hangs ends");
    gateway.end();
}

/// The call may have settlements.
#[test]
fn call_is_made_after_the_end_of_its_configuration() {
    let pipe = name("ended");
    let gateway = gateway(&pipe);
    // The thread for calls stops while it logs that it cannot connect for the first caller.
    let stops = callbacks::STOPS_AT_PIPE.lock().unwrap();
    let (first, second) = (Request::begin(gateway, 0, "ann"), Request::begin(gateway, 1, "bob"));
    first.turn();
    while lines(&pipe).is_empty() {
        thread::yield_now();
    }
    second.turn();
    let listener = listen(&pipe);
    first.end();
    second.end();
    gateway.end();
    drop(stops);
    let (mut connection, _) = listener.accept().unwrap();
    let body = call(&mut connection).expect("a whole call");
    _ = connection.write_all(&Redis::default().answer(&body, NOON));
    assert_eq!(callbacks::CAUGHT.load(Ordering::SeqCst), 0);
}

/// Rules that refuse, mark and hold, and explain their decisions.
fn outcomes(pipe: &str) -> String {
    format!(
        "actors: {{account: [{{header: x-account}}]}}
redis: {{cluster: redis, pipe: '{pipe}', timeout: 1s, on_failure: deny}}
explain: {{header: x-why, token_env: {APART}}}
limits:
- {{Url: /refused, rules: [{{name: refused, actor: account, unit: day, rpu: 1, algo: W, scope: global}}]}}
- {{Url: /marked, rules: [{{name: marked, actor: account, unit: day, rpu: 1, algo: W, scope: global, over: {{mark: x-tier, value: spill}}}}]}}
- {{Url: /held, rules: [{{name: held, actor: account, unit: second, rpu: 20, algo: LB, scope: global}}]}}
"
    )
}

fn value(headers: &Headers, name: &str) -> Option<String> {
    let found = headers.iter().find(|(found, _)| found == name.as_bytes());
    found.map(|(_, value)| String::from_utf8(value.clone()).unwrap())
}

/// Replies of Redis and timers reach the latest root, and each step its stream.
#[test]
fn old_root_refuses_marks_and_holds_while_a_new_one_exists() {
    if !is_apart("pipe::old_root_refuses_marks_and_holds_while_a_new_one_exists") {
        return;
    }
    let pipe = name("old");
    let _redis = Fake::start(&pipe, answers());
    let gateway = Gateway::start();
    update(gateway, &outcomes(&pipe));
    // The second request of each is refused, marked or held, and the third as well, at the same time.
    let requests = ["/refused", "/marked", "/held"].map(|path| {
        [(); 3].map(|()| Request::to(gateway, path, 0, &[("x-account", "ann"), ("x-why", TOKEN)]))
    });
    update(gateway, &(outcomes(&pipe) + "# later"));
    while requests.iter().flatten().any(|it| it.outcome() == Outcome::Open) {
        requests.iter().flatten().for_each(Request::turn_all);
        thread::yield_now();
    }
    for request in requests.iter().flatten() {
        assert_eq!(request.of(|it| value(&it.request, "x-why")), None, "the token stays here");
    }
    let state = |request: &Request| {
        request.of(|it| it.state.get(b"wasm.diana".as_slice()).cloned()).map(String::from_utf8)
    };
    let has_state = |request, part| state(request).is_some_and(|it| it.unwrap().contains(part));
    let [refused, marked, held] = &requests;
    for request in &refused[1..] {
        assert_eq!(request.outcome(), Outcome::Refused);
        assert!(has_state(request, "refused rule=refused "), "{:?}", state(request));
        let why = request.of(|it| value(&it.reply, "x-why"));
        assert!(why.is_some_and(|why| why.contains("\"rule\":\"refused\"")));
    }
    for (place, request) in marked.iter().enumerate() {
        let tier = request.of(|it| value(&it.request, "x-tier"));
        assert_eq!(tier.as_deref(), (place > 0).then_some("spill"));
    }
    assert!(held[1..].iter().all(|request| has_state(request, "held rule=held ")));
    for request in requests.into_iter().flatten() {
        if request.outcome() == Outcome::Passed {
            stream::respond(request.stream);
            assert!(request.of(|it| value(&it.response, "x-why")).is_some());
        }
        request.end();
    }
    gateway.end();
}

/// Envoy may close the connection of a client that it refuses, with all of its streams.
#[test]
fn step_may_end_the_stream_of_a_later_one() {
    let pipe = name("neighbour");
    let redis = Fake::start(&pipe, answers());
    let gateway = gateway(&pipe);
    until_redis_counts(gateway, "before");
    // Nobody of these has a lease.
    let calls = redis.calls();
    let requests = ["one", "two", "three"].map(|account| Request::begin(gateway, 0, account));
    let [first, second, third] = &requests;
    // SAFETY: no hook is called.
    unsafe { (*first.stream).neighbour = second.stream };
    while third.outcome() == Outcome::Open {
        requests.iter().for_each(Request::turn_all);
        thread::yield_now();
    }
    assert!(redis.calls() > calls);
    let outcomes = requests.each_ref().map(Request::outcome);
    assert_eq!(outcomes, [Outcome::Passed, Outcome::Open, Outcome::Passed]);
    requests.into_iter().for_each(Request::end);
    gateway.end();
    assert_eq!(callbacks::CAUGHT.load(Ordering::SeqCst), 0);
}
