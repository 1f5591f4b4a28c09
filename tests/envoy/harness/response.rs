//! An HTTP/1.1 response as received.

use std::io::{self, BufRead, ErrorKind, Read};

/// Status, headers in order with lower-case names, and the body.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    /// Reads one response. Fails if the peer closes before its end.
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let status_line = line(from)?;
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, status_line))?;
        let mut headers = Vec::new();
        loop {
            let field = line(from)?;
            let Some((name, value)) = field.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Self { status, headers, body: String::new() };
        let mut body = Vec::new();
        if response.header("transfer-encoding") == Some("chunked") {
            read_chunks(from, &mut body)?;
        } else if let Some(length) = response.header("content-length") {
            body.resize(length.parse().map_err(io::Error::other)?, 0);
            from.read_exact(&mut body)?;
        }
        response.body = String::from_utf8_lossy(&body).into_owned();
        Ok(response)
    }

    /// The value of a header, if there is exactly one.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let first = values.next()?;
        values.next().is_none().then_some(first.1.as_str())
    }

    /// Returns true if the filter, and not Envoy itself, refused the request.
    pub fn refused(&self) -> bool {
        self.header("x-envoy-ratelimited") == Some("true")
    }
}

/// A line without its line end.
pub fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a chunked body to its end.
pub fn read_chunks(from: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = line(from)?;
        let size = u64::from_str_radix(&size, 16).map_err(io::Error::other)?;
        from.by_ref().take(size).read_to_end(body)?;
        line(from)?;
        if size == 0 {
            return Ok(());
        }
    }
}
