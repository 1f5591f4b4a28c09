//! Replies of Redis: a reply that is read and written again is read as the same.

use diana_redis::protocol::resp::{Value, command, values, word};

pub fn run(input: &[u8]) {
    // A reply of three bytes takes some dozens.
    let read = crate::bounded::to(64 * input.len() + 4096, || values(input));
    if let Some(read) = read {
        let mut again = Vec::new();
        read.iter().for_each(|reply| write(reply, &mut again));
        assert_eq!(values(&again).as_ref(), Some(&read));
        assert!(again.len() <= input.len(), "numbers are written as shortly as can be");
        // Half of it has another meaning, or none.
        assert_ne!(values(&input[..input.len() / 2]), Some(read).filter(|_| !input.is_empty()));
    }
    let words: Vec<&[u8]> = input.chunks(7).collect();
    let mut out = Vec::new();
    command(&mut out, words.len());
    words.iter().for_each(|one| word(&mut out, one));
    let whole = Value::Array(words.into_iter().map(Value::Bulk).collect());
    assert_eq!(values(&out), Some(vec![whole]));
}

fn write(reply: &Value, out: &mut Vec<u8>) {
    let mut line = |kind: u8, rest: &[u8]| {
        out.push(kind);
        out.extend_from_slice(rest);
        out.extend_from_slice(b"\r\n");
    };
    match reply {
        Value::Simple(word) => line(b'+', word),
        Value::Error(message) => line(b'-', message),
        Value::Integer(number) => line(b':', number.to_string().as_bytes()),
        Value::Nil => line(b'$', b"-1"),
        Value::Bulk(bytes) => {
            line(b'$', bytes.len().to_string().as_bytes());
            line_of(bytes, out);
        }
        Value::Array(replies) => {
            line(b'*', replies.len().to_string().as_bytes());
            replies.iter().for_each(|reply| write(reply, out));
        }
    }
}

fn line_of(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
