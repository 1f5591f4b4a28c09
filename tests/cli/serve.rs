//! `diana serve`, as gateways and the kubelet use it.

mod certificates;
#[cfg(feature = "policies")]
mod cluster;
mod companion;
#[cfg(feature = "policies")]
mod policies;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::command::{diana, folder};
use certificates::Certificates;
use companion::{Companion, status};

const GOOD: &str = "# A comment stays.\nlimits:\n- Url: /\n  rules:\n  - {name: all, actor: all, unit: second, rpu: 10}\n";
const GOOD_TAG: &str = "\"9012dbc596156371\"";
const BETTER: &str = "limits: []\n";
/// Its problem is in line 1, column 1.
const BAD: &str = "limit: []\n";
const MODULE: &[u8] = b"\0asm\x01";
const MODULE_PATH: &str =
    "/modules/42fd6e7502a18143f0c206c99f1e0787fbcac6b1c5f9969a4cb0d2f7035d07e3.wasm";
const LIBRARY: &[u8] = b"\x7fELF";
const LIBRARY_PATH: &str =
    "/modules/3bdbb4fe8397cd2b842430b39ccff01a8663c751945ef5e9a09e267fb8b1d359.so";

/// A folder with rules, two modules and a library.
fn site(rules: &str) -> std::path::PathBuf {
    let folder = folder(&[
        ("rules.yaml", rules),
        ("modules/before.wasm", "\0asm"),
        ("modules/note.txt", ""),
    ]);
    fs::write(folder.join("modules/now.wasm"), MODULE).unwrap();
    fs::write(folder.join("modules/libdiana.so"), LIBRARY).unwrap();
    folder
}

/// Replaces a file as a whole, as editors and the kubelet do.
fn replace(path: &Path, content: impl AsRef<[u8]>) {
    let part = path.with_extension("part");
    fs::write(&part, content).unwrap();
    fs::rename(part, path).unwrap();
}

#[test]
fn it_lives_while_it_checks_its_first_document() {
    let folder = site(GOOD);
    let slow = folder.join("slow");
    assert!(Command::new("mkfifo").arg(&slow).status().unwrap().success());
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut companion = Companion::begin(&folder, &slow, address, &[]);
    while TcpStream::connect(companion.address).is_err() {}
    assert_eq!(status(&companion.request("GET", "/live")), "200 OK");
    assert_eq!(status(&companion.request("GET", "/ready")), "503 Service Unavailable");
    fs::write(slow, GOOD).unwrap();
    companion.wait_for("listening on");
    assert_eq!(status(&companion.request("GET", "/ready")), "200 OK");
}

#[test]
fn paths_have_exact_answers() {
    let companion = Companion::start(&site(GOOD));
    let sized = |kind: &str, size: usize| format!("content-type: {kind}\r\ncontent-length: {size}");
    let tagged = |head: String| head.replacen("\r\n", &format!("\r\netag: {GOOD_TAG}\r\n"), 1);
    let text = "text/plain; charset=utf-8";
    for (path, status, head, body) in [
        ("/live", "200 OK", sized(text, 5), "live\n".as_bytes()),
        ("/ready", "200 OK", sized(text, 6), b"ready\n"),
        ("/rules.yaml", "200 OK", tagged(sized("application/yaml", GOOD.len())), GOOD.as_bytes()),
        ("/rules.txt", "200 OK", sized(text, 4), b"all\n"),
        (
            "/rules.yaml?version=3",
            "200 OK",
            tagged(sized("application/yaml", GOOD.len())),
            GOOD.as_bytes(),
        ),
        (MODULE_PATH, "200 OK", sized("application/wasm", MODULE.len()), MODULE),
        (LIBRARY_PATH, "200 OK", sized("application/octet-stream", LIBRARY.len()), LIBRARY),
        ("/modules/now.wasm", "404 Not Found", sized(text, 10), b"not found\n"),
        ("/", "404 Not Found", sized(text, 10), b"not found\n"),
    ] {
        for method in ["GET", "HEAD"] {
            let body = if method == "GET" { body } else { b"" };
            let wanted = [format!("HTTP/1.1 {status}\r\n{head}\r\n\r\n").as_bytes(), body].concat();
            let answer = companion.request(method, path);
            assert_eq!(answer, String::from_utf8(wanted).unwrap(), "{method} {path}");
        }
    }
}

