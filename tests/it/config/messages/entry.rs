use insta::assert_snapshot;

/// What is said about an entry with these fields besides `rules`; its path is left out.
fn of(fields: &str) -> String {
    let text = format!("limits: [{{{fields}, rules: []}}]");
    super::super::messages(&text).replace("limits[0]", "")
}

#[test]
fn url() {
    assert_snapshot!(of("Url: sample"), @".Url: `sample` must begin with `/`");
    assert_snapshot!(of("Url: /a/../b"), @".Url: `/a/../b` is never what a request's path is compared with; write `/b`");
    assert_snapshot!(of("Url: 5"), @".Url: found `5`, allowed: a path such as `/sample`, or a list of paths");
    assert_snapshot!(of("Url: /, url: /"), @".url: duplicate key: `url` and `Url` are the same");
    assert_snapshot!(of("ignore_case: false"), @".Url: required, allowed: a path such as `/sample`, or a list of paths");
    assert_snapshot!(of("Url: /, ignore_case: maybe"), @".ignore_case: found `maybe`, allowed: true or false");
}

#[test]
fn rules() {
    assert_snapshot!(super::super::messages("limits: [{Url: /}]"), @"limits[0].rules: required, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`");
    assert_snapshot!(super::super::messages("limits: [{Url: /, rules: }]"), @"limits[0].rules: found nothing, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`");
    assert_snapshot!(super::super::messages("limits: [{Url: /, rules: {actor: all}}]"), @"limits[0].rules: found a mapping, allowed: a list of rules such as `{actor: device, unit: second, rpu: 10}`");
    assert_snapshot!(super::super::messages("limits: [{Url: /, rules: [7, ~, text]}]"), @"
    limits[0].rules[0]: found `7`, allowed: a mapping such as `{actor: device, unit: second, rpu: 10}`
    limits[0].rules[1]: found nothing, allowed: a mapping such as `{actor: device, unit: second, rpu: 10}`
    limits[0].rules[2]: found `text`, allowed: a mapping such as `{actor: device, unit: second, rpu: 10}`
    ");
}

#[test]
fn keys() {
    assert_snapshot!(of("Url: /, burst: 5"), @".burst: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; `burst` belongs in a rule");
    assert_snapshot!(of("Url: /, hosts: []"), @".hosts: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; `hosts` belongs in `match` or `unless`");
    assert_snapshot!(of("Url: /, shadow: true"), @".shadow: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; `shadow` belongs at the top, beside `limits`, or in a rule");
    assert_snapshot!(of("Url: /, rule: []"), @".rule: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; did you mean `rules`?");
    assert_snapshot!(of("URL: /"), @"
    .Url: required, allowed: a path such as `/sample`, or a list of paths
    .URL: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; did you mean `Url`?
    ");
    assert_snapshot!(of("Url:/"), @"
    .Url: required, allowed: a path such as `/sample`, or a list of paths
    .`Url:/`: unknown key, allowed: Url, url, rules, match, unless, except, response, ignore_case; a space is missing after the colon: write `Url: /`
    ");
}

#[test]
fn matching() {
    assert_snapshot!(of("Url: /, match: [POST]"), @r#".match[0]: found `POST`, allowed: a mapping such as `{methods: [POST], hosts: ["*.example.com"]}`"#);
    assert_snapshot!(of("Url: /, match: {method: [POST]}"), @".match.method: unknown key, allowed: methods, hosts, headers, query, cookies, addresses, metadata, claims; did you mean `methods`?");
    assert_snapshot!(of("Url: /, match: {methods: POST}"), @".match.methods: found `POST`, allowed: a list of methods such as `[GET, POST]`");
    assert_snapshot!(of("Url: /, match: {methods: []}"), @".match.methods: found an empty list, allowed: a list of methods such as `[GET, POST]`; without `methods` all match");
    assert_snapshot!(of("Url: /, match: {methods: [post, 'G T', 1]}"), @"
    .match.methods[0]: found `post`, allowed: a method in upper case, such as POST; did you mean `POST`?
    .match.methods[1]: found `G T`, allowed: a method in upper case, such as POST
    .match.methods[2]: found `1`, allowed: a method in upper case, such as POST
    ");
    assert_snapshot!(of("Url: /, match: {hosts: ['a:80', '*', 'a*.b', '', '[::1', '[@1:1]', '[::1]']}"), @"
    .match.hosts[0]: found `a:80`, allowed: a host name without port, or `*.` and a host name
    .match.hosts[1]: found `*`, allowed: a host name without port, or `*.` and a host name
    .match.hosts[2]: found `a*.b`, allowed: a host name without port, or `*.` and a host name
    .match.hosts[3]: found ``, allowed: a host name without port, or `*.` and a host name
    .match.hosts[4]: found `[::1`, allowed: a host name without port, or `*.` and a host name
    .match.hosts[5]: found `[@1:1]`, allowed: a host name without port, or `*.` and a host name
    ");
}

#[test]
fn headers() {
    let of = |headers: &str| of(&format!("Url: /, match: {{headers: {headers}}}"));
    assert_snapshot!(of("[x-app]"), @".match.headers: found a list, allowed: a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`");
    assert_snapshot!(of("{x-app: 5, x-b: [a], x-c: ~}"), @"
    .match.headers.x-app: found `5`, allowed: a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, `{not: …}`; put it in quotes to make it text
    .match.headers.x-b: found a list, allowed: a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, `{not: …}`
    .match.headers.x-c: found nothing, allowed: a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, `{not: …}`
    ");
    assert_snapshot!(of("{x-app: {prefx: a}}"), @".match.headers.x-app.prefx: unknown key, allowed: exact, prefix, suffix, contains, in, present, not; did you mean `prefix`?");
    assert_snapshot!(of("{x-app: {prefix: a, suffix: b}}"), @".match.headers.x-app: found 2 conditions, allowed: a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, `{not: …}`");
    assert_snapshot!(of("{x-app: {}}"), @".match.headers.x-app: found 0 conditions, allowed: a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, `{not: …}`");
    assert_snapshot!(of("{x-app: {prefix: ''}}"), @".match.headers.x-app.prefix: found ``, allowed: some text; `{present: true}` holds for any value");
    assert_snapshot!(of("{x-app: {present: 1}}"), @".match.headers.x-app.present: found `1`, allowed: true or false");
    assert_snapshot!(of(r#"{x-app: "a\nb"}"#), @r#".match.headers.x-app: found `a\nb`, allowed: text on one line"#);
    assert_snapshot!(of("{'x app': a, '': b}"), @"
    .match.headers.`x app`: not a header's name
    .match.headers.``: not a header's name
    ");
    assert_snapshot!(of("{Host: a, ':path': b}"), @"
    .match.headers.Host: no header but a part of the request: see `Url`, `paths`, `methods`, `hosts`
    .match.headers.`:path`: no header but a part of the request: see `Url`, `paths`, `methods`, `hosts`
    ");
    assert_snapshot!(of("{x-app: a, X-App: b}"), @".match.headers.X-App: duplicate key: the same header as `x-app`");
}

#[test]
fn blocks() {
    let of = |conditions: &str| of(&format!("Url: /, {conditions}"));
    assert_snapshot!(of("match: []"), @r#".match: found an empty list, allowed: a mapping such as `{methods: [POST], hosts: ["*.example.com"]}`, or a list of those"#);
    assert_snapshot!(of("match: [{}, {methods: [GET]}]"), @".match[0]: found an empty mapping, which all requests meet; leave it out");
    assert_snapshot!(of("unless: {}"), @".unless: found an empty mapping, which takes all requests out; leave it out");
    assert_snapshot!(of("unless: {method: [GET]}"), @".unless.method: unknown key, allowed: methods, hosts, headers, query, cookies, addresses, metadata, claims; did you mean `methods`?");
    assert_snapshot!(of("match: {addresses: [a]}, unless: {addresses: []}"), @"
    .match.addresses[0]: found `a`, allowed: an address such as 192.0.2.1, or a network such as 10.0.0.0/8
    .unless.addresses: found an empty list, allowed: a list of addresses such as `[10.0.0.0/8, 192.0.2.1]`; without `addresses` all match
    ");
}

#[test]
fn values() {
    let of = |conditions: &str| of(&format!("Url: /, match: {{{conditions}}}"));
    assert_snapshot!(of("query: {'': a}, cookies: {'a=b': c, d: {in: []}}"), @"
    .match.query.``: not a name, allowed: a parameter's name
    .match.cookies.`a=b`: not a name, allowed: a cookie's name, without `=`, `;` or spaces
    .match.cookies.d.in: found an empty list, which nothing is in; allowed: a list of values such as `[gold, silver]`
    ");
    assert_snapshot!(of("query: {a: {in: [b, c, b]}, d: {in: e}, f: {contains: ''}}"), @"
    .match.query.a.in[2]: `b` is in the list already
    .match.query.d.in: found `e`, allowed: a list of values such as `[gold, silver]`
    .match.query.f.contains: found ``, allowed: some text; `{present: true}` holds for any value
    ");
    assert_snapshot!(of("metadata: {n.s: gold, '': {a: b}}"), @"
    .match.metadata.`n.s`: found `gold`, allowed: a mapping from names to conditions, such as `{x-app: {prefix: mobile}}`
    .match.metadata.``: found no name, allowed: a namespace
    .match.metadata.``.a: not a name, allowed: a key of metadata
    ");
    assert_snapshot!(of("claims: {plan: gold}"), @"
    .match.claims.payload: required, allowed: a mapping such as `{payload: jwt, values: {plan: gold}}`, where `payload` is the `payload_in_metadata` of jwt_authn
    .match.claims.values: required, allowed: a mapping such as `{payload: jwt, values: {plan: gold}}`, where `payload` is the `payload_in_metadata` of jwt_authn
    .match.claims.plan: unknown key, allowed: payload, values
    ");
}

#[test]
fn several_paths() {
    assert_snapshot!(of("Url: []"), @".Url: found 0 paths, allowed: 1 … 100");
    assert_snapshot!(of("Url: [/a, b, 5]"), @"
    .Url[1]: `b` must begin with `/`
    .Url[2]: found `5`, allowed: a path such as `/sample`
    ");
    assert_snapshot!(of("Url: [/a/b, /a, /c, /c]"), @"
    .Url[0]: is covered by `/a` already, which is in the list; leave it out
    .Url[3]: is covered by `/c` already, which is in the list; leave it out
    ");
}

#[test]
fn except() {
    let of = |except: &str| of(&format!("Url: /, except: {except}"));
    assert_snapshot!(of("[10.0.0.0/8]"), @".except: found a list, allowed: a mapping such as `{addresses: [10.0.0.0/8], paths: [/healthz]}`");
    assert_snapshot!(of("{address: [10.0.0.0/8]}"), @".except.address: unknown key, allowed: addresses, paths, headers; did you mean `addresses`?");
    assert_snapshot!(of("{addresses: 10.0.0.0/8}"), @".except.addresses: found `10.0.0.0/8`, allowed: a list of addresses such as `[10.0.0.0/8, 192.0.2.1]`");
    assert_snapshot!(of("{addresses: [10.0.0.0/33, example.com, 10, '::1/129']}"), @"
    .except.addresses[0]: found `10.0.0.0/33`, allowed: an address such as 192.0.2.1, or a network such as 10.0.0.0/8
    .except.addresses[1]: found `example.com`, allowed: an address such as 192.0.2.1, or a network such as 10.0.0.0/8
    .except.addresses[2]: found `10`, allowed: an address such as 192.0.2.1, or a network such as 10.0.0.0/8
    .except.addresses[3]: found `::1/129`, allowed: an address such as 192.0.2.1, or a network such as 10.0.0.0/8
    ");
    assert_snapshot!(of("{paths: [healthz, /a//b, 5]}"), @"
    .except.paths[0]: `healthz` must begin with `/`
    .except.paths[1]: `/a//b` is never what a request's path is compared with; write `/a/b`
    .except.paths[2]: found `5`, allowed: a path such as `/healthz`
    ");
    assert_snapshot!(of("{paths: [/caf%C3%A9, /100%25, /caf%E9, /a%252541, /a%3Fb]}"), @"
    .except.paths[0]: `/caf%C3%A9` is never what a request's path is compared with; write `/café`
    .except.paths[1]: `/100%25` is never what a request's path is compared with; write `/100%`
    .except.paths[2]: `/caf%E9` is never what a request's path is compared with, and no configured path means the same
    .except.paths[3]: `/a%252541` is never what a request's path is compared with, and no configured path means the same
    .except.paths[4]: `/a%3Fb` is never what a request's path is compared with, and no configured path means the same
    ");
    assert_snapshot!(of("{headers: {x-probe: 1}}"), @".except.headers.x-probe: found `1`, allowed: a value, or one of `{exact: …}`, `{prefix: …}`, `{suffix: …}`, `{contains: …}`, `{in: […]}`, `{present: true}`, `{not: …}`; put it in quotes to make it text");
}
