//! A real Kafka for tests: KRaft brokers on loopback, from the jars that `tests/run` puts into `target/kafka`.
//!
//! [`TestKafka::shared`] is one broker for the whole test binary: take topic and group names from [`TestKafka::unique`].
//! Tests that kill, freeze or rewind brokers, or need several, start their own with [`TestKafka::start`].
//! All calls block, and panic when what they wait for does not come; an async test needs a multi-threaded runtime.

mod groups;
mod jvm;
mod node;
mod records;
#[cfg(feature = "tls")]
pub mod secure;
mod topics;

use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rdkafka::admin::AdminClient;
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rustix::process::Signal;
use tempfile::TempDir;

use self::jvm::Jvm;
use self::node::{Node, PortTaken};
use crate::wait::{DEADLINE, wait_for};

pub use self::records::Record;

/// A broker starts in three seconds; one that needs longer than this, on two loaded cores, is stuck.
const START_DEADLINE: Duration = Duration::from_secs(90);

/// What a test wants of a cluster of its own.
pub struct Options<'a> {
    /// How many brokers, numbered from 1. Node 1 is the controller as well: without it no leader changes.
    pub nodes: i32,
    /// Lines for each broker's server.properties; they win over the harness's own.
    pub config: &'a [(&'a str, &'a str)],
    /// A listener more on each broker, by TLS and SASL, with the certificate and key in this file.
    pub secure: Option<&'a Path>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { nodes: 1, config: &[], secure: None }
    }
}

/// A running cluster. Dropped, its processes are killed and its files removed.
pub struct TestKafka {
    // First, as their processes must end before the files go.
    nodes: Vec<Node>,
    cluster_id: String,
    admin: AdminClient<DefaultClientContext>,
    /// Reads uncommitted, so the end that it sees is the high watermark.
    looker: BaseConsumer,
    names: AtomicU32,
    dir: TempDir,
    _turn: Option<Turn>,
}

