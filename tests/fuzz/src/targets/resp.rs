//! Replies of Redis: what is read and written again is read as the same.

use diana_core::redis::protocol::resp::{Reply, command, replies, word};

pub fn run(input: &[u8]) {
    // A reply of three bytes takes some dozens.
    let read = crate::bounded::to(64 * input.len() + 4096, || replies(input));
    if let Some(read) = read {
        let mut again = Vec::new();
        read.iter().for_each(|reply| write(reply, &mut again));
        assert_eq!(replies(&again).as_ref(), Some(&read));
        assert!(again.len() <= input.len(), "numbers are written as shortly as can be");
        // Half of it is something else, or nothing.
        assert_ne!(replies(&input[..input.len() / 2]), Some(read).filter(|_| !input.is_empty()));
    }
    let words: Vec<&[u8]> = input.chunks(7).collect();
    let mut out = Vec::new();
    command(&mut out, words.len());
    words.iter().for_each(|one| word(&mut out, one));
    let whole = Reply::Array(words.into_iter().map(Reply::Bulk).collect());
    assert_eq!(replies(&out), Some(vec![whole]));
}

fn write(reply: &Reply, out: &mut Vec<u8>) {
    let mut line = |kind: u8, rest: &[u8]| {
        out.push(kind);
        out.extend_from_slice(rest);
        out.extend_from_slice(b"\r\n");
    };
    match reply {
        Reply::Simple(word) => line(b'+', word),
        Reply::Error(message) => line(b'-', message),
        Reply::Integer(number) => line(b':', number.to_string().as_bytes()),
        Reply::Nil => line(b'$', b"-1"),
        Reply::Bulk(bytes) => {
            line(b'$', bytes.len().to_string().as_bytes());
            line_of(bytes, out);
        }
        Reply::Array(replies) => {
            line(b'*', replies.len().to_string().as_bytes());
            replies.iter().for_each(|reply| write(reply, out));
        }
    }
}

fn line_of(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
