//! Redis's protocol: what is written, and what is believed of what comes back.

use diana_core::redis::protocol::resp::{Reply, command, replies, word};
use fastrand::Rng;

#[test]
fn a_command_is_an_array_of_words() {
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
        Reply::Simple(b"OK"),
        Reply::Error(b"ERR no"),
        Reply::Integer(-7),
        Reply::Bulk(b"a\r\n"),
        Reply::Nil,
        Reply::Nil,
        Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])]),
        Reply::Bulk(b""),
    ];
    assert_eq!(replies(bytes), Some(expected));
    assert_eq!(replies(b""), Some(vec![]));
}

#[test]
fn no_length_is_believed() {
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
        assert_eq!(replies(bytes.as_bytes()), None, "{bytes}");
    }
    let deep = |depth: usize| "*1\r\n".repeat(depth) + ":1\r\n";
    assert!(replies(deep(4).as_bytes()).is_some());
    assert!(replies(deep(5).as_bytes()).is_none());
    assert!(replies(deep(1_000_000).as_bytes()).is_none());
    assert!(replies(":1\r\n".repeat(1 << 16).as_bytes()).is_some());
    assert!(replies(":1\r\n".repeat((1 << 16) + 1).as_bytes()).is_none());
}

#[test]
fn any_bytes_are_replies_or_nothing() {
    let mut rng = Rng::with_seed(kit::seed::fresh());
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        let count = rng.usize(0..4);
        (0..count).for_each(|_| random(&mut rng, 4, &mut bytes));
        let read = replies(&bytes).expect("what is well formed is read");
        assert_eq!(read.len(), count);
        let mut back = Vec::new();
        read.iter().for_each(|reply| write(reply, &mut back));
        assert_eq!(back, bytes);
        if bytes.is_empty() {
            continue;
        }
        let cut = rng.usize(0..bytes.len());
        let shorter = replies(&bytes[..cut]).is_none_or(|read| read.len() < count);
        assert!(shorter, "truncated at {cut} it is still whole");
        for _ in 0..rng.usize(1..5) {
            let place = rng.usize(0..bytes.len());
            bytes[place] = if rng.bool() { rng.u8(..) } else { b"*$:+-\r\n0129"[rng.usize(0..11)] };
        }
        _ = replies(&bytes);
    }
}

/// Adds a random reply.
fn random(rng: &mut Rng, depth: usize, out: &mut Vec<u8>) {
    let mut text: Vec<u8> = (0..rng.usize(0..6)).map(|_| rng.u8(..)).collect();
    let kind = rng.u8(0..if depth > 0 { 6 } else { 5 });
    if kind < 2 {
        text.retain(|byte| *byte != b'\r');
    }
    let reply = match kind {
        0 => Reply::Simple(&text),
        1 => Reply::Error(&text),
        2 => Reply::Integer(rng.i64(..) >> rng.u8(0..64)),
        3 => Reply::Bulk(&text),
        4 => Reply::Nil,
        _ => {
            let count = rng.usize(0..4);
            out.extend(format!("*{count}\r\n").bytes());
            return (0..count).for_each(|_| random(rng, depth - 1, out));
        }
    };
    write(&reply, out);
}

fn write(reply: &Reply, out: &mut Vec<u8>) {
    let mut line = |kind: &[u8], line: &[u8]| out.extend([kind, line, b"\r\n"].concat());
    match reply {
        Reply::Simple(text) => line(b"+", text),
        Reply::Error(text) => line(b"-", text),
        Reply::Integer(number) => line(b":", number.to_string().as_bytes()),
        Reply::Bulk(text) => {
            line(b"$", text.len().to_string().as_bytes());
            line(b"", text);
        }
        Reply::Nil => line(b"$", b"-1"),
        Reply::Array(replies) => {
            line(b"*", replies.len().to_string().as_bytes());
            replies.iter().for_each(|reply| write(reply, out));
        }
    }
}