/// The right to run a cluster of several brokers: with two of them at once two cores answer nothing in time.
struct Turn;

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Turn {
    fn wait() -> Turn {
        while TAKEN.swap(true, Ordering::AcqRel) {
            std::thread::sleep(Duration::from_millis(100));
        }
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// The data of all brokers at one moment, for [`TestKafka::rewind`].
pub struct Saved(TempDir);

impl TestKafka {
    /// Starts a cluster and returns once it serves clients.
    pub fn start(options: Options<'_>) -> TestKafka {
        let turn = (options.nodes > 1).then(Turn::wait);
        // A port that was free can be taken before the broker binds it.
        let started = (0..5).find_map(|_| TestKafka::try_start(&options).ok());
        TestKafka { _turn: turn, ..started.expect("Kafka found its ports taken five times") }
    }

    /// The broker that all tests of this binary share, started by the first that asks; it ends with the process.
    pub fn shared() -> &'static TestKafka {
        static SHARED: OnceLock<TestKafka> = OnceLock::new();
        SHARED.get_or_init(|| TestKafka::start(Options::default()))
    }

    fn try_start(options: &Options<'_>) -> Result<TestKafka, PortTaken> {
        let dir = temp_dir();
        let mut id = [0; 16];
        getrandom::fill(&mut id).expect("the system has random numbers");
        let cluster_id = BASE64_URL_SAFE_NO_PAD.encode(id);
        let nodes = Node::configure(dir.path(), options);
        let formats: Vec<Jvm> = nodes.iter().map(|node| node.format(&cluster_id)).collect();
        for format in formats {
            format.finish(START_DEADLINE);
        }
        nodes.iter().for_each(Node::spawn);
        nodes.iter().try_for_each(|node| node.wait_listening(START_DEADLINE))?;
        let config = client_config(&addresses(&nodes));
        let kafka = TestKafka {
            nodes,
            cluster_id,
            admin: config.create().expect("an admin client can be made"),
            looker: config.clone().set("isolation.level", "read_uncommitted").create().expect("a consumer can be made"),
            names: AtomicU32::new(1),
            dir,
            _turn: None,
        };
        kafka.wait_whole();
        Ok(kafka)
    }

    /// `bootstrap.servers` of this cluster.
    pub fn brokers(&self) -> String {
        addresses(&self.nodes).join(",")
    }

    /// `bootstrap.servers` of the listeners with TLS and SASL.
    #[cfg(feature = "tls")]
    pub fn secure_brokers(&self) -> String {
        self.nodes.iter().map(Node::secure_address).collect::<Vec<_>>().join(",")
    }

    /// The id that this cluster was formatted with.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// A name for a topic or a group that no other test on this cluster gets.
    pub fn unique(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Kills a broker; its port and files stay for [`TestKafka::revive`].
    pub fn kill(&self, node: i32) {
        self.node(node).kill();
    }

    /// Starts a killed broker again, on the same port and files, and waits until the running ones are a cluster.
    pub fn revive(&self, node: i32) {
        self.node(node).spawn();
        self.wait_revived(self.node(node));
        self.wait_whole();
    }

    /// Stops a broker in its tracks: connections stay open and nothing answers, until [`TestKafka::thaw`].
    pub fn freeze(&self, node: i32) {
        self.node(node).signal(Signal::STOP);
    }

    /// Lets a frozen broker go on.
    pub fn thaw(&self, node: i32) {
        self.node(node).signal(Signal::CONT);
    }

    /// Copies all data, for [`TestKafka::rewind`]; the brokers are down for that moment.
    pub fn save(&self) -> Saved {
        let saved = temp_dir();
        self.while_down(|| self.nodes.iter().for_each(|node| copy(node.data(), saved.path())));
        Saved(saved)
    }

    /// Puts saved data back, like a disk's snapshot: the same cluster and topic ids, and logs as they were then.
    pub fn rewind(&self, saved: &Saved) {
        self.while_down(|| {
            for node in &self.nodes {
                fs::remove_dir_all(node.data()).expect("a broker's data can be removed");
                copy(&saved.0.path().join(node.data().file_name().expect("it has a name")), self.dir.path());
            }
        });
    }

    /// Runs one of Kafka's own tools against this cluster and returns what it printed; panics if it fails. For instance
    /// `tool("org.apache.kafka.tools.TopicCommand", &["--list"])`. 0.5 s.
    pub fn tool(&self, class: &str, args: &[&str]) -> String {
        let brokers = self.brokers();
        let args: Vec<&str> = ["--bootstrap-server", &brokers].into_iter().chain(args.iter().copied()).collect();
        Jvm::start(class, &args).finish(DEADLINE)
    }

    fn node(&self, id: i32) -> &Node {
        self.nodes.iter().find(|node| node.id() == id).expect("nodes are numbered from 1")
    }

    fn while_down(&self, work: impl FnOnce()) {
        self.nodes.iter().for_each(Node::kill);
        work();
        self.nodes.iter().for_each(Node::spawn);
        self.nodes.iter().for_each(|node| self.wait_revived(node));
        self.wait_whole();
    }

    fn wait_revived(&self, node: &Node) {
        node.wait_listening(START_DEADLINE).expect("a broker's port is below the range that others take theirs from");
    }

    /// Waits until each running broker says that all of them are in, and, if none is dead, that all partitions are led.
    fn wait_whole(&self) {
        let running: Vec<&Node> = self.nodes.iter().filter(|node| node.runs()).collect();
        for node in &running {
            wait_for(&format!("the cluster whole, as node {} sees it", node.id()), START_DEADLINE, || {
                // A new client each time: one that knows the others asks any of them.
                let config = client_config(&[node.address()]);
                let client: BaseConsumer = config.create().expect("a consumer can be made");
                let metadata = client.fetch_metadata(None, Duration::from_secs(1)).map_err(|e| e.to_string())?;
                let brokers = metadata.brokers().len();
                let leaderless =
                    metadata.topics().iter().flat_map(|t| t.partitions()).filter(|p| p.leader() < 0).count();
                match brokers == running.len() && (brokers < self.nodes.len() || leaderless == 0) {
                    true => Ok(()),
                    false => Err(format!("{brokers} brokers, {leaderless} partitions without a leader")),
                }
            });
        }
    }

    /// For a client of one call's own, which knows nothing of a topic's earlier lives.
    fn client_config(&self) -> ClientConfig {
        client_config(&addresses(&self.nodes))
    }
}

fn addresses(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(Node::address).collect()
}

fn client_config(brokers: &[String]) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers.join(","))
        .set("allow.auto.create.topics", "false")
        .set("reconnect.backoff.ms", "20")
        .set("reconnect.backoff.max.ms", "200");
    config
}

/// A directory beside the build that names its process; those of processes that are gone are removed first. (The shared
/// broker is never dropped, and a killed test drops nothing.)
fn temp_dir() -> TempDir {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in fs::read_dir(parent).expect("cargo made it").flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix("kafka-")?.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // Another test process may be removing it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    tempfile::Builder::new()
        .prefix(&format!("kafka-{}-", process::id()))
        .tempdir_in(parent)
        .expect("a temporary directory can be made")
}

/// Copies a directory into another, keeping the holes of Kafka's preallocated indexes.
fn copy(from: &Path, into: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(into).status().expect("cp can be run");
    assert!(status.success(), "cp -a {} {}: {status}", from.display(), into.display());
}
