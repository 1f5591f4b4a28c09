//! The reading of replies to a batch, valid or not.

mod calls;

use diana_algorithm::fixed_window;
use diana_policy::decision::Retry;
use diana_policy::key::{Key, Seed};
use diana_policy::time::Unit;
use diana_policy::{Ban, Quota};
use diana_redis::protocol::resp::{Value, values};
use diana_redis::protocol::{
    Ask, AskReply, BanReply, Charge, Decided, Failure, Login, Numbers, Pipeline, Question,
    Refusals, Reply, RuleReply, Script, ScriptAnswer, ScriptCall,
};
use diana_redis::shard::{Shard, Shards, Tags};
use kit::rules::charge;

/// One call with two questions, about one rule and about none.
fn pipeline() -> Pipeline {
    let quota = Quota::new(Unit::Second, 5);
    let numbers = Numbers::of_rule(&fixed_window::ENTRY, &quota).unwrap();
    let charge = Charge { keys: 100, ..charge(1, Key::ALL, numbers) };
    let asks =
        vec![Ask { questions: vec![Question::Rule(charge)], ..Ask::default() }, Ask::default()];
    of(vec![asks])
}

/// A batch with one call for each list of questions.
fn of(calls: Vec<Vec<Ask>>) -> Pipeline {
    let call =
        |asks| ScriptCall { shard: Shard::FIRST, script: Script::Digest, asks, settles: None };
    Pipeline {
        tags: Tags::new("shop", Shards::ONE),
        seed: Seed { k0: 1, k1: 2 },
        gateway: 7,
        wall: 0,
        now: None,
        number: None,
        calls: calls.into_iter().map(call).collect(),
        rules: None,
        ordinal: None,
    }
}