/// The head and the body of the answer to a request for the rules with these headers.
fn polled(companion: &Companion, headers: &str) -> (String, String) {
    let request = format!("GET /rules.yaml HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
    let answer = companion.exchange(request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn client_that_has_the_rules_gets_no_body() {
    let folder = site(GOOD);
    let mut companion = Companion::start(&folder);
    let (same, weak) = (GOOD_TAG.to_owned(), format!("W/{GOOD_TAG}"));
    let lists =
        ["\"a\", W/", "\"a,b\",", "\"a\" ,\t"].map(|before| format!("{before}{same} ,\"b\""));
    let [with_weak, with_comma, with_spaces] = &lists;
    for known in [&same, &weak, with_weak, with_comma, with_spaces, "*"] {
        let (head, body) = polled(&companion, &format!("if-none-match: {known}\r\n"));
        let wanted = format!("HTTP/1.1 304 Not Modified\r\netag: {GOOD_TAG}");
        assert_eq!((head, body), (wanted, String::new()), "{known}");
    }
    let two = format!("if-none-match: \"a\"\r\nif-none-match: {same}\r\n");
    assert!(polled(&companion, &two).0.contains("304"));
    let unquoted = same.trim_matches('"');
    let quoted = format!("\"a,{unquoted}\", \"*\"");
    for other in
        ["\"a\"", "", unquoted, &format!("w/{same}"), &format!("W/ {same}"), "\"\"", &quoted]
    {
        let (head, body) = polled(&companion, &format!("if-none-match: {other}\r\n"));
        assert!(head.contains("200 OK") && body == GOOD, "{other}: {head}");
    }
    replace(&folder.join("rules.yaml"), BETTER);
    companion.wait_for("is served");
    let (head, body) = polled(&companion, &format!("if-none-match: {same}\r\n"));
    assert!(head.contains("200 OK") && !head.contains(GOOD_TAG) && body == BETTER, "{head}");
}

/// The value of a metric, by its name and labels.
fn metric(companion: &Companion, name: &str) -> Option<u64> {
    let text = companion.request("GET", "/metrics");
    let mut samples = text.lines().filter_map(|line| line.rsplit_once(' '));
    samples.find(|(it, _)| *it == format!("diana_serve_{name}"))?.1.parse().ok()
}

#[test]
fn metrics_count_refused_documents_and_polls() {
    let folder = site(BAD);
    let mut companion = Companion::start(&folder);
    let seen = |companion: &Companion| {
        ["refused", "refusals_total", "rules"].map(|name| metric(companion, name))
    };
    polled(&companion, "");
    assert_eq!(seen(&companion), [Some(1), Some(1), Some(0)]);
    assert_eq!(metric(&companion, "polls_total{answer=\"unready\"}"), Some(1));
    let file = folder.join("rules.yaml");
    replace(&file, GOOD);
    companion.wait_for("is served");
    assert_eq!(seen(&companion), [Some(0), Some(1), Some(1)]);
    let document = format!("document{{version={GOOD_TAG}}}");
    let checksum = Some(diana_config::checksum(GOOD.as_bytes()).into());
    assert_eq!(metric(&companion, &document), checksum);
    (0..2).for_each(|_| drop(polled(&companion, "")));
    (0..3).for_each(|_| drop(polled(&companion, &format!("if-none-match: {GOOD_TAG}\r\n"))));
    let polls = ["document", "unchanged", "unready"];
    let polls = polls.map(|it| metric(&companion, &format!("polls_total{{answer=\"{it}\"}}")));
    assert_eq!(polls, [Some(2), Some(3), Some(1)]);
    for (round, wrong) in [BAD, "limits: [", ""].into_iter().enumerate() {
        replace(&file, wrong);
        companion.wait_for("is still served");
        assert_eq!(seen(&companion), [Some(1), Some(round as u64 + 2), Some(1)]);
        assert_eq!(metric(&companion, &document), checksum);
    }
    fs::remove_file(&file).unwrap();
    companion.wait_for("is still served");
    assert_eq!(seen(&companion), [Some(1), Some(5), Some(1)]);
}

/// As the kubelet runs it: its output is in the event of a pod that is not ready.
#[test]
fn probe_prints_the_problems() {
    let made = Certificates::new("probed");
    let folder = site(BAD);
    let (chain, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    replace(&key, &made.key);
    replace(&chain, &made.chain);
    let tls = ["--tls-cert", chain.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    for (served, probed) in [(&[][..], &[][..]), (&tls[..], &["--tls"][..])] {
        let file = folder.join("rules.yaml");
        replace(&file, BAD);
        let mut companion = Companion::with(&folder, &file, served);
        let address = companion.address.to_string();
        let ask = || diana(&[&["ready", "--address", &address], probed].concat());
        let ran = ask();
        let problem = format!("{}:1:1 limit: unknown key", file.display());
        assert!(ran.code == Some(1) && ran.out.contains(&problem), "{ran:?}");
        replace(&file, GOOD);
        companion.wait_for("is served");
        let ran = ask();
        assert_eq!((ran.code, &*ran.out), (Some(0), "ready\n"), "{ran:?}");
        replace(&file, BAD);
        companion.wait_for("is still served");
        let ran = ask();
        assert!(ran.code == Some(0) && ran.out.contains(&problem), "{ran:?}");
        drop(companion);
        let ran = ask();
        assert!(ran.code == Some(2) && ran.error.contains(&address), "{ran:?}");
    }
}

#[test]
fn modules_are_named_by_their_content() {
    let companion = Companion::start(&site(GOOD));
    let named: Vec<&String> =
        companion.started.iter().filter(|line| line.contains("/modules/")).collect();
    assert!(named.len() == 3 && named.iter().any(|line| line.ends_with(MODULE_PATH)), "{named:?}");
    for line in named {
        let path = line.rsplit(' ').next().unwrap();
        assert_eq!(status(&companion.request("GET", path)), "200 OK", "{line}");
    }
}

#[test]
fn hostile_requests_are_refused() {
    let companion = Companion::start(&site(GOOD));
    let long = format!("GET /live HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    let many = format!("GET /live HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(200));
    let allowed = "405 Method Not Allowed";
    for (request, wanted) in [
        ("POST /rules.yaml HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc", allowed),
        ("PUT /rules.yaml HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n", allowed),
        ("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", allowed),
        ("CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n", allowed),
        ("DIANA /live HTTP/1.1\r\nhost: a\r\n\r\n", allowed),
        ("GET /modules/../rules.yaml HTTP/1.1\r\nhost: a\r\n\r\n", "404 Not Found"),
        ("GET /modules/%2e%2e/rules.yaml HTTP/1.1\r\nhost: a\r\n\r\n", "404 Not Found"),
        ("GET //rules.yaml HTTP/1.1\r\nhost: a\r\n\r\n", "404 Not Found"),
        ("GET /rules.yaml%00 HTTP/1.1\r\nhost: a\r\n\r\n", "404 Not Found"),
        ("GET http://b/live HTTP/1.1\r\nhost: a\r\n\r\n", "200 OK"),
        ("GET /live HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET /live\r\n\r\n", "400 Bad Request"),
        ("GET /live HTTP/1.1\nhost a\n\n", "400 Bad Request"),
        ("GET /live HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n", "400 Bad Request"),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", "400 Bad Request"),
        (&long, "431 Request Header Fields Too Large"),
        (&many, "431 Request Header Fields Too Large"),
    ] {
        assert_eq!(status(&companion.exchange(request.as_bytes())), wanted, "{request:.80}");
    }
    // A body that looks like a request is no request.
    let hidden = "GET /rules.yaml HTTP/1.1\r\nhost: a\r\n\r\n";
    let size = hidden.len();
    let request =
        format!("GET /live HTTP/1.1\r\nhost: a\r\ncontent-length: {size}\r\n\r\n{hidden}");
    let answer = companion.exchange(request.as_bytes());
    assert!(status(&answer) == "200 OK" && !answer.contains("limits"), "{answer}");
    // Requests sent at once are answered in turn.
    let both = ["/live", "/ready"].map(|path| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
    let answer = companion.exchange(both.concat().as_bytes());
    assert!(answer.find("live\n") < answer.find("ready\n"), "{answer}");
    assert_eq!(answer.matches("200 OK").count(), 2, "{answer}");
}

#[test]
fn wrong_document_is_never_served() {
    let folder = site(BAD);
    let mut companion = Companion::start(&folder);
    let file = folder.join("rules.yaml");
    let name = file.to_str().unwrap();
    let problems = |companion: &Companion| {
        let ready = companion.request("GET", "/ready");
        (status(&ready).to_owned(), ready.split("\r\n\r\n").nth(1).unwrap().to_owned())
    };
    let unknown = format!("{name}:1:1 limit: unknown key");
    assert!(companion.started.iter().any(|line| line.contains(&unknown)), "{companion:?}");
    let (code, text) = problems(&companion);
    assert!(code == "503 Service Unavailable" && text.contains(&unknown), "{text}");
    assert!(text.contains("did you mean `limits`?"), "{text}");
    assert_eq!(status(&companion.request("GET", "/rules.yaml")), "503 Service Unavailable");
    assert_eq!(status(&companion.request("GET", "/live")), "200 OK");

    replace(&file, GOOD);
    companion.wait_for("is served, 1 rule: all");
    assert_eq!(problems(&companion), ("200 OK".into(), "ready\n".into()));

    let large = format!("{GOOD}#{}", "x".repeat(1 << 20));
    let zone = format!("{GOOD}time_zone: Europe/Berln\n");
    for (wrong, problem) in [
        (BAD.as_bytes(), ":1:1 limit: unknown key"),
        (b"", "limits: required"),
        (b"limits: [", ":1:9 not valid YAML"),
        (b"limits: \xff", "UTF-8"),
        (large.as_bytes(), ": more than 1048576 bytes"),
        (b"redis: {cluster: a}\nlimits: []", "only allowed in the gateway's own configuration"),
        (zone.as_bytes(), "did you mean `Europe/Berlin`?"),
    ] {
        replace(&file, wrong);
        companion.wait_for("is still served");
        let (code, text) = problems(&companion);
        assert!(code == "200 OK" && text.contains(problem), "{problem}: {text}");
        assert!(companion.request("GET", "/rules.yaml").ends_with(GOOD), "{problem}");
    }
    fs::remove_file(&file).unwrap();
    companion.wait_for("is still served");
    companion.next_line("No such file");
    assert!(companion.request("GET", "/rules.yaml").ends_with(GOOD));
    replace(&file, BETTER);
    companion.wait_for("is served, without rules");
    companion.next_line("these rules have ended: all");
    assert!(companion.request("GET", "/rules.yaml").ends_with(BETTER));
    assert!(companion.request("GET", "/rules.txt").ends_with("\r\n\r\n"));
    assert_eq!(problems(&companion), ("200 OK".into(), "ready\n".into()));
}

#[test]
fn missing_document_is_waited_for() {
    let folder = site(GOOD);
    let file = folder.join("rules.yaml");
    fs::remove_file(&file).unwrap();
    let mut companion = Companion::start(&folder);
    assert!(companion.request("GET", "/ready").contains("No such file"));
    replace(&file, GOOD);
    companion.wait_for("is served");
    assert_eq!(status(&companion.request("GET", "/ready")), "200 OK");
}

#[test]
fn mounted_config_map_is_followed() {
    let folder = site("");
    let mount = folder.join("mount");
    for (version, rules) in [("..1", GOOD), ("..2", BETTER)] {
        fs::create_dir_all(mount.join(version)).unwrap();
        fs::write(mount.join(version).join("rules.yaml"), rules).unwrap();
    }
    symlink("..1", mount.join("..data")).unwrap();
    symlink("..data/rules.yaml", mount.join("rules.yaml")).unwrap();
    let mut companion = Companion::with(&folder, &mount.join("rules.yaml"), &[]);
    assert!(companion.request("GET", "/rules.yaml").ends_with(GOOD));
    // As the kubelet replaces it.
    symlink("..2", mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    fs::remove_dir_all(mount.join("..1")).unwrap();
    companion.wait_for("is served");
    assert!(companion.request("GET", "/rules.yaml").ends_with(BETTER));
}

#[test]
fn silent_clients_leave_room_for_others() {
    let companion = Companion::start(&site(GOOD));
    let mut silent: Vec<TcpStream> = (0..511).map(|_| companion.connect()).collect();
    silent.iter_mut().for_each(|client| client.write_all(b"GET /li").unwrap());
    // With few free connections, none stays open for a client's next request.
    let answer = companion.exchange(b"GET /live HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(status(&answer) == "200 OK" && answer.contains("connection: close"), "{answer}");
    // One that waits for a free connection is answered when another ends.
    silent.push(companion.connect());
    let mut late = companion.connect();
    late.write_all(b"GET /live HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    drop(silent);
    let mut answer = String::new();
    late.shutdown(std::net::Shutdown::Write).unwrap();
    late.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), "200 OK");
}

#[test]
fn sigterm_completes_responses_in_progress() {
    let folder = site(GOOD);
    let large: Vec<u8> = (0..32_u32 << 20).map(|at| at.to_le_bytes()[1]).collect();
    fs::write(folder.join("modules/large.wasm"), &large).unwrap();
    let mut companion = Companion::start(&folder);
    let named = companion.started.iter().find(|line| line.contains("large.wasm")).unwrap();
    let path = named.rsplit(' ').next().unwrap().to_owned();
    let mut idle = companion.connect();
    let mut busy = companion.connect();
    busy.write_all(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").as_bytes()).unwrap();
    let mut begin = [0; 15];
    busy.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    companion.terminate();
    companion.wait_for("still answers");
    // Gateways that have not heard of the end yet are answered, and then connect to another server.
    let answer = companion.request("GET", "/live");
    assert!(status(&answer) == "200 OK" && answer.contains("connection: close"), "{answer}");
    assert_eq!(idle.read(&mut [0]).unwrap(), 0);
    while TcpStream::connect(companion.address).is_ok() {}
    let mut rest = Vec::new();
    busy.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(&large), "{} bytes", rest.len());
    companion.wait_for("ended by a signal");
    assert_eq!(companion.exit_code(), Some(0));
}

#[test]
fn changed_certificate_is_used_and_the_log_repeats_nothing() {
    let made = [Certificates::new("first"), Certificates::new("second")];
    let folder = site(GOOD);
    let (chain, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let install = |made: &Certificates| {
        replace(&key, &made.key);
        replace(&chain, &made.chain);
    };
    install(&made[0]);
    let flags = ["--tls-cert", chain.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let mut companion = Companion::with(&folder, &folder.join("rules.yaml"), &flags);
    let ready = |companion: &Companion, made: &Certificates| {
        made.exchange(
            companion.connect(),
            b"GET /ready HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        )
    };
    assert_eq!(status(&ready(&companion, &made[0]).unwrap()), "200 OK");
    assert!(ready(&companion, &made[1]).is_err());
    // A client without TLS gets no answer of HTTP.
    let plain = companion.exchange_bytes(b"GET /ready HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(!plain.starts_with(b"HTTP"), "{plain:?}");

    replace(&folder.join("rules.yaml"), BAD);
    companion.wait_for("the rules cannot be used");
    companion.next_line("limit: unknown key");
    replace(&chain, "no certificate");
    // The rules were read again before the certificate.
    companion.next_line("the last good certificate stays in use");
    assert_eq!(status(&ready(&companion, &made[0]).unwrap()), "200 OK");
    install(&made[1]);
    while !companion.any_line().contains("new connections get the changed certificate") {}
    assert_eq!(status(&ready(&companion, &made[1]).unwrap()), "200 OK");
    assert!(ready(&companion, &made[0]).is_err());
}

#[test]
fn unusable_arguments_end_it() {
    let folder = site(GOOD);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (rules, modules) = (path("rules.yaml"), path("modules"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    fs::create_dir(folder.join("none")).unwrap();
    fs::write(folder.join("key"), "").unwrap();
    let none = path("none");
    for (modules, more, problem) in [
        (&none, vec![], "found no *.wasm and no *.so"),
        (&path("nowhere"), vec![], "nowhere: No such file"),
        (&modules, vec!["--listen", &taken], "in use"),
        (&modules, vec!["--tls-cert", &rules], "--tls-key"),
        (&modules, vec!["--tls-cert", &rules, "--tls-key", &path("key")], "private key"),
        (
            &modules,
            vec!["--tls-cert", &path("nothing"), "--tls-key", &rules],
            "nothing: No such file",
        ),
    ] {
        let serve = ["serve", "--rules", &rules, "--modules", modules];
        let ran = diana(&[serve.as_slice(), &more].concat());
        assert!(ran.code == Some(2) && ran.error.contains(problem), "{problem}: {ran:?}");
    }
}

#[test]
fn rules_for_the_dynamic_module_are_what_it_reads() {
    let claims = "limits: [{Url: /, unless: {claims: {payload: jwt, values: {role: admin}}}, rules: [{actor: all, unit: day, rpu: 9}]}]\n";
    let folder = site(claims);
    let wasm = Companion::start(&folder);
    assert_eq!(status(&wasm.request("GET", "/ready")), "200 OK");
    let native = Companion::with(&folder, &folder.join("rules.yaml"), &["--host", "native"]);
    let answer = native.request("GET", "/ready");
    assert_eq!(status(&answer), "503 Service Unavailable");
    assert!(answer.contains("the native module cannot read claims"), "{answer}");
}
