//! A small API server on loopback: lists and watches, patches of status, Leases.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use serde_json::{Value, json};

/// The path of an object below that of its kind: `limitpolicies/team-a/limits`.
type Name = String;

#[derive(Default)]
pub struct World {
    version: u64,
    pub objects: BTreeMap<Name, Value>,
    /// The changes since it was compacted: the version, the kind of change, the name and the object.
    events: Vec<(u64, &'static str, Name, Value)>,
    /// The version of the last change before.
    compacted: u64,
    /// Kinds with the status of their answers.
    pub refused: BTreeMap<String, u16>,
    /// Kinds of which lists are not answered.
    pub slow: BTreeSet<String>,
    /// Objects with a status that cannot be written.
    pub unwritable: BTreeSet<Name>,
    /// Kinds of which watches send no events.
    pub held: BTreeSet<String>,
    /// The number of lists of each kind.
    pub lists: BTreeMap<String, usize>,
    /// Written objects, by their name, with the subresource.
    pub writes: Vec<Name>,
}

/// The server.
#[derive(Clone)]
pub struct Cluster {
    world: Arc<(Mutex<World>, Condvar)>,
    address: SocketAddr,
}

impl Cluster {
    pub fn start() -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cluster = Cluster { world: Arc::default(), address };
        let server = cluster.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, stream) = (server.clone(), stream.unwrap());
                std::thread::spawn(move || server.serve(stream));
            }
        });
        cluster
    }

    /// The configuration of a client.
    pub fn config(&self) -> String {
        let cluster =
            json!({"name": "a", "cluster": {"server": format!("http://{}", self.address)}});
        let context =
            json!({"name": "a", "context": {"cluster": "a", "namespace": "plat", "user": "a"}});
        let user = json!({"name": "a", "user": {}});
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "a", "clusters": [cluster], "contexts": [context], "users": [user]})
            .to_string()
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.0.lock().unwrap()
    }

    /// Changes the state of the server, and wakes its watches.
    pub fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.world());
        self.world.1.notify_all();
    }

    /// Creates an object or replaces its `spec`.
    pub fn apply(&self, name: &str, object: Value) {
        self.change(|world| world.apply(name, object));
    }

    pub fn delete(&self, name: &str) {
        self.change(|world| world.remove(name));
    }

    /// Waits until an object passes a test, and returns it.
    pub fn wait(&self, name: &str, test: impl Fn(&Value) -> bool) -> Value {
        let mut world = self.world();
        loop {
            if let Some(object) = world.objects.get(name).filter(|object| test(object)) {
                return object.clone();
            }
            world = self.world.1.wait(world).unwrap();
        }
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some((method, target, body)) = request(&mut reader) {
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
            // `api/v1` or `apis/<group>/<version>`.
            let mut steps = &steps[if steps[0] == "api" { 2 } else { 3 }..];
            let mut namespace = "";
            if let ["namespaces", name, rest @ ..] = steps
                && !rest.is_empty()
            {
                (namespace, steps) = (name, rest);
            }
            let kind = steps[0];
            let name = steps.get(1).map(|name| format!("{kind}/{namespace}/{name}"));
            let refused = self.world().refused.get(kind).copied();
            if let Some(code) = refused {
                answer(&stream, code, &failure(code, "refused"));
                continue;
            }
            let parameter = |key: &str| {
                query
                    .split('&')
                    .filter_map(|it| it.split_once('='))
                    .find(|it| it.0 == key)
                    .map(|it| it.1.to_owned())
            };
            if method == "GET" && parameter("watch").is_some() {
                let from = parameter("resourceVersion").unwrap().parse().unwrap();
                return self.watch(stream, &prefix(kind, namespace), from);
            }
            let mut world = self.world();
            while name.is_none() && world.slow.contains(kind) {
                world = self.world.1.wait(world).unwrap();
            }
            drop(world);
            let (code, value) = self.answer(&method, kind, namespace, name, &body);
            answer(&stream, code, &value);
        }
    }

    fn answer(
        &self,
        method: &str,
        kind: &str,
        namespace: &str,
        name: Option<Name>,
        body: &[u8],
    ) -> (u16, Value) {
        let mut found = (404, failure(404, "not found"));
        self.change(|world| {
            let body = || serde_json::from_slice::<Value>(body).unwrap();
            match (method, name) {
                ("GET", None) => {
                    *world.lists.entry(kind.into()).or_default() += 1;
                    let prefix = prefix(kind, namespace);
                    let items: Vec<&Value> = world.objects.iter().filter(|it| it.0.starts_with(&prefix)).map(|it| it.1).collect();
                    found = (200, json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": world.version.to_string()}, "items": items}));
                }
                ("GET", Some(name)) => {
                    if let Some(object) = world.objects.get(&name) {
                        found = (200, object.clone());
                    }
                }
                ("POST", None) => {
                    let object = body();
                    let name = format!("{kind}/{namespace}/{}", object["metadata"]["name"].as_str().unwrap());
                    found = (409, failure(409, "changed"));
                    if !world.objects.contains_key(&name) {
                        world.writes.push(name.clone());
                        world.apply(&name, object);
                        found = (201, world.objects[&name].clone());
                    }
                }
                ("PUT", Some(name)) => {
                    let object = body();
                    found = (409, failure(409, "changed"));
                    let is_it = |it: &Value| it["metadata"]["resourceVersion"] == object["metadata"]["resourceVersion"];
                    if world.objects.get(&name).is_some_and(is_it) {
                        world.writes.push(name.clone());
                        world.apply(&name, object);
                        found = (200, world.objects[&name].clone());
                    }
                }
                ("PATCH", Some(name)) => {
                    let patch = body();
                    let Some(object) = world.objects.get(&name).cloned() else { return };
                    if world.unwritable.contains(&name) {
                        found = (500, failure(500, "etcdserver: request is too large"));
                        return;
                    }
                    found = (422, failure(422, "changed"));
                    if patch[0]["value"] == object["metadata"]["resourceVersion"] {
                        world.writes.push(format!("{name}/status"));
                        let mut object = object;
                        object["status"] = patch[1]["value"].clone();
                        world.apply(&name, object);
                        found = (200, world.objects[&name].clone());
                    }
                }
                other => panic!("{other:?}"),
            }
        });
        found
    }

    /// Sends changes until the client leaves.
    fn watch(&self, mut stream: TcpStream, prefix: &str, mut from: u64) {
        let kind = prefix.split('/').next().unwrap();
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut world = self.world();
        let is_too_old = from < world.compacted;
        loop {
            let mut text = String::new();
            if world.refused.contains_key(kind) {
                return;
            }
            if is_too_old {
                text = format!("{}\n", json!({"type": "ERROR", "object": failure(410, "too old")}));
            } else if !world.held.contains(kind) {
                for (version, change, name, object) in &world.events {
                    if *version > from && name.starts_with(prefix) {
                        text += &format!("{}\n", json!({"type": change, "object": object}));
                    }
                }
                from = world.version;
            }
            if !text.is_empty() {
                let chunk = format!("{:x}\r\n{text}\r\n", text.len());
                if stream.write_all(chunk.as_bytes()).is_err() || is_too_old {
                    return;
                }
            }
            world = self.world.1.wait(world).unwrap();
        }
    }
}

