//! A tiny HTTP/1.1 client over plain sockets, which can also send invalid requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::response::Response;

/// Maximum time to wait for a byte.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The bytes of a request.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        text += "host: shop.example.com\r\n";
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    (text + "\r\n").into_bytes()
}

/// Sends bytes on a new connection, and reads the response.
pub fn exchange(port: u16, bytes: &[u8]) -> io::Result<Response> {
    let mut client = Client::connect(port)?;
    // Envoy may respond and close before it has read everything.
    let _ = client.stream.get_mut().write_all(bytes);
    Response::read(&mut client.stream)
}

/// A persistent connection. It is opened again after the server has requested to close it.
pub struct Client {
    port: u16,
    stream: BufReader<TcpStream>,
    closing: bool,
}

impl Client {
    /// Connects to a port on loopback.
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { port, stream: BufReader::new(stream), closing: false })
    }

    /// Sends bytes without waiting for a response.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits for a response.
    pub fn read(&mut self) -> io::Result<Response> {
        Response::read(&mut self.stream)
    }

    /// Waits for the head of a response without a body, and for this many bytes of the protocol after it. Returns the
    /// status.
    pub fn read_upgraded(&mut self, bytes: usize) -> io::Result<u16> {
        let response = self.read()?;
        self.stream.read_exact(&mut vec![0; bytes])?;
        Ok(response.status)
    }

    /// Waits until a response begins. Returns its status if the first bytes are a status line.
    pub fn wait(&mut self) -> io::Result<Option<u16>> {
        let head = self.stream.fill_buf()?;
        let digits = head.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
        Ok(digits.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok()))
    }

    /// Closes the connection with RST.
    #[allow(unsafe_code, reason = "the standard library has no such option yet")]
    pub fn reset(self) {
        const SOL_SOCKET: i32 = 1;
        const SO_LINGER: i32 = 13;
        const AT_ONCE: [i32; 2] = [1, 0];
        unsafe extern "C" {
            fn setsockopt(fd: i32, level: i32, name: i32, value: *const i32, size: u32) -> i32;
        }
        let fd = self.stream.get_ref().as_raw_fd();
        // SAFETY: the descriptor is open, and the value has this length.
        let status = unsafe { setsockopt(fd, SOL_SOCKET, SO_LINGER, AT_ONCE.as_ptr(), 8) };
        assert_eq!(status, 0);
    }

    /// Sends the bytes of one request and waits for its response.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<Response> {
        if self.closing {
            *self = Self::connect(self.port)?;
        }
        self.write(bytes)?;
        let response = self.read()?;
        self.closing = response.header("connection") == Some("close");
        Ok(response)
    }
}
