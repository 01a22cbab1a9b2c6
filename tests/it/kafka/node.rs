//! One broker: its configuration, its files, its process.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use super::Options;
use super::jvm::Jvm;
use crate::wait::wait_for;

/// The harness's own settings: small, and quick to do what tests wait for.
const CONFIG: &[(&str, &str)] = &[
    ("offsets.topic.num.partitions", "1"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.num.partitions", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("log.initial.task.delay.ms", "100"),
    // Only a topic that asks for it loses records: those that a test dates in the past would be gone at once.
    ("log.retention.ms", "-1"),
    ("log.retention.check.interval.ms", "1000"),
    ("log.cleaner.backoff.ms", "200"),
    ("log.cleaner.dedupe.buffer.size", "4194304"),
    ("broker.heartbeat.interval.ms", "200"),
    // On purpose: what must not create a topic has to be tried where it would.
    ("auto.create.topics.enable", "true"),
];

/// Who may use the listener with TLS and SASL.
pub const USER: &str = "alice";
/// By this password.
pub const PASSWORD: &str = "alice-password-17";

/// A broker's place; the process may be running or not.
pub struct Node {
    id: i32,
    port: u16,
    /// Of the listener with TLS and SASL.
    secure: Option<u16>,
    properties: PathBuf,
    data: PathBuf,
    process: Mutex<Option<Jvm>>,
}

#[derive(Debug)]
pub struct PortTaken;

impl Node {
    /// Chooses ports and writes the properties of each node into `dir`.
    pub fn configure(dir: &Path, options: &Options<'_>) -> Vec<Node> {
        let controller = free_port();
        let configure = |id| {
            let node = Node {
                id,
                port: free_port(),
                secure: options.secure.map(|_| free_port()),
                properties: dir.join(format!("{id}.properties")),
                data: dir.join(format!("{id}")),
                process: Mutex::new(None),
            };
            fs::write(&node.properties, node.lines(controller, options)).expect("properties can be written");
            node
        };
        (1..=options.nodes).map(configure).collect()
    }

    fn lines(&self, controller: u16, options: &Options<'_>) -> String {
        let Node { id, port, data, .. } = self;
        let (roles, listener) = match id {
            1 => ("broker,controller", format!(",CONTROLLER://127.0.0.1:{controller}")),
            _ => ("broker", String::new()),
        };
        let mut lines = format!(
            "node.id={id}\nprocess.roles={roles}\nlog.dirs={}\n\
             listeners=BROKER://127.0.0.1:{port}{listener}\nadvertised.listeners=BROKER://127.0.0.1:{port}\n\
             inter.broker.listener.name=BROKER\ncontroller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n",
            data.display()
        );
        // How soon a revived broker is let in, and how soon a dead one's partitions have another leader or none. Between
        // processes that share two cores a second's silence is no death.
        let session = if options.nodes == 1 { 1_000 } else { 3_000 };
        lines += &format!("broker.session.timeout.ms={session}\n");
        if let (Some(port), Some(file)) = (self.secure, options.secure) {
            let security = "org.apache.kafka.common.security";
            lines += &format!(
                "listeners=BROKER://127.0.0.1:{0}{listener},SECURE://127.0.0.1:{port}\n\
                 advertised.listeners=BROKER://127.0.0.1:{0},SECURE://127.0.0.1:{port}\n\
                 listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL\n\
                 ssl.keystore.type=PEM\nssl.keystore.location={1}\nsasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\n\
                 listener.name.secure.plain.sasl.jaas.config={security}.plain.PlainLoginModule required \
                 user_{USER}=\"{PASSWORD}\";\n\
                 listener.name.secure.scram-sha-256.sasl.jaas.config={security}.scram.ScramLoginModule required;\n",
                self.port,
                file.display()
            );
        }
        // Of two lines with the same key the later one counts.
        for (key, value) in CONFIG.iter().chain(options.config) {
            lines += &format!("{key}={value}\n");
        }
        lines
    }

    pub fn format(&self, cluster_id: &str) -> Jvm {
        // With `-t ID` one id in 64 is taken for an option, as it begins with a dash.
        let id = format!("--cluster-id={cluster_id}");
        let scram = format!("SCRAM-SHA-256=[name={USER},password={PASSWORD}]");
        let user: &[&str] = if self.secure.is_some() { &["--add-scram", &scram] } else { &[] };
        Jvm::start("kafka.tools.StorageTool", &[&["format", &id, "-c", self.properties()], user].concat())
    }

    pub fn id(&self) -> i32 {
        self.id
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    #[cfg(feature = "tls")]
    pub fn secure_address(&self) -> String {
        format!("127.0.0.1:{}", self.secure.expect("the cluster was asked for secure listeners"))
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn spawn(&self) {
        let process = Jvm::start("kafka.Kafka", &[self.properties()]);
        let before = self.process.lock().expect("no test panics while it holds this").replace(process);
        assert!(before.is_none(), "node {} runs already", self.id);
    }

    /// Waits until the broker takes connections.
    pub fn wait_listening(&self, deadline: Duration) -> Result<(), PortTaken> {
        wait_for(&format!("node {} listening", self.id), deadline, || {
            let mut process = self.process.lock().expect("no test panics while it holds this");
            let process = process.as_mut().expect("waited for after it was spawned");
            if let Some(status) = process.ended() {
                let output = process.output();
                assert!(output.contains("Address already in use"), "node {} ended, {status}:\n{output}", self.id);
                return Ok(Err(PortTaken));
            }
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map(|_| Ok(()))
        })
    }

    pub fn kill(&self) {
        drop(self.process.lock().expect("no test panics while it holds this").take());
    }

    pub fn runs(&self) -> bool {
        self.process.lock().expect("no test panics while it holds this").is_some()
    }

    pub fn signal(&self, signal: Signal) {
        let process = self.process.lock().expect("no test panics while it holds this");
        process.as_ref().expect("the node runs").signal(signal);
    }

    fn properties(&self) -> &str {
        self.properties.to_str().expect("the path of the checkout is UTF-8")
    }
}

/// A loopback port that nobody listens on. Below the range that the kernel takes ports for outgoing connections from
/// (32768 and up): a client that keeps trying a killed broker could otherwise end up owning its port.
fn free_port() -> u16 {
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run at the same time begin at different places.
    let start = (process::id() % 1_000) as u16 * 12;
    (0..COUNT)
        .map(|_| FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .expect("a port is free")
}