impl World {
    /// Forgets the changes, as a server does after five minutes.
    pub fn compact(&mut self) {
        self.events.clear();
        self.compacted = self.version;
    }

    pub fn remove(&mut self, name: &str) {
        let mut object = self.objects.remove(name).unwrap();
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.events.push((self.version, "DELETED", name.into(), object));
    }

    /// As the API server: a changed `spec` is a new generation.
    pub fn apply(&mut self, name: &str, mut object: Value) {
        self.version += 1;
        let mut parts = name.splitn(3, '/').skip(1);
        let metadata = &mut object["metadata"];
        for key in ["namespace", "name"] {
            if let Some(value) = parts.next().filter(|value| !value.is_empty()) {
                metadata[key] = value.into();
            }
        }
        metadata["resourceVersion"] = self.version.to_string().into();
        let before = self.objects.get(name);
        let (uid, created, generation) = match before {
            Some(before) => {
                let generation = before["metadata"]["generation"].as_i64().unwrap();
                let is_same = before["spec"] == object["spec"];
                let metadata = &before["metadata"];
                (
                    metadata["uid"].clone(),
                    metadata["creationTimestamp"].clone(),
                    if is_same { generation } else { generation + 1 },
                )
            }
            None => {
                let created = format!(
                    "2026-11-30T00:{:02}:{:02}Z",
                    self.version / 60 % 60,
                    self.version % 60
                );
                (format!("uid-{}", self.version).into(), created.into(), 1)
            }
        };
        (object["metadata"]["uid"], object["metadata"]["creationTimestamp"]) = (uid, created);
        object["metadata"]["generation"] = generation.into();
        if let Some(before) = before
            && object.get("status").is_none()
            && let Some(status) = before.get("status")
        {
            object["status"] = status.clone();
        }
        let change = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.events.push((self.version, change, name.into(), object.clone()));
        self.objects.insert(name.into(), object);
    }
}

fn prefix(kind: &str, namespace: &str) -> String {
    if namespace.is_empty() { format!("{kind}/") } else { format!("{kind}/{namespace}/") }
}

fn failure(code: u16, message: &str) -> Value {
    // The client knows what is absent by this reason.
    let reason = if code == 404 { "NotFound" } else { "Failed" };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code})
}

fn answer(mut stream: &TcpStream, code: u16, value: &Value) {
    let text = value.to_string();
    let head = format!(
        "HTTP/1.1 {code} A\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        text.len()
    );
    _ = stream.write_all(format!("{head}{text}").as_bytes());
}

/// Method, target and body of the next request.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|size| *size > 0)?;
    let mut words = line.split(' ').map(String::from);
    let (method, target) = (words.next()?, words.next()?);
    let mut size = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            size = value.parse().unwrap();
        }
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body).ok()?;
    Some((method, target, body))
}
