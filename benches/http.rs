//! Over HTTP, against the built program on loopback: commits of 1 and of 64 clients beside the journal called directly; a
//! page of 100 batches; commits while 1,000 listen to events, and the server's memory; from a rollback's receipt to the
//! first record read again, by a consumer in Rust and by one over HTTP (on librdkafka's mock cluster).
//!
//!     cargo bench --bench http [-- COMMITS BATCHES]      (default: 2000 commits a client, a journal of 1000000 batches)

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{Message as _, Offset as Native, TopicPartitionList};
use serde_json::{Value, json};
use tidelog::commit::Commit;
use tidelog::entry::{Body, Draft};
use tidelog::journal::{Durability, Journal, Options};
use tidelog::kafka::mock::Mock;
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Timestamp, TopicName, TopicPartition};
use tidelog::server::ServerNote;
use tokio::net::TcpStream;

const PARTITIONS: u32 = 4;
const ROUNDS: usize = 20;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(since.as_millis() as i64)
}

fn journal(dir: &Path, durability: Durability) -> Journal {
    let options = Options { create: true, durability, ..Options::new(Arc::new(now)) };
    Journal::open(dir, options).expect("the journal opens")
}

fn group(number: usize) -> Group {
    Group::new("default", &format!("g{number}")).expect("a legal name")
}

/// Starts the group; its commits carry epoch 1.
fn start(journal: &Journal, group: Group) {
    let body = Body::Started { owner: "bench".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
    let draft = Draft { group: Some(group), epoch: Epoch::ZERO.next(), body };
    journal.decide::<(), ()>(move |_| Ok((vec![draft], ()))).expect("a start");
}

fn ranges(step: u64) -> Vec<OffsetRange> {
    let topic = TopicName::new("orders").expect("a legal name");
    let offset = |step: u64| Offset::try_from(step * 100).expect("small");
    let range = |partition| OffsetRange::new(topic.clone(), partition, offset(step), offset(step + 1));
    (0..PARTITIONS).map(|partition| range(partition).expect("a legal range")).collect()
}

/// The built program, serving; killed when dropped.
struct Served {
    child: Child,
    note: ServerNote,
}

impl Served {
    fn spawn(dir: &Path, words: &[&str]) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidelog"));
        command.args(words).arg("-j").arg(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().expect("the program starts");
        let begun = Instant::now();
        let note = loop {
            match ServerNote::read(dir) {
                Ok(Some(note)) if note.pid == child.id() => break note,
                _ if begun.elapsed() > Duration::from_secs(30) => panic!("the program does not serve"),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Served { child, note }
    }

    fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("Linux");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number") / 1024.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that is kept.
struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    token: String,
}

impl Client {
    async fn connect(note: &ServerNote) -> Client {
        let host = note.url.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.expect("the server listens");
        stream.set_nodelay(true).expect("a TCP stream");
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        Client { sender, host, token: note.token.clone() }
    }

    async fn call(&mut self, method: &str, path: &str, body: String) -> (u16, Bytes) {
        let request = hyper::Request::builder().method(method).uri(path).header("host", &self.host);
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        self.sender.ready().await.expect("the connection is kept");
        let answer = self.sender.send_request(request).await.expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.into_body().collect().await.expect("a body").to_bytes())
    }

    async fn ok(&mut self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(method, path, body.to_string()).await;
        let text = String::from_utf8_lossy(&answer);
        assert!((200..300).contains(&status), "{method} {path}: {status} {text}");
        serde_json::from_slice(&answer).expect("JSON")
    }
}

fn commit_body(step: u64) -> String {
    json!({ "epoch": 1, "batch_time": now(), "ranges": ranges(step) }).to_string()
}

/// What a run of commits took.
struct Took {
    times: Histogram<u64>,
    a_second: f64,
}

impl Took {
    fn show(&self, what: &str) {
        let micros = |quantile| self.times.value_at_quantile(quantile) as f64 / 1e3;
        println!("  {what}: p50 {:.0} us, p99 {:.0} us, {:.0}/s", micros(0.5), micros(0.99), self.a_second);
    }
}

/// Runs `clients` tasks of `count` calls each, and times each call.
async fn run<F, C>(clients: usize, count: u64, task: F) -> Took
where
    F: Fn(usize) -> C,
    C: Future<Output = Histogram<u64>> + Send + 'static,
{
    let begun = Instant::now();
    let tasks: Vec<_> = (0..clients).map(|number| tokio::spawn(task(number))).collect();
    let mut times = histogram();
    for task in tasks {
        times.add(task.await.expect("a task of ours")).expect("the same shape");
    }
    Took { times, a_second: clients as f64 * count as f64 / begun.elapsed().as_secs_f64() }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("3 digits")
}

async fn over_http(note: ServerNote, number: usize, first: u64, count: u64) -> Histogram<u64> {
    let mut client = Client::connect(&note).await;
    let mut times = histogram();
    let path = format!("/v1/groups/g{number}/batches");
    for step in first..first + count {
        let body = commit_body(step);
        let begun = Instant::now();
        let (status, answer) = client.call("POST", &path, body).await;
        times.record(begun.elapsed().as_nanos() as u64).expect("in range");
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&answer));
    }
    times
}

