//! Documents that some workers of a gateway refuse, and others do not: those of a newer release, as during an upgrade or a rollback.

use diana_policy::port::SharedData;

use super::{EVERY, Gateway, LOCAL, SECOND, Server, document};

/// A document with a key that this release does not know.
const NEWER: &str = "limits: []\nfrom_the_future: 1";

fn key(gateway: &Gateway, what: &str) -> String {
    gateway.data.keys().into_iter().find(|key| key.contains(what)).unwrap()
}

/// The server has the newer document, and a worker of a newer release has received it.
fn receive_newer(gateway: &mut Gateway) {
    gateway.server = Server::Serves(NEWER.into());
    gateway.data.set(&key(gateway, "/document"), NEWER.as_bytes());
    let head = key(gateway, "/head");
    let mut words = gateway.data.get(&head).unwrap().0;
    words[5 * 8..6 * 8].copy_from_slice(&version(NEWER).to_le_bytes());
    gateway.data.set(&head, &words);
}

fn version(text: &str) -> u64 {
    diana_worker::remote::version_of(text.as_bytes())
}

#[test]
fn document_of_a_newer_worker_is_kept_and_logged_once() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    gateway.lines();
    receive_newer(&mut gateway);
    gateway.run(3 * SECOND);
    assert_eq!(gateway.rules(), ["a"; 4]);
    let lines = gateway.lines();
    assert_eq!(lines.len(), 4, "one for each worker: {lines:?}");
    assert!(lines.iter().all(|line| line.contains("cannot parse it")), "{lines:?}");
    // The leader receives it, too.
    gateway.run(3 * EVERY);
    let lines = gateway.lines();
    assert_eq!((gateway.rules(), gateway.count("rejected")), (vec!["a"; 4], 3));
    let stays = format!("version {:016x} stays active", version(&document("a")));
    assert!(lines[0].ends_with(&stays), "{lines:?}");
    assert!(lines.len() == 2 && lines[1].contains("from_the_future"), "{lines:?}");
    gateway.serve("b");
    gateway.run(EVERY + SECOND);
    assert_eq!(gateway.rules(), ["b"; 4]);
}

#[test]
fn rollback_starts_with_the_last_document_of_its_release() {
    let mut gateway = Gateway::serving("a");
    gateway.run(SECOND);
    receive_newer(&mut gateway);
    gateway.workers.clear();
    gateway.run(60 * SECOND);
    (0..4).for_each(|_| gateway.start(LOCAL));
    assert_eq!(gateway.rules(), ["a"; 4], "before their first tick");
    gateway.run(3 * EVERY);
    assert_eq!(gateway.rules(), ["a"; 4]);
    let in_force: Vec<i64> = gateway.workers.iter().map(|worker| worker.in_force).collect();
    assert_eq!((in_force, gateway.count("applied")), (vec![1; 4], 0));
    assert!(gateway.count("rejected") >= 2, "the alert reads it");
    gateway.serve("b");
    gateway.run(EVERY + SECOND);
    assert_eq!(gateway.rules(), ["b"; 4]);
}

#[test]
fn damaged_document_of_its_release_is_never_applied() {
    for damage in [&b""[..], b"1234567", document("forged").as_bytes()] {
        let mut gateway = Gateway::serving("a");
        gateway.run(SECOND);
        receive_newer(&mut gateway);
        gateway.data.set(&key(&gateway, "/received/"), damage);
        gateway.start(LOCAL);
        assert_eq!(gateway.rules()[4], "own", "{damage:?}");
    }
}

/// A document may be valid only with some settings of the gateway's own.
#[test]
fn refused_document_is_read_again_with_other_settings() {
    let over = "limits: [{Url: /, rules: [{name: a, actor: all, unit: day, rpu: 5, over: {mark: x-over, value: busy}}]}]";
    let marked = |name: &str| format!("{LOCAL}\nmark: {name}");
    let mut gateway = Gateway::new(2, &marked("x-over"), Server::Serves(over.into()));
    gateway.run(SECOND);
    assert_eq!((gateway.rules(), gateway.count("rejected")), (vec!["own"; 2], 1));
    gateway.workers.clear();
    gateway.start(&marked("x-shadow"));
    gateway.run(EVERY + SECOND);
    assert_eq!(gateway.rules(), ["a"]);
}
