//! A minimal Redis client for tests.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};

use super::client::PATIENCE;
use super::response::line;

/// A reply of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(String),
    Nil,
    Array(Vec<Reply>),
}

/// The bytes of some commands.
pub fn pipeline(commands: &[&[&str]]) -> Vec<u8> {
    let mut bytes = String::new();
    for command in commands {
        bytes += &format!("*{}\r\n", command.len());
        for word in *command {
            bytes += &format!("${}\r\n{word}\r\n", word.len());
        }
    }
    bytes.into_bytes()
}

/// Sends commands to a port on loopback, and reads their replies.
pub fn call(port: u16, commands: &[&[&str]]) -> io::Result<Vec<Reply>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&pipeline(commands))?;
    let mut from = BufReader::new(stream);
    commands.iter().map(|_| read(&mut from)).collect()
}

/// Reads a reply.
pub fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let line = line(from)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
    let number = || rest.parse::<i64>().map_err(io::Error::other);
    Ok(match kind {
        "+" => Reply::Simple(rest.into()),
        "-" => Reply::Error(rest.into()),
        ":" => Reply::Integer(number()?),
        "$" | "*" if number()? < 0 => Reply::Nil,
        "$" => {
            let mut bytes = vec![0; number()? as usize + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            Reply::Bulk(String::from_utf8(bytes).map_err(io::Error::other)?)
        }
        "*" => Reply::Array((0..number()?).map(|_| read(from)).collect::<io::Result<_>>()?),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    })
}