async fn directly(journal: Journal, number: usize, first: u64, count: u64) -> Histogram<u64> {
    let mut times = histogram();
    for step in first..first + count {
        let commit = Commit::new(group(number), Epoch::ZERO.next(), now(), ranges(step)).expect("a legal commit");
        let begun = Instant::now();
        journal.commit_async(commit).await.expect("a commit");
        times.record(begun.elapsed().as_nanos() as u64).expect("in range");
    }
    times
}

async fn commits(root: &Path, count: u64) {
    println!("commits of {PARTITIONS} ranges, {count} a client, on the same disk");
    let direct = journal(&root.join("direct"), Durability::Fsync);
    let served = root.join("served");
    let own = journal(&served, Durability::Fsync);
    for number in 0..64 {
        start(&direct, group(number));
        start(&own, group(number));
    }
    own.close().expect("a clean close");
    let server = Served::spawn(&served, &["serve", "--listen", "127.0.0.1:0"]);
    let mut first = 0;
    for clients in [1, 64] {
        let count = if clients == 1 { count } else { count / 4 };
        let journal = direct.clone();
        let took = run(clients, count, move |n| directly(journal.clone(), n, first, count)).await;
        took.show(&format!("{clients:2} directly"));
        let note = server.note.clone();
        let took = run(clients, count, move |n| over_http(note.clone(), n, first, count)).await;
        took.show(&format!("{clients:2} over HTTP"));
        first += count;
    }
    listeners(&server, first, count).await;
}

