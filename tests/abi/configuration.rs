//! Bounds on the time and memory of a configuration, valid or not.

use host::Host;
use host::request::Request;
use host::trap::StartError;
use host::vm::Vm;

const GOOD: &str =
    "limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 2, algo: W, scope: local}]}]";

fn admitted(vm: &mut Vm, requests: usize) -> usize {
    (0..requests).filter(|_| vm.request(&Request::get("/a")).is_admitted()).count()
}

/// Maximum cost of a configuration, valid or not: less than a second in Envoy.
const MOST_FUEL: u64 = 15_000_000_000;
const MOST_MEMORY: usize = 32 << 20;

#[test]
fn hostile_documents_take_bounded_time_and_memory() {
    let mut over = Vec::new();
    for (what, document) in bombs() {
        let mut vm = Host::new(7).start_vm(GOOD).unwrap();
        vm.start_counting();
        match vm.configure(&document) {
            Ok(()) | Err(StartError::Refused(_)) => {}
            Err(error) => panic!("{what}: {error}"),
        }
        let (fuel, memory) = (vm.counted().1, vm.memory());
        println!("{what}: {} bytes, {} M fuel, {} MiB", document.len(), fuel >> 20, memory >> 20);
        if fuel > MOST_FUEL || memory > MOST_MEMORY {
            over.push((what, fuel, memory));
        }
        let longest = vm.log().iter().map(String::len).max();
        assert!(longest < Some(10_000), "{what}: a line of {longest:?} bytes");
        vm.configure(GOOD).unwrap();
        assert_eq!(admitted(&mut vm, 5), 2);
    }
    assert!(over.is_empty(), "{over:?}");
}

/// Documents that would cost a naive parser unbounded time or memory.
fn bombs() -> Vec<(&'static str, String)> {
    let rule = "{actor: device, unit: second, rpu: 1, scope: local}";
    let ten = |level: usize| vec![format!("*a{}", level - 1); 10].join(", ");
    let laughs: String =
        (1..30).map(|level| format!("a{level}: &a{level} [{}]\n", ten(level))).collect();
    let mut bombs = vec![
        ("aliases that explode", format!("a0: &a0 [x]\n{laughs}limits: *a29")),
        (
            "aliases to long text",
            format!("a: &a {}\nlimits: [{}]", "x".repeat(50_000), "*a,".repeat(10_000)),
        ),
        ("more than is read", "limits: []\n".repeat(400_000)),
        ("many problems", format!("limits: [{}]", "{Ur: 1},".repeat(10_000))),
        ("many rules", format!("limits: [{{Url: /, rules: [{}]}}]", vec![rule; 2_000].join(", "))),
        ("equal rules", format!("limits: [{{Url: /, rules: [{}]}}]", "{name: a},".repeat(500))),
        ("many paths", (0..2_000).map(|n| format!("- {{Url: /{n}/a, rules: []}}\n")).collect()),
        ("many keys", (0..500).map(|n| format!("limit{n}: 1\n")).collect()),
        ("a deep path", format!("limits: [{{Url: {}, rules: [{rule}]}}]", "/a".repeat(50_000))),
        ("equal keys", "limits: []\n".repeat(1_000)),
        ("deep JSON", r#"{"limits":"#.repeat(10_000)),
        ("a large list", format!("[{}]", "[],".repeat(190_000))),
        ("a large list with an anchor", format!("&a [{}]", "[],".repeat(190_000))),
        ("anchors in anchors", format!("{}{}", "&a [".repeat(31), "x,".repeat(190_000))),
        ("an alias in its own node", format!("&a [{}*a]", "x,".repeat(6_000))),
    ];
    for (what, piece) in [
        ("deep brackets", "["),
        ("deep braces", "{a: "),
        ("deep dashes", "- "),
        ("deep questions", "? "),
        ("anchors", "&a "),
        ("tags", "!!map "),
        ("directives", "%YAML 1.2\n"),
        ("documents", "--- {}\n"),
        ("quotes", "\""),
        ("one long word", "x"),
        ("spaces", " "),
        ("tabs", "\t"),
        ("comments", "#\n"),
        ("long characters", "\u{10ffff}"),
    ] {
        bombs.push((what, piece.repeat(60_000 / piece.len())));
    }
    bombs
}
