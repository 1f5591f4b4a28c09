//! The limiter reads from a request only the values that its rules depend on, each once, since every
//! read may be a host call. It knows in advance whether it reads more than the path.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;

use diana_policy::port::{Property, Pseudo, Request, Values};
use fastrand::Rng;
use kit::fake::FakeRequest;
use kit::seed;

use super::Gate;

/// A request that records reads.
struct Watched {
    request: FakeRequest,
    asked: RefCell<Vec<String>>,
}

impl Watched {
    fn note(&self, what: impl Into<String>) {
        self.asked.borrow_mut().push(what.into());
    }
}

impl Request for Watched {
    fn pseudo(&self, which: Pseudo) -> Option<Cow<'_, [u8]>> {
        self.note(format!("{which:?}"));
        self.request.pseudo(which)
    }

    fn header(&self, name: &str) -> Values<'_> {
        self.note(name);
        Request::header(&self.request, name)
    }

    fn client(&self) -> Option<IpAddr> {
        self.note("client");
        self.request.client()
    }

    fn route(&self) -> Option<Cow<'_, [u8]>> {
        self.note("route");
        self.request.route()
    }

    fn property(&self, property: &Property) -> Option<Cow<'_, [u8]>> {
        self.note(String::from_utf8_lossy(property.encoded()));
        Request::property(&self.request, property)
    }
}

/// Sources of actors, each with the value that it reads, and whether it reads headers.
const ACTORS: [(&str, &str, bool); 8] = [
    ("{header: x-actor}", "x-actor", true),
    ("{cookie: sid}", "cookie", true),
    ("{query: token}", "Path", true),
    ("{jwt_claim: sub, unverified: true}", "authorization", true),
    (
        "{jwt_claim: sub, payload: p}",
        "metadata\0filter_metadata\0envoy.filters.http.jwt_authn\0p\0sub",
        false,
    ),
    ("{metadata: [space, name]}", "metadata\0filter_metadata\0space\0name", false),
    ("{peer: sha256}", "connection\0sha256_peer_certificate_digest", false),
    ("{client_address: {}}", "client", false),
];

/// A random document, with the values to read from a request that meets all conditions and is not
/// exempt.
#[derive(Default)]
struct Document {
    text: String,
    asks: BTreeSet<String>,
    reads_headers: bool,
    parts: usize,
}

impl Document {
    fn random(rng: &mut Rng) -> Document {
        let mut document = Document::default();
        let actors: Vec<String> = ACTORS
            .iter()
            .enumerate()
            .map(|(at, (source, ..))| format!("a{at}: [{source}]"))
            .collect();
        let mut text = format!("actors: {{{}}}\n", actors.join(", "));
        if rng.u8(0..4) == 0 {
            text += &format!("{}\n", document.except(rng));
        }
        text += "limits:\n";
        // All of them cover the path of the request.
        for url in ["/", "/a", "/a/b, ignore_case: true"] {
            if url != "/" && rng.u8(0..4) > 0 {
                continue;
            }
            if url != "/" {
                document.asks.insert("Path".into());
            }
            let conditions = document.conditions(rng);
            let rules: Vec<String> = (0..rng.u64(1..3)).map(|_| document.rule(rng)).collect();
            text += &format!("- {{Url: {url}{conditions}, rules: [{}]}}\n", rules.join(", "));
        }
        document.text = text;
        document
    }

    /// Another header's name, which must be read.
    fn header(&mut self) -> String {
        self.parts += 1;
        self.reads_headers = true;
        let name = format!("x-{}", self.parts);
        self.asks.insert(name.clone());
        name
    }

    fn except(&mut self, rng: &mut Rng) -> String {
        let mut parts = Vec::new();
        if rng.bool() {
            self.asks.insert("Path".into());
            parts.push("paths: [/elsewhere]".into());
        }
        if rng.bool() {
            parts.push(format!("headers: {{{}: {{present: true}}}}", self.header()));
        }
        if rng.bool() || parts.is_empty() {
            self.asks.insert("client".into());
            parts.push("addresses: [10.0.0.0/8]".into());
        }
        if rng.u8(0..4) == 0 {
            self.asks.insert("route".into());
            parts.push("route: elsewhere".into());
        }
        format!("except: {{{}}}", parts.join(", "))
    }

    fn conditions(&mut self, rng: &mut Rng) -> String {
        let mut parts = Vec::new();
        for (name, value) in [("Method", "methods: [GET]"), ("Authority", "hosts: [example.com]")] {
            if rng.u8(0..4) == 0 {
                self.reads_headers = true;
                self.asks.insert(name.into());
                parts.push(value.to_owned());
            }
        }
        if rng.u8(0..4) == 0 {
            parts.push(format!("headers: {{{}: {{present: false}}}}", self.header()));
        }
        if rng.u8(0..4) == 0 {
            self.asks.insert("route".into());
            parts.push("route: [other, {prefix: sho}]".into());
        }
        let matched = if parts.is_empty() {
            String::new()
        } else {
            format!(", match: {{{}}}", parts.join(", "))
        };
        let except =
            if rng.u8(0..4) == 0 { format!(", {}", self.except(rng)) } else { String::new() };
        matched + &except
    }

