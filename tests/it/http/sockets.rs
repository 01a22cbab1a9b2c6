//! The server on a real port of loopback, and a client that sends any bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tidelog::server::{Guard, Limits, router, serve};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::world::{Answer, World};
use crate::wait::DEADLINE;

/// A world, served on a port of its own; stopped when dropped.
pub struct Server {
    pub world: World,
    pub address: SocketAddr,
    runtime: Option<Runtime>,
    serving: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `world` as the program does where nothing is asked for.
    pub fn open(world: World) -> Server {
        Server::start(world, |address| Guard::new(address, Vec::new(), &[]), Limits::default())
    }

    pub fn start(world: World, guard: impl FnOnce(SocketAddr) -> Guard, limits: Limits) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = router(world.app.clone(), guard(address));
        let stopped = world.app.clone().stopped();
        let serving = Some(runtime.spawn(async move { serve(&listener, router, stopped, limits).await }));
        Server { world, address, runtime: Some(runtime), serving }
    }

    /// The runtime that it is served on.
    pub fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it runs")
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        stream
    }

    /// Sends these bytes on a connection of their own, and reads to its end.
    #[track_caller]
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("the server reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer and an end");
        answer
    }

    /// A request with these header lines, and `host: localhost` where they do not begin with one.
    #[track_caller]
    pub fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
        let host = if headers.to_ascii_lowercase().starts_with("host:") { "" } else { "host: localhost\r\n" };
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let head = format!("{method} {target} HTTP/1.1\r\n{host}{length}connection: close\r\n{headers}\r\n");
        parse(&self.raw(&[head.as_bytes(), body].concat()))
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "", b"")
    }

    /// Asserts that the server goes on, and that the journal holds `seq` entries.
    #[track_caller]
    pub fn is_well(&self, seq: u64) {
        assert_eq!(self.get("/readyz").status, 200);
        assert_eq!(self.world.state().seq.as_u64(), seq, "the journal changed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.world.app.stop();
        let runtime = self.runtime.take().expect("it runs");
        if let Some(serving) = self.serving.take() {
            let ended = runtime.block_on(async { tokio::time::timeout(DEADLINE, serving).await });
            assert!(std::thread::panicking() || ended.is_ok(), "the server did not end");
        }
        runtime.shutdown_background();
    }
}

/// Reads an answer: its status, its headers, and the body, put together where it came in chunks.
#[track_caller]
pub fn parse(bytes: &[u8]) -> Answer {
    let told = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or_else(|| panic!("no answer: {told:?}"));
    let head = std::str::from_utf8(&bytes[..end]).expect("a head of ASCII");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').expect("a header");
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_str(value.trim()).expect("a value"));
    }
    let mut body = bytes[end + 4..].to_vec();
    if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        body = unchunked(&body);
    }
    Answer { status: status.unwrap_or_else(|| panic!("no status: {told:?}")), headers, body: body.into() }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").expect("the length of a chunk");
        let length = std::str::from_utf8(&body[..end]).expect("ASCII");
        let length = usize::from_str_radix(length, 16).expect("a number");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[end + 2..end + 2 + length]);
        body = &body[end + 4 + length..];
    }
}
