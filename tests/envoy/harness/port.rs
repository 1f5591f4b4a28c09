//! Ports for servers that are stopped and restarted.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the kernel's range for automatic ports, including those of outgoing connections.
const RANGE: std::ops::Range<u16> = 10_000..32_000;

/// A free port on loopback that the kernel does not assign automatically.
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let length = u32::from(RANGE.end - RANGE.start);
    let start = std::process::id().wrapping_mul(97) % length;
    loop {
        let next = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = RANGE.start + ((start + next) % length) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
