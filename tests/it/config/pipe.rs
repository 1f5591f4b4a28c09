//! `redis.pipe`, which only the native module uses.

use diana_config::Reader;
use diana_policy::ModuleKind;
use diana_policy::port::Destination;

/// Where the Redis of a document is for a module. `None` if the module refuses the document.
fn destination(redis: &str, module: ModuleKind) -> Option<Destination> {
    let text = format!("limits: []\nredis: {{{redis}}}");
    Some(Reader::new(module).policy(text.as_bytes()).ok()?.redis?.destination)
}

#[test]
fn native_module_prefers_the_pipe_and_wasm_needs_a_cluster() {
    let cluster = || Some(Destination::Cluster("c".into()));
    let pipe = |path: &str| Some(Destination::Pipe(path.into()));
    let longest = format!("/{}", "x".repeat(106));
    for (redis, wasm, native) in [
        ("cluster: c", cluster(), cluster()),
        ("cluster: c, pipe: '@r'", cluster(), pipe("@r")),
        ("pipe: '@r'", None, pipe("@r")),
        ("pipe: run/redis.sock", None, pipe("run/redis.sock")),
        (&format!("cluster: c, pipe: {longest}"), cluster(), pipe(&longest)),
        (&format!("cluster: c, pipe: {longest}x"), None, None),
        ("cluster: c, pipe: '@'", None, None),
        ("cluster: c, pipe: ''", None, None),
        ("timeout: 1s", None, None),
    ] {
        assert_eq!(destination(redis, ModuleKind::Wasm), wasm, "{redis}");
        assert_eq!(destination(redis, ModuleKind::Native), native, "{redis}");
    }
}