    fn rule(&mut self, rng: &mut Rng) -> String {
        self.parts += 1;
        let name = self.parts;
        let except =
            if rng.u8(0..4) == 0 { format!(", {}", self.except(rng)) } else { String::new() };
        let actor = match rng.usize(0..2 * ACTORS.len()) {
            at if at < ACTORS.len() => {
                let (_, asks, reads_headers) = ACTORS[at];
                self.asks.insert(asks.into());
                self.reads_headers |= reads_headers;
                format!("a{at}")
            }
            _ => "all".into(),
        };
        format!("{{name: r{name}, actor: {actor}, unit: second, rpu: 5, scope: local{except}}}")
    }
}

#[test]
fn limiter_reads_only_needed_values_and_once() {
    let mut rng = Rng::with_seed(seed::next());
    for _ in 0..3_000 {
        let document = Document::random(&mut rng);
        let mut gate = Gate::new(&document.text);
        assert_eq!(gate.limiter.reads_headers(), document.reads_headers, "{}", document.text);
        for number in 0..2 {
            let request = FakeRequest::get("/a/b?x").from("192.0.2.1:1").routed("shop");
            let request = Watched { request, asked: RefCell::default() };
            gate.limiter.decide(&request, 0, &gate.clock);
            let asked = request.asked.into_inner();
            let different: BTreeSet<String> = asked.iter().cloned().collect();
            assert_eq!(different, document.asks, "request {number}: {}", document.text);
            // Lists of addresses, and query parameters, are looked up individually. Hosts keep addresses and routes.
            let once = |what: &&String| {
                !["Path", "client", "route", "Method", "Authority"].contains(&what.as_str())
            };
            assert_eq!(
                asked.iter().filter(once).count(),
                different.iter().filter(once).count(),
                "{asked:?}: {}",
                document.text
            );
        }
    }
}

/// Neither what excludes a request by a cheaper condition, nor an entry of other paths, needs its route.
#[test]
fn route_is_read_only_for_a_rule_that_may_apply() {
    let rule = "rules: [{name: r, actor: all, unit: day, rpu: 9, scope: local}]";
    for (document, reads) in [
        (format!("limits: [{{Url: /a, match: {{route: shop}}, {rule}}}]"), true),
        (format!("limits: [{{Url: /b, match: {{route: shop}}, {rule}}}]"), false),
        (format!("limits: [{{Url: /, match: {{route: shop, methods: [POST]}}, {rule}}}]"), false),
        (format!("limits: [{{Url: /, match: {{route: shop, hosts: [h]}}, {rule}}}]"), false),
        (format!("limits: [{{Url: /, match: {{route: shop, headers: {{x: y}}}}, {rule}}}]"), false),
        (
            format!("limits: [{{Url: /, match: {{route: shop, addresses: [10.0.0.1]}}, {rule}}}]"),
            false,
        ),
        (
            format!("limits: [{{Url: /, match: [{{route: shop}}, {{methods: [GET]}}], {rule}}}]"),
            false,
        ),
        (
            format!("limits: [{{Url: /, unless: [{{route: shop}}, {{methods: [GET]}}], {rule}}}]"),
            false,
        ),
        (format!("limits: [{{Url: /, unless: {{route: shop}}, {rule}}}]"), true),
        (format!("limits: [{{Url: /, except: {{route: shop, paths: [/a]}}, {rule}}}]"), false),
        (format!("limits: [{{Url: /, except: {{route: shop}}, {rule}}}]"), true),
        (format!("except: {{route: shop}}\nlimits: [{{Url: /, {rule}}}]"), true),
        (format!("except: {{route: shop}}\nlimits: [{{Url: /b, {rule}}}]"), false),
        (
            format!(
                "except: {{route: x}}\nlimits: [{{Url: /, match: {{methods: [PUT]}}, {rule}}}]"
            ),
            false,
        ),
        (format!("disabled: true\nlimits: [{{Url: /, match: {{route: shop}}, {rule}}}]"), false),
    ] {
        let mut gate = Gate::new(&document);
        let request = FakeRequest::get("/a").from("192.0.2.1:1").routed("shop");
        let request = Watched { request, asked: RefCell::default() };
        gate.limiter.decide(&request, 0, &gate.clock);
        let asked = request.asked.into_inner();
        assert_eq!(asked.iter().any(|what| what == "route"), reads, "{document}");
    }
}
