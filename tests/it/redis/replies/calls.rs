//! Several calls in one batch: their order, and the assignment of replies.

use diana_redis::protocol::resp::{Value, values};
use diana_redis::protocol::{Failure, Login, Pipeline, Reply, Script, ScriptAnswer};

use super::{admits, login, of, pipeline};

/// Two calls with one rule each, without authentication.
fn two() -> Pipeline {
    let asks = pipeline().calls.remove(0).asks;
    of(vec![vec![asks[0].clone()], vec![asks[0].clone()]])
}

/// The remaining permits of each call, or its failure.
fn each(body: &str) -> Vec<Result<u64, &'static str>> {
    let remaining = |answer: Result<ScriptAnswer, Failure>| match answer {
        Ok(ScriptAnswer::Decided(decided)) => {
            let Reply::Rule(reply) = decided.asks[0].replies[0] else { panic!("about a rule") };
            Ok(reply.remaining)
        }
        Ok(ScriptAnswer::Seed(_)) => Err("seed"),
        Err(failure) => Err(failure.name()),
    };
    two().answers(&Login::default(), body.as_bytes()).into_iter().map(remaining).collect()
}

#[test]
fn replies_are_assigned_by_position() {
    let [five, nine] = [5, 9].map(|left| format!("*14\r\n{}", admits(left)));
    let seed = "*1\r\n$32\r\n000000000000000a000000000000000b\r\n";
    for (body, answers) in [
        (format!("{five}{nine}+OK\r\n"), [Ok(5), Ok(9)]),
        // An error of one call does not affect the other.
        (format!("-MOVED 1 a:1\r\n{nine}+OK\r\n"), [Err("moved"), Ok(9)]),
        (format!("{five}-NOSCRIPT No.\r\n+OK\r\n"), [Ok(5), Err("noscript")]),
        (format!("{seed}-BUSY\r\n+OK\r\n"), [Err("seed"), Err("busy")]),
        (format!(":1\r\n{nine}+OK\r\n"), [Err("garbage"), Ok(9)]),
        (format!("*2\r\n:1\r\n:1\r\n{nine}+OK\r\n"), [Err("garbage"), Ok(9)]),
        ("-OOM\r\n-READONLY\r\n+OK\r\n".into(), [Err("oom"), Err("readonly")]),
        // Truncated and too long replies are rejected, except for the cause of a failure.
        (format!("{five}{nine}"), [Err("garbage"); 2]),
        (format!("{five}-LOADING\r\n"), [Err("garbage"), Err("loading")]),
        (five.clone(), [Err("garbage"); 2]),
        (format!("{five}+OK\r\n"), [Err("garbage"); 2]),
        (format!("{five}{nine}{nine}+OK\r\n"), [Err("garbage"); 2]),
        (format!("{five}{nine}-ERR\r\n"), [Err("garbage"); 2]),
        ("-NOAUTH\r\n".into(), [Err("noauth"), Err("garbage")]),
        (String::new(), [Err("garbage"); 2]),
    ] {
        assert_eq!(each(&body), answers, "{body}");
    }
    // Without authentication there are no decisions.
    let body = format!("-WRONGPASS\r\n+OK\r\n{five}{nine}+OK\r\n");
    let answers = two().answers(&login(), body.as_bytes());
    assert!(answers.iter().all(|answer| matches!(answer, Err(Failure::WrongPass))));
}

#[test]
fn calls_are_sent_together() {
    let mut pipeline = two();
    pipeline.calls[1].script = Script::Text;
    let bytes = pipeline.encode(&login());
    let sent = values(&bytes).unwrap();
    let names = sent.iter().map(|command| match command {
        Value::Array(words) => match words[0] {
            Value::Bulk(name) => name,
            ref other => panic!("a name, not {other:?}"),
        },
        other => panic!("a command, not {other:?}"),
    });
    let names: Vec<&[u8]> = names.collect();
    let expected: [&[u8]; 5] = [b"AUTH", b"SELECT", b"EVALSHA", b"EVAL", b"QUIT"];
    assert_eq!(names, expected);
}

#[test]
fn pipeline_logs_in_first() {
    let names = |username: Option<&str>, db| {
        let login =
            Login { username: username.map(Into::into), password: Some("secret".into()), db };
        let bytes = two().encode(&login);
        let commands = values(&bytes).unwrap();
        let words = |command: &Value| match command {
            Value::Array(words) => words.iter().map(word).collect::<Vec<String>>(),
            other => panic!("{other:?}"),
        };
        commands.iter().map(words).take(commands.len() - 3).collect::<Vec<_>>()
    };
    assert_eq!(names(None, 0), [vec!["AUTH", "secret"]]);
    assert_eq!(names(Some("ann"), 0), [vec!["AUTH", "ann", "secret"]]);
    assert_eq!(names(Some("ann"), 3), [vec!["AUTH", "ann", "secret"], vec!["SELECT", "3"]]);
}

fn word(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    }
}
