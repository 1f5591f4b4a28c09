//! Slow clients, on a clock that advances when all tasks wait.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use hyper::body::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;

const GET: &[u8] = b"GET /live HTTP/1.1\r\nhost: a\r\n\r\n";

/// A served connection: the client's side of it, and its time of opening.
fn open() -> (DuplexStream, Instant) {
    let (client, server) = tokio::io::duplex(1024);
    let modules = HashMap::from([("/module".to_owned(), Bytes::from(vec![7; 1 << 20]))]);
    let rules = watch::channel(super::super::rules::Served::default()).1;
    let behind = watch::Sender::default();
    let site = Site {
        modules,
        rules,
        behind,
        polls: Default::default(),
        #[cfg(feature = "policies")]
        pollers: None,
    };
    let graceful = GracefulShutdown::new();
    let opened = Instant::now();
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let leaves = watch::channel(false).1;
    let connection =
        Connection { site: Arc::new(site), slots, leaves, opened, watcher: graceful.watcher() };
    tokio::spawn(async move {
        connection.answer(server, Ipv4Addr::LOCALHOST.into()).await;
        drop(graceful);
    });
    (client, opened)
}

async fn response(client: &mut DuplexStream) -> String {
    let mut head = vec![0; 1024];
    client.write_all(GET).await.unwrap();
    let size = client.read(&mut head).await.unwrap();
    String::from_utf8(head[..size].into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_closed() {
    let (mut client, opened) = open();
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(opened.elapsed().as_secs(), HEAD_TIMEOUT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn head_that_trickles_is_closed() {
    let (mut client, opened) = open();
    let mut sent = 0;
    while client.write_all(GET.get(sent..=sent).unwrap()).await.is_ok() {
        sleep(Duration::from_secs(4)).await;
        sent += 1;
    }
    assert!(sent < GET.len() && opened.elapsed() < HEAD_TIMEOUT + Duration::from_secs(8), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn client_that_hardly_reads_is_closed() {
    let (mut client, opened) = open();
    client.write_all(b"GET /module HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut received = 0;
    while opened.elapsed() <= MAX_AGE {
        received += client.read(&mut [0]).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    // The connection is closed, and the client reads the bytes in its buffer.
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert!(received + rest.len() < 2048, "{received} and {} bytes", rest.len());
}

#[tokio::test(start_paused = true)]
async fn idle_time_begins_with_each_request() {
    let (mut client, opened) = open();
    let mut closes = Vec::new();
    for _ in 0..4 {
        let response = response(&mut client).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        closes.push(response.contains("connection: close"));
        sleep(Duration::from_secs(21)).await;
    }
    // At 0, 21, 42 and 63 s.
    assert_eq!(closes, [false, false, false, true], "{:?}", opened.elapsed());
    assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
}
