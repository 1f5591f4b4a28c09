//! The Redis protocol: encoding of commands, and validation of replies.

use diana_redis::protocol::resp::{Value, command, values, word};
use fastrand::Rng;

#[test]
fn command_is_an_array_of_words() {
    let mut out = b"before".to_vec();
    command(&mut out, 2);
    word(&mut out, b"GET");
    word(&mut out, b"a\r\nb");
    assert_eq!(out, b"before*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n");
}

#[test]
fn replies_are_read() {
    let bytes =
        b"+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n$0\r\n\r\n";
    let expected = vec![
        Value::Simple(b"OK"),
        Value::Error(b"ERR no"),
        Value::Integer(-7),
        Value::Bulk(b"a\r\n"),
        Value::Nil,
        Value::Nil,
        Value::Array(vec![Value::Integer(1), Value::Array(vec![])]),
        Value::Bulk(b""),
    ];
    assert_eq!(values(bytes), Some(expected));
    assert_eq!(values(b""), Some(vec![]));
}

#[test]
fn invalid_lengths_are_refused() {
    for bytes in [
        "$9223372036854775807\r\nabc\r\n",
        "$-2\r\n",
        "$3\r\nabcd\r\n",
        "$3\r\nab\r\n",
        "*9223372036854775807\r\n:1\r\n",
        "*2\r\n:1\r\n",
        "*-3\r\n",
        ":99999999999999999999\r\n",
        ":\r\n",
        ":1",
        "\r\n",
        ",1.5\r\n",
        "upstream connect error or disconnect/reset before headers",
    ] {
        assert_eq!(values(bytes.as_bytes()), None, "{bytes}");
    }
    let deep = |depth: usize| "*1\r\n".repeat(depth) + ":1\r\n";
    assert!(values(deep(4).as_bytes()).is_some());
    assert!(values(deep(5).as_bytes()).is_none());
    assert!(values(deep(1_000_000).as_bytes()).is_none());
    assert!(values(":1\r\n".repeat(1 << 16).as_bytes()).is_some());
    assert!(values(":1\r\n".repeat((1 << 16) + 1).as_bytes()).is_none());
}

#[test]
fn random_replies_round_trip() {
    let mut rng = Rng::with_seed(kit::seed::next());
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        let count = rng.usize(0..4);
        (0..count).for_each(|_| random(&mut rng, 4, &mut bytes));
        let read = values(&bytes).expect("what is well formed is read");
        assert_eq!(read.len(), count);
        let mut back = Vec::new();
        read.iter().for_each(|reply| write(reply, &mut back));
        assert_eq!(back, bytes);
        if bytes.is_empty() {
            continue;
        }
        let cut = rng.usize(0..bytes.len());
        let shorter = values(&bytes[..cut]).is_none_or(|read| read.len() < count);
        assert!(shorter, "truncated at {cut} it is still whole");
        for _ in 0..rng.usize(1..5) {
            let place = rng.usize(0..bytes.len());
            bytes[place] = if rng.bool() { rng.u8(..) } else { b"*$:+-\r\n0129"[rng.usize(0..11)] };
        }
        _ = values(&bytes);
    }
}

/// Appends a random reply.
fn random(rng: &mut Rng, depth: usize, out: &mut Vec<u8>) {
    let mut text: Vec<u8> = (0..rng.usize(0..6)).map(|_| rng.u8(..)).collect();
    let kind = rng.u8(0..if depth > 0 { 6 } else { 5 });
    if kind < 2 {
        text.retain(|byte| *byte != b'\r');
    }
    let reply = match kind {
        0 => Value::Simple(&text),
        1 => Value::Error(&text),
        2 => Value::Integer(rng.i64(..) >> rng.u8(0..64)),
        3 => Value::Bulk(&text),
        4 => Value::Nil,
        _ => {
            let count = rng.usize(0..4);
            out.extend(format!("*{count}\r\n").bytes());
            return (0..count).for_each(|_| random(rng, depth - 1, out));
        }
    };
    write(&reply, out);
}

fn write(reply: &Value, out: &mut Vec<u8>) {
    let mut line = |kind: &[u8], line: &[u8]| out.extend([kind, line, b"\r\n"].concat());
    match reply {
        Value::Simple(text) => line(b"+", text),
        Value::Error(text) => line(b"-", text),
        Value::Integer(number) => line(b":", number.to_string().as_bytes()),
        Value::Bulk(text) => {
            line(b"$", text.len().to_string().as_bytes());
            line(b"", text);
        }
        Value::Nil => line(b"$", b"-1"),
        Value::Array(replies) => {
            line(b"*", replies.len().to_string().as_bytes());
            replies.iter().for_each(|reply| write(reply, out));
        }
    }
}
