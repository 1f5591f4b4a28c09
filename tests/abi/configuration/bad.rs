//! Configurations that must be refused.

/// Each with what its log must contain.
pub const CASES: &[(&str, &[&str])] = &[
    ("", &["limits"]),
    ("limits", &["found"]),
    ("limits: {", &["1:9", "not valid YAML"]),
    ("limits: 7", &["limits", "`7`"]),
    ("limit: []", &["limit", "did you mean `limits`"]),
    (
        "limits: [{Url: /, rules: [{actor:device, unit: second, rpu: 1}]}]",
        &["actor:device", "space"],
    ),
    ("limits: [{Url: sample, rules: []}]", &["limits[0].Url", "sample"]),
    (
        "limits: [{Url: /, rules: [{actor: device, unit: secnd, rpu: ten, algo: XY, scop: local}]}]",
        &[
            "limits[0].rules[0].unit",
            "secnd",
            "second",
            "limits[0].rules[0].rpu",
            "ten",
            "limits[0].rules[0].algo",
            "XY",
            "did you mean `scope`",
        ],
    ),
    (
        "limits: [{Url: /, rules: [{actor: all, unit: second, rpu: 1}, {actor: nobody, rpu: -1}]}]",
        &[
            "limits[0].rules[1].actor",
            "nobody",
            "limits[0].rules[1].unit",
            "limits[0].rules[1].rpu",
        ],
    ),
    (
        "limits: [{Url: /, rules: [{name: a, actor: all, unit: day, rpu: 1},
                                   {name: a, actor: all, unit: day, rpu: 2}]}]",
        &["limits[0].rules[1].name", "duplicate"],
    ),
    ("limits: []\nlimits: []", &["limits", "duplicate"]),
    (
        "limits: [{Url: /, rules: [{actor: all, unit: second, rpu: 5, cost: 6, algo: W}]}]",
        &["limits[0].rules[0].cost", "`6`"],
    ),
    (
        "limits: [{Url: /, rules: [{actor: all, unit: minute, rpu: 1, algo: LB}]}]",
        &["limits[0].rules[0].rpu"],
    ),
    (
        "limits: [{Url: /, rules: [{actor: all, unit: second, rpu: 1, quota: {}}]}]",
        &["limits[0].rules[0].unit", "allowed beside `quota`: day"],
    ),
    ("limits: []\nredis: {cluster: c, on_failure: open}", &["redis.on_failure", "`open`"]),
    ("limits: []\ntime_zone: Asia/Shanghai", &["time_zone", "Asia/Shanghai"]),
    ("limits: []\nresponse: {status: 200}", &["response.status", "`200`"]),
    ("limits: []\nresponse: {headers: {x-a: \"b\\nc\"}}", &["response.headers"]),
    ("limits: []\nnamespace: \"a.b\"", &["namespace"]),
    ("limits: []\nkeys: 0", &["keys", "`0`"]),
    ("\u{feff}\u{0}", &["U+0000"]),
];

/// Documents that would take a careless reader for ever, or all memory.
pub fn bombs() -> Vec<(&'static str, String)> {
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