async fn listeners(server: &Served, first: u64, count: u64) {
    println!("commits of 1 client while others listen to events");
    let before = server.resident_mb();
    let note = server.note.clone();
    // Spaced, as of a consumer: a thousand listeners get each of them.
    let spaced = |first| spaced(note.clone(), first, count.min(500));
    spaced(first).await.show("no listener ");
    let mut listening = Vec::new();
    for _ in 0..1_000 {
        listening.push(tokio::spawn(listen(server.note.clone(), count.min(500))));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let with = server.resident_mb();
    spaced(first + count).await.show("1,000 listen");
    let begun = Instant::now();
    for listener in listening {
        listener.await.expect("every listener gets every event");
    }
    println!("  the last listener had the last event {:.0?} later", begun.elapsed());
    println!(
        "  server's memory {before:.1} MB, {with:.1} MB with 1,000 listeners, {:.1} MB after",
        server.resident_mb()
    );
}

async fn spaced(note: ServerNote, first: u64, count: u64) -> Took {
    let begun = Instant::now();
    let mut client = Client::connect(&note).await;
    let mut times = histogram();
    for step in first..first + count {
        let body = commit_body(step);
        let begun = Instant::now();
        let (status, _) = client.call("POST", "/v1/groups/g0/batches", body).await;
        times.record(begun.elapsed().as_nanos() as u64).expect("in range");
        assert_eq!(status, 201);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Took { times, a_second: count as f64 / begun.elapsed().as_secs_f64() }
}

/// Returns once `events` events have come.
async fn listen(note: ServerNote, events: u64) {
    let mut client = Client::connect(&note).await;
    let request = hyper::Request::get("/v1/stream").header("host", &client.host);
    let request = request.header("authorization", format!("Bearer {}", client.token));
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let mut body = client.sender.send_request(request).await.expect("an answer").into_body();
    let mut seen = 0;
    while seen < events {
        let frame = body.frame().await.expect("the stream goes on").expect("a frame");
        let text = frame.into_data().unwrap_or_default();
        seen += text.windows(4).filter(|window| window == b"id: ").count() as u64;
    }
}

async fn page(root: &Path, batches: u64) {
    println!("a page of 100 batches of a sealed journal of {batches}, {PARTITIONS} ranges each");
    let dir = root.join("long");
    let journal = journal(&dir, Durability::Process);
    start(&journal, group(0));
    for step in 0..batches {
        let commit = Commit::new(group(0), Epoch::ZERO.next(), now(), ranges(step)).expect("a legal commit");
        journal.commit(commit).expect("a commit");
    }
    journal.close().expect("a clean close");
    let server = Served::spawn(&dir, &["serve", "--listen", "127.0.0.1:0"]);
    let mut client = Client::connect(&server.note).await;
    let mut times = histogram();
    for step in 0..1_000 {
        // Anywhere in history.
        let after = batches - step * (batches / 1_000);
        let path = format!("/v1/groups/g0/batches?limit=100&cursor={}", after.max(101));
        let begun = Instant::now();
        let (status, answer) = client.call("GET", &path, String::new()).await;
        times.record(begun.elapsed().as_nanos() as u64).expect("in range");
        assert_eq!(status, 200);
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer["batches"].as_array().map(Vec::len), Some(100));
    }
    let millis = |quantile| times.value_at_quantile(quantile) as f64 / 1e6;
    println!("  p50 {:.2} ms, p99 {:.2} ms (goal 5)", millis(0.5), millis(0.99));
}

const BACK: &str = "/v1/groups/g/rollback";

/// Plans and executes, as an operator does.
async fn roll_back(client: &mut Client) {
    let plan = client.ok("POST", &format!("{BACK}/plan"), json!({ "to": { "offset": 50 } })).await;
    let mut order = plan["execute"].clone();
    (order["actor"], order["reason"]) = ("bench".into(), "to be timed".into());
    client.ok("POST", BACK, order).await;
}

fn topic() -> TopicPartition {
    TopicPartition::new(TopicName::new("orders").expect("a legal name"), 0)
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    format!(
        "median {:.1?}, worst {:.1?} of {} (goal 200 ms)",
        times[times.len() / 2],
        times[times.len() - 1],
        times.len()
    )
}

/// `tidelog consume`, rolled back by another process.
async fn consumer_in_rust(root: &Path, mock: &Mock) {
    let brokers = mock.brokers();
    let words =
        ["consume", "-b", &brokers, "-g", "g", "-t", "orders", "--max-wait", "20ms", "--isolation", "read_committed"];
    let mut server = Served::spawn(&root.join("rust"), &words);
    let mut out = BufReader::new(server.child.stdout.take().expect("piped"));
    let mut read_to = |offset: &str| {
        let mut line = String::new();
        while !line.contains(offset) {
            line.clear();
            assert!(out.read_line(&mut line).expect("text") > 0, "the consumer ended");
        }
        Instant::now()
    };
    let mut client = Client::connect(&server.note).await;
    read_to(r#""offset":"99""#);
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        // All of it is committed, so the consumer is idle.
        while client.ok("GET", "/v1/groups/g/positions", Value::Null).await["positions"][0]["offset"] != "100" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        roll_back(&mut client).await;
        let receipt = Instant::now();
        let first = read_to(r#""offset":"50""#);
        times.push(first.duration_since(receipt));
        read_to(r#""offset":"99""#);
    }
    println!("  consumer in Rust: {}", quantiles(times));
}

/// A client that long-polls, starts again and reads.
async fn consumer_over_http(root: &Path, mock: &Mock) {
    let brokers = mock.brokers();
    let server = Served::spawn(&root.join("http"), &["serve", "-b", &brokers, "--listen", "127.0.0.1:0"]);
    let mut operator = Client::connect(&server.note).await;
    let mut client = Client::connect(&server.note).await;
    let start = json!({ "topics": ["orders"], "owner": "bench" });
    let mut epoch = client.ok("POST", "/v1/groups/g/start", start.clone()).await["epoch"].clone();
    let reader: BaseConsumer = rdkafka::ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        // As tidelog's own consumer: else the fetch that waits for records holds up the one from the new position.
        .set("fetch.wait.max.ms", "100")
        .create()
        .expect("a consumer");
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let from = if round == 0 { 0 } else { 50 };
        let range = json!([{ "topic": "orders", "partition": 0, "from_offset": from, "until_offset": 100 }]);
        let commit = json!({ "epoch": epoch, "batch_time": now(), "ranges": range });
        client.ok("POST", "/v1/groups/g/batches", commit).await;
        let path = format!("/v1/groups/g?epoch_above={}&wait=30s", epoch.as_str().expect("a string"));
        let note = server.note.clone();
        let poll = tokio::spawn(async move {
            let mut poller = Client::connect(&note).await;
            poller.ok("GET", &path, Value::Null).await
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        roll_back(&mut operator).await;
        let receipt = Instant::now();
        poll.await.expect("a poll of ours");
        let started = client.ok("POST", "/v1/groups/g/start", start.clone()).await;
        epoch = started["epoch"].clone();
        let offset = started["positions"][0]["offset"].as_str().expect("a string").parse().expect("a number");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset("orders", 0, Native::Offset(offset)).expect("a legal offset");
        reader.assign(&list).expect("assigned");
        let record = reader.poll(Duration::from_secs(10)).expect("a record").expect("no error").offset();
        times.push(receipt.elapsed());
        assert_eq!(record, 50);
    }
    println!("  over HTTP: {}", quantiles(times));
}

fn main() {
    let arguments: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (count, batches) = match arguments[..] {
        [count, batches] => (count, batches),
        _ => (2_000, 1_000_000),
    };
    let root = tempfile::tempdir_in(".").expect("a temporary directory");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        commits(root.path(), count).await;
        page(root.path(), batches).await;
        println!("from a rollback's receipt to the first record read again");
        let mock = Mock::new(1).expect("a mock cluster");
        mock.create_topic(&topic().topic, 1).expect("a topic");
        mock.produce(&topic(), (0..100).map(|_| (None, "{}"))).expect("records");
        consumer_in_rust(root.path(), &mock).await;
        consumer_over_http(root.path(), &mock).await;
    });
}
