//! Every failure of Redis has a name.

use std::io::{Read, Write};

use diana_policy::Quota;
use diana_policy::time::{SECOND, Unit};
use diana_redis::protocol::{Failure, Login, Script};

use kit::rules::{Rule, by, pipeline};
use kit::server::{Server, spell};

fn ask(server: &Server, login: &Login) -> Result<(), Failure> {
    let rule = Rule::new("TB", Quota::new(Unit::Second, 1000));
    server.ask(&pipeline(None, vec![rule.charge(1, 1, 10)]), login).map(drop)
}

fn login(username: Option<&str>, password: &str) -> Login {
    let username = username.map(str::to_owned);
    Login { username, password: Some(password.into()), db: 0 }
}

#[test]
fn missing_password_has_a_name() {
    let server = Server::with(&["--requirepass", "secret"]);
    assert_eq!(ask(&server, &Login::default()), Err(Failure::NoAuth));
    assert_eq!(ask(&server, &login(None, "guess")), Err(Failure::WrongPass));
    assert_eq!(ask(&server, &login(Some("nobody"), "secret")), Err(Failure::WrongPass));
    assert_eq!(ask(&server, &login(None, "secret")), Ok(()));
    assert_eq!(ask(&server, &login(Some("default"), "secret")), Ok(()));
}

#[test]
fn superfluous_password_has_a_name() {
    assert_eq!(ask(&Server::start(), &login(None, "secret")), Err(Failure::Open));
}

/// A Redis without the command `AUTH` quotes the password in its error.
#[test]
fn errors_about_passwords_are_not_logged() {
    let plain = Server::start();
    let locked = Server::with(&["--requirepass", "other"]);
    let without = Server::with(&["--rename-command", "AUTH", ""]);
    let elsewhere = Server::with(&["--rename-command", "AUTH", "LOGIN", "--requirepass", "s3cret"]);
    for server in [plain, locked, without, elsewhere] {
        // Also passwords that are the first word of a message, or a whole one.
        for password in ["s3cret", "ERR", "unknown", "BUSY", "index", "with args", "a 'b' \"c\""] {
            for name in [None, Some("n4me"), Some("default")] {
                for db in [0, 99] {
                    let login = Login { db, ..login(name, password) };
                    // Any password is valid for a user without one.
                    let Err(failure) = ask(&server, &login) else { continue };
                    let text = failure.to_string();
                    let hidden = !text.contains("s3cret") && !text.contains("n4me");
                    assert!(hidden && !matches!(failure, Failure::Other(_)), "{text}");
                }
            }
        }
    }
}

#[test]
fn quoted_keys_are_not_logged() {
    let server = Server::with(&["--rename-command", "EVALSHA", ""]);
    let failure = ask(&server, &Login::default()).unwrap_err().to_string();
    assert!(failure.contains("unknown command"), "{failure}");
    assert!(!failure.contains("diana:"), "{failure}");
}

#[test]
fn missing_permissions_have_a_name() {
    let server = Server::start();
    let user = |name: &str, rights: &[&str]| {
        let words = [&["ACL", "SETUSER", name, "on", ">pass"], rights].concat();
        assert_eq!(server.command(&words), "OK");
        ask(&server, &login(Some(name), "pass"))
    };
    assert_eq!(user("nothing", &["~*"]), Err(Failure::NoPerm));
    assert_eq!(user("elsewhere", &["~other:*", "+@all"]), Err(Failure::NoPerm));
    // The minimum permissions of a user.
    let commands = "+eval +evalsha +get +set +del +type +zadd +zremrangebyscore +zscore +zcount +pexpire +time +quit";
    let enough = ["~diana:*"].into_iter().chain(commands.split(' ')).collect::<Vec<_>>();
    assert_eq!(user("enough", &enough), Ok(()));
    for without in ["-get", "-set", "-time"] {
        let rights = [&enough[..], &[without]].concat();
        assert_eq!(user("less", &rights), Err(Failure::NoPerm), "{without}");
    }
}

#[test]
fn script_is_called_by_digest_once_loaded() {
    let server = Server::start();
    let ask = |script| {
        let pipeline = by(script, &pipeline(None, vec![]));
        server.answers(&pipeline, &Login::default()).remove(0).map(drop)
    };
    assert_eq!(ask(Script::Digest), Err(Failure::NoScript));
    assert_eq!(server.keys("*"), [""; 0], "something was done all the same");
    assert_eq!(ask(Script::Text), Ok(()));
    assert_eq!(ask(Script::Digest), Ok(()));
    // As after a restart.
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(ask(Script::Digest), Err(Failure::NoScript));
}

#[test]
fn database_is_selected() {
    let server = Server::start();
    assert_eq!(ask(&server, &Login { db: 9, ..Login::default() }), Ok(()));
    assert_eq!(server.command(&["DBSIZE"]), "0");
    assert_eq!(ask(&server, &Login::default()), Ok(()));
    assert_eq!(server.command(&["DBSIZE"]), "5", "they have nothing in common");
    let failure = ask(&server, &Login { db: 99, ..Login::default() }).unwrap_err();
    assert_eq!(failure, Failure::NoDatabase);
}

#[test]
fn full_memory_has_a_name() {
    let server = Server::with(&["--maxmemory-policy", "noeviction"]);
    assert_eq!(ask(&server, &Login::default()), Ok(()));
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(ask(&server, &Login::default()), Err(Failure::OutOfMemory));
    server.command(&["FLUSHALL"]);
    assert_eq!(ask(&server, &Login::default()), Err(Failure::OutOfMemory));
    assert_eq!(server.command(&["DBSIZE"]), "0", "something was charged all the same");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(ask(&server, &Login::default()), Ok(()));
}

#[test]
fn replica_has_a_name() {
    let server = Server::start();
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(ask(&server, &Login::default()), Err(Failure::ReadOnly));
}

#[test]
fn busy_redis_has_a_name() {
    let server = Server::with(&["--busy-reply-threshold", "1"]);
    let mut endless = server.connect();
    endless.write_all(&spell(&["EVAL", "while true do end", "0"])).unwrap();
    // Redis may not have detected it at the first call.
    let busy = (0..50).any(|_| ask(&server, &Login::default()) == Err(Failure::Busy));
    assert!(busy);
    server.command(&["SCRIPT", "KILL"]);
    _ = endless.read(&mut [0; 64]).unwrap();
    assert_eq!(ask(&server, &Login::default()), Ok(()));
}

#[test]
fn namespace_is_in_one_cluster_slot() {
    let server = Server::with(&["--cluster-enabled", "yes", "--port", "0", "--cluster-port", "1"]);
    assert_eq!(ask(&server, &Login::default()), Err(Failure::ClusterDown));
    assert_eq!(server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "OK");
    // A node reports the new state at its next heartbeat.
    while !server.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
        server.advance(SECOND / 10);
    }
    assert_eq!(ask(&server, &Login::default()), Ok(()));
}