/// The only reply.
fn first(body: &[u8]) -> Result<ScriptAnswer, Failure> {
    let mut answers = pipeline().answers(&login(), body);
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn login() -> Login {
    Login { username: None, password: Some("pass word".into()), db: 3 }
}

fn answer(body: &str) -> Result<Decided, Failure> {
    match first(body.as_bytes())? {
        ScriptAnswer::Decided(decided) => Ok(decided),
        ScriptAnswer::Seed(seed) => panic!("a seed, {:x} {:x}", seed.k0, seed.k1),
    }
}

/// The commands of a pipeline, each as its words.
fn commands(login: &Login, script: Script) -> Vec<Vec<Vec<u8>>> {
    let mut pipeline = pipeline();
    pipeline.calls[0].script = script;
    let bytes = pipeline.encode(login);
    let word = |reply: &Value| match reply {
        Value::Bulk(word) => word.to_vec(),
        other => panic!("a word, not {other:?}"),
    };
    let words = |reply: Value| match reply {
        Value::Array(words) => words.iter().map(word).collect(),
        other => panic!("a command, not {other:?}"),
    };
    values(&bytes).unwrap().into_iter().map(words).collect()
}

#[test]
fn pipeline_logs_in_calls_and_quits() {
    let seen = commands(&login(), Script::Digest);
    let [auth, select, ask, quit] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(auth[..], [b"AUTH".to_vec(), b"pass word".to_vec()]);
    assert_eq!(select[..], [b"SELECT".to_vec(), b"3".to_vec()]);
    assert_eq!(quit[..], [b"QUIT".to_vec()]);
    let key = |name: &str| format!("diana:{{2:shop}}:{name}").into_bytes();
    let caller = key(&format!("{:016x}:{:032x}", 1, 0));
    assert_eq!(ask[2..7], [b"4".to_vec(), key("seed"), key("clock"), key("gateways"), caller]);
    let [now, gateway, seed, numbers] = &ask[7..] else { panic!("{ask:?}") };
    assert_eq!((&now[..], &gateway[..]), (&b""[..], &b"0000000000000007"[..]));
    assert_eq!(seed, b"00000000000000010000000000000002");
    // MessagePack, an array of 24. Seconds may be counted from any of them, such as the first.
    let second = [0xce, 0, 15, 0x42, 0x40];
    let rule =
        [&[1, 0, 0xa1, b'W', 5], &second[..], &[0x91, 0, 0, 0, 1, 1, 0, 0, 0, 100, 0, 0, 0, 0, 0]]
            .concat();
    assert_eq!(*numbers, [&[0xdd, 0, 0, 0, 24], &rule[..], &[0; 5]].concat());
    assert_eq!(commands(&Login::default(), Script::Digest).len(), 2);
}

#[test]
fn script_is_sent_by_digest_or_text() {
    let short = commands(&Login::default(), Script::Digest).remove(0);
    assert_eq!(short[0], b"EVALSHA");
    assert_eq!(short[1].len(), 40);
    let long = commands(&Login::default(), Script::Text).remove(0);
    assert_eq!(long[0], b"EVAL");
    assert_eq!(long[2..], short[2..]);
    let script = str::from_utf8(&long[1]).unwrap();
    let plain = |line: &str| !line.is_empty() && !line.starts_with([' ', '-']);
    assert!(script.lines().all(plain), "there is something left for readers only");
    assert_eq!(script.matches("'TIME'").count(), 1);
}

#[test]
fn reply_of_the_script_is_read() {
    let decided = |wait, retry| {
        let opinion = RuleReply {
            retry,
            is_outstanding: true,
            remaining: 5,
            receipt: 4,
            term: 12,
            block: 3,
            lease: 2,
            charged: 8,
            spend: 1,
            overflow: true,
        };
        let asks = vec![
            AskReply { wait, replies: vec![Reply::Rule(opinion)] },
            AskReply { wait: Some(0), replies: vec![] },
        ];
        Decided {
            gateways: 9,
            is_apart: false,
            is_mixed: None,
            latest_ordinal: None,
            now: 7,
            corrupt: 1,
            asks,
        }
    };
    let body = |wait, retry| {
        let numbers = format!(":9 :1 :7 :{wait} :{retry} :1 :5 :4 :12 :3 :2 :8 :1 :1 :0 ");
        let numbers = numbers.replace(' ', "\r\n");
        answer(&format!("+OK\r\n+OK\r\n*15\r\n{numbers}+OK\r\n"))
    };
    assert_eq!(body(8, 0), Ok(decided(Some(8), None)));
    assert_eq!(body(-1, -1), Ok(decided(None, Some(Retry::Never))));
    assert_eq!(body(-1, 6), Ok(decided(None, Some(Retry::After(6)))));
    assert_eq!(body(-2, 6), Err(Failure::Garbage));
    assert_eq!(body(-1, -2), Ok(decided(None, Some(Retry::Soon))));
    assert_eq!(body(0, -3), Err(Failure::Garbage));
}

#[test]
fn seed_is_read() {
    let seed = |text: &str| {
        let body = format!("+OK\r\n+OK\r\n*1\r\n${}\r\n{text}\r\n+OK\r\n", text.len());
        first(body.as_bytes())
    };
    let Ok(ScriptAnswer::Seed(found)) = seed("000000000000000a000000000000000b") else { panic!() };
    assert_eq!((found.k0, found.k1), (10, 11));
    for text in ["", "000000000000000a", "000000000000000g000000000000000b"] {
        assert!(matches!(seed(text), Err(Failure::Garbage)), "{text}");
    }
}

#[test]
fn other_replies_are_garbage() {
    let numbers = |count: usize| format!("*{count}\r\n{}", ":1\r\n".repeat(count));
    for body in [
        "".into(),
        "+OK\r\n".into(),
        format!("+OK\r\n{}+OK\r\n", numbers(15)),
        format!("+OK\r\n+OK\r\n{}+OK\r\n", numbers(0)),
        format!("+OK\r\n+OK\r\n{}+OK\r\n", numbers(14)),
        format!("+OK\r\n+OK\r\n{}+OK\r\n", numbers(16)),
        format!("+OK\r\n+OK\r\n{}", numbers(15)),
        format!("+OK\r\n+QUEUED\r\n{}+OK\r\n", numbers(15)),
        format!("+OK\r\n+OK\r\n{}+NO\r\n", numbers(15)),
        format!("+OK\r\n+OK\r\n{}+OK\r\n", numbers(15).replacen(":1", "$-1", 1)),
        "HTTP/1.1 400 Bad Request\r\n\r\n".into(),
        "no healthy upstream".into(),
    ] {
        assert_eq!(answer(&body), Err(Failure::Garbage), "{body}");
    }
    assert!(answer(&format!("+OK\r\n+OK\r\n{}+OK\r\n", numbers(15))).is_ok());
}

/// The reply about one rule that admits, with these remaining permits.
fn admits(remaining: u64) -> String {
    format!(":2 :0 :7 :0 :0 :0 :{remaining} :0 :0 :0 :0 :0 :0 :0 ").replace(' ', "\r\n")
}

#[test]
fn ban_has_its_own_question_and_reply() {
    let ban = Ban { after: 3, within: 8, period: 5, max: 6, halve_after: 7, is_shadow: false };
    let refusals = Refusals {
        fingerprint: 2,
        caller: Key::ALL,
        numbers: Numbers::of_ban(&ban),
        refusals: 4,
        keys: 100,
        sets: None,
        shadow: false,
    };
    let mut pipeline = pipeline();
    pipeline.calls[0].asks[0].questions.push(Question::Ban(refusals));
    let bytes = pipeline.encode(&Login::default());
    let sent = values(&bytes).unwrap();
    let [Value::Array(words), _] = &sent[..] else { panic!("{sent:?}") };
    let caller = format!("diana:{{2:shop}}:{:016x}:{:032x}", 2, 0);
    assert_eq!(words[7], Value::Bulk(caller.as_bytes()));
    let Some(Value::Bulk(numbers)) = words.last() else { panic!("{words:?}") };
    let asked = [0xa1, b'B', 3, 2, 5, 6, 7, 4, 1, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(numbers.ends_with(&asked), "{numbers:?}");
    for begins in [true, false] {
        let body =
            format!("*25\r\n{}:0 :0 :60 :{} :0 :0 :3 :0 :0 :0 :0 ", admits(5), u8::from(begins));
        let body = body.replace(' ', "\r\n") + "+OK\r\n";
        let answers = pipeline.answers(&Login::default(), body.as_bytes());
        let [Ok(ScriptAnswer::Decided(decided))] = &answers[..] else { panic!("no answer") };
        let reply = BanReply { retry: None, left: 60, begins, overflow: false };
        assert_eq!(decided.asks[0].replies[1], Reply::Ban(reply));
    }
}

#[test]
fn failures_have_names() {
    for (message, name) in [
        ("NOAUTH Authentication required.", "noauth"),
        ("WRONGPASS invalid username-password pair or user is disabled.", "wrongpass"),
        ("NOPERM this user has no permissions to run the 'eval' command", "noperm"),
        ("MOVED 3999 127.0.0.1:6381", "moved"),
        ("CROSSSLOT Keys in request don't hash to the same slot", "crossslot"),
        ("CLUSTERDOWN Hash slot not served", "clusterdown"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", "tryagain"),
        ("no upstream host", "nohost"),
        ("upstream failure", "upstream"),
        ("upstream protocol error", "upstream"),
        ("READONLY You can't write against a read only replica.", "readonly"),
        ("NOREPLICAS Not enough good replicas to write.", "noreplicas"),
        ("OOM command not allowed when used memory > 'maxmemory'.", "oom"),
        ("NOSCRIPT No matching script. Please use EVAL.", "noscript"),
        ("ERR Protocol error: unauthenticated multibulk length", "noauth"),
        ("ERR The user executing the script can't run this command or subcommand", "noperm"),
        ("LOADING Redis is loading the dataset in memory", "loading"),
        ("BUSY Redis is busy running a script.", "busy"),
        ("ERR Error running script (call to f_1): @user_script:7: -OOM command not allowed", "oom"),
        ("MASTERDOWN Link with MASTER is down", "other"),
        ("BUSYGROUP Consumer Group name already exists", "other"),
        ("", "other"),
    ] {
        let failure = answer(&format!("+OK\r\n+OK\r\n-{message}\r\n")).unwrap_err();
        assert_eq!(failure.name(), name, "{message}");
        assert!(!failure.to_string().is_empty() || message.is_empty());
    }
    assert_eq!(Failure::Garbage.name(), "garbage");
    let long =
        answer(&format!("+OK\r\n+OK\r\n-ERR \n{}\r\n", "é".repeat(9_999))).unwrap_err().to_string();
    assert_eq!(long.chars().count(), 200);
    assert!(long.starts_with("ERR  é"));
    // Of an authentication error only the kind is kept.
    let login = |message| answer(&format!("-{message}\r\n")).unwrap_err();
    assert_eq!(
        login("ERR unknown command 'AUTH', with args beginning with: 'pass word'"),
        Failure::Login
    );
    assert_eq!(login("WRONGPASS invalid"), Failure::WrongPass);
}

#[test]
fn only_algorithms_of_the_script_have_parameters() {
    for entry in diana_algorithm::REGISTRY {
        let quota = Quota::new(Unit::Second, 5);
        let known = Numbers::of_rule(entry, &quota).is_some();
        assert_eq!(known, entry.codec.is_some(), "{}", entry.short);
        for key in entry.keys {
            let mut quota = quota;
            *(key.field)(&mut quota) = Some(key.min);
            let still = Numbers::of_rule(entry, &quota).is_some();
            assert_eq!(still, known && key.global, "{} with {}", entry.short, key.name);
        }
    }
}
