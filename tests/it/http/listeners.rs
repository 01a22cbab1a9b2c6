//! Listeners of `/v1/stream` over real sockets: slow ones, and a thousand at once.

use std::net::SocketAddr;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::sockets::Server;
use super::world::World;
use crate::wait::DEADLINE;

/// One connection to the stream.
pub struct Listener {
    stream: TcpStream,
    /// As it came, in chunks of HTTP.
    raw: Vec<u8>,
    /// The text of the events.
    text: Vec<u8>,
}

/// One event.
#[derive(Debug)]
pub struct Event {
    pub id: String,
    pub event: String,
    pub data: String,
}

impl Listener {
    /// Listens from now on, or from the event after `last`; returns once it is heard.
    pub async fn connect(address: SocketAddr, last: Option<&str>) -> Listener {
        let stream = TcpStream::connect(address).await.expect("it listens");
        Listener::on(stream, last).await
    }

    /// The same on a connection that is there.
    pub async fn on(mut stream: TcpStream, last: Option<&str>) -> Listener {
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let request = format!("GET /v1/stream HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut listener = Listener { stream, raw: Vec::new(), text: Vec::new() };
        let head = loop {
            if let Some(end) = listener.raw.windows(4).position(|four| four == b"\r\n\r\n") {
                break listener.raw.drain(..end + 4).collect::<Vec<u8>>();
            }
            assert!(listener.read().await, "no answer");
        };
        let head = String::from_utf8(head).expect("ASCII");
        assert!(
            head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream") && !head.contains("gzip"),
            "{head}"
        );
        // The first words say that it is listened to.
        loop {
            listener.unchunk();
            if !listener.text.is_empty() {
                return listener;
            }
            assert!(listener.read().await, "no word");
        }
    }

    /// Reads more; false at the end.
    async fn read(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        let read = tokio::time::timeout(DEADLINE, self.stream.read(&mut buffer)).await.expect("something comes");
        let read = read.unwrap_or(0);
        self.raw.extend_from_slice(&buffer[..read]);
        read > 0
    }

    fn unchunk(&mut self) {
        while let Some(end) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let length = std::str::from_utf8(&self.raw[..end]).expect("ASCII");
            let length = usize::from_str_radix(length, 16).expect("a length");
            if self.raw.len() < end + 2 + length + 2 {
                return;
            }
            self.text.extend_from_slice(&self.raw[end + 2..end + 2 + length]);
            self.raw.drain(..end + 2 + length + 2);
        }
    }

    /// The next event; none at the end of the stream. The comments that keep the connection open are no news.
    pub async fn next(&mut self) -> Option<Event> {
        tokio::time::timeout(DEADLINE, self.wait()).await.expect("an event")
    }

    async fn wait(&mut self) -> Option<Event> {
        loop {
            self.unchunk();
            while let Some(end) = self.text.windows(2).position(|two| two == b"\n\n") {
                let block = String::from_utf8(self.text.drain(..end + 2).collect()).expect("text");
                if block.starts_with(':') {
                    continue;
                }
                let field = |name: &str| {
                    let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.unwrap_or_else(|| panic!("no {name}: {block}")).to_owned()
                };
                assert_eq!(block.trim_end().lines().count(), 3, "{block}");
                return Some(Event { id: field("id"), event: field("event"), data: field("data") });
            }
            if !self.read().await {
                return None;
            }
        }
    }
}

/// The `n`th commit, of `partitions` ranges.
fn commit(n: u64, partitions: u64) -> String {
    let range = |partition| json!({"topic": "orders", "partition": partition, "from_offset": n, "until_offset": n + 1});
    let ranges: Vec<_> = (0..partitions).map(range).collect();
    json!({"epoch": 1, "batch_time": 1_796_000_000_000 + n, "ranges": ranges}).to_string()
}

fn started() -> Server {
    let server = Server::open(World::alone());
    let start = br#"{"topics": ["orders"], "owner": "o"}"#;
    assert_eq!(server.ask("POST", "/v1/groups/g/start", "", start).status, 200);
    server
}

#[test]
fn a_slow_listener_is_dropped_and_holds_nobody_up() {
    // Events of 3 kB, and more of them than the sockets and all queues hold.
    const BATCHES: u64 = 2_500;
    const PARTITIONS: u64 = 30;
    let server = started();
    server.runtime().block_on(async {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(8 << 10).expect("a small buffer");
        let mut slow = Listener::on(socket.connect(server.address).await.expect("it listens"), Some("1")).await;
        // It reads nothing, and all of these are taken.
        for n in 0..BATCHES {
            server.world.want(201, "POST", "/v1/groups/g/batches", &commit(n, PARTITIONS)).await;
        }
        let mut last = 1;
        while let Some(event) = slow.next().await {
            assert_eq!(event.id, (last + 1).to_string());
            last += 1;
        }
        assert!(last < BATCHES + 1, "it was not dropped");
        let mut again = Listener::connect(server.address, Some(&last.to_string())).await;
        while last < BATCHES + 1 {
            assert_eq!(again.next().await.expect("an event").id, (last + 1).to_string());
            last += 1;
        }
    });
}

#[test]
fn a_thousand_listeners_all_get_everything() {
    const LISTENERS: usize = 1_000;
    const BATCHES: u64 = 40;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < 4_096) {
        let wanted = Rlimit { current: Some(maximum.map_or(4_096, |most| most.min(4_096))), maximum };
        setrlimit(Resource::Nofile, wanted).expect("a higher limit of open files");
    }
    let server = started();
    server.runtime().block_on(async {
        let mut listeners = Vec::new();
        for _ in 0..LISTENERS {
            listeners.push(Listener::connect(server.address, None).await);
        }
        let mut tasks = tokio::task::JoinSet::new();
        for mut listener in listeners {
            tasks.spawn(async move {
                for n in 0..BATCHES {
                    let event = listener.next().await.expect("an event");
                    assert_eq!((event.id, event.event.as_str()), ((n + 2).to_string(), "batch"));
                }
            });
        }
        for n in 0..BATCHES {
            server.world.want(201, "POST", "/v1/groups/g/batches", &commit(n, 1)).await;
        }
        let all = tokio::time::timeout(DEADLINE, tasks.join_all()).await.expect("all of them got it");
        assert_eq!(all.len(), LISTENERS);
    });
}
