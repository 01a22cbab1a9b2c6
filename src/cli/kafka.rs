//! How Kafka is reached: brokers and the client's properties.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;

use crate::broker::Broker;
use crate::cli::exit::Failure;
use crate::cli::times;
use crate::kafka::{ClientConfig, ClientError, KafkaBroker, Properties};

/// Bytes of a properties file; certificates within it are a few thousand.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The Kafka cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Kafka")]
pub struct KafkaArgs {
    /// Brokers to begin with: host:port, several separated by commas
    #[arg(short, long, visible_alias = "bootstrap-server", env = "TIDELOG_BROKERS", value_name = "BROKERS")]
    brokers: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    #[arg(skip)]
    resolved: OnceCell<Option<ClientConfig>>,
}

/// The properties of the Kafka client.
#[derive(Debug, Clone, Args)]
pub struct ClientArgs {
    /// A property of the Kafka client (librdkafka), such as security.protocol=ssl; repeatable; counts before the file's
    #[arg(short = 'X', value_name = "KEY=VALUE")]
    properties: Vec<Property>,
    /// The Kafka client's properties file, a Java client's or librdkafka's
    #[arg(long, value_name = "FILE")]
    kafka_config: Option<PathBuf>,
}

/// `KEY=VALUE`; values may hold `=`. Wrong ones are told later, as clap would show them, and they may be passwords.
#[derive(Clone)]
struct Property(Option<(String, String)>);

impl FromStr for Property {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (key, value) = text.split_once('=').unwrap_or_default();
        Ok(Property((!key.trim().is_empty()).then(|| (key.trim().to_owned(), value.to_owned()))))
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map(|(key, _)| key).fmt(f)
    }
}

impl KafkaArgs {
    /// These brokers, for a command that has a flag of its own for them.
    pub fn of(brokers: Option<String>, client: ClientArgs) -> Self {
        KafkaArgs { brokers, client, resolved: OnceCell::new() }
    }

    /// Brokers and properties; none where no brokers are named. What the file holds in vain is told the first time.
    pub fn config(&self) -> Result<Option<ClientConfig>, Failure> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved.clone());
        }
        // An environment variable that is empty is as good as none.
        let resolved = self.client.config(self.brokers.clone().filter(|brokers| !brokers.is_empty()))?;
        Ok(self.resolved.get_or_init(|| resolved).clone())
    }

    /// The brokers, as they are named.
    pub fn brokers(&self) -> Result<Option<String>, Failure> {
        Ok(self.config()?.map(|config| config.brokers().to_owned()))
    }

    /// Whether there is anything to reach Kafka by.
    pub fn is_given(&self) -> bool {
        self.brokers.as_ref().is_some_and(|brokers| !brokers.is_empty()) || self.client.kafka_config.is_some()
    }

    /// A flag that is about this process's own client.
    pub fn client_flag(&self) -> Option<String> {
        self.client.properties.first().map(|property| match &property.0 {
            Some((key, _)) => format!("-X {key}"),
            None => "-X".to_owned(),
        })
    }

    /// Brokers and properties, which the command can't do without.
    pub fn needed(&self) -> Result<ClientConfig, Failure> {
        let why = "no brokers: give --brokers, or set TIDELOG_BROKERS";
        self.config()?.ok_or_else(|| Failure::Usage(why.to_owned()))
    }

    /// The cluster; none where no brokers are named.
    pub fn broker(&self) -> Result<Option<Arc<dyn Broker>>, Failure> {
        self.config()?.map(|config| broker(&config)).transpose()
    }
}

impl ClientArgs {
    fn config(&self, brokers: Option<String>) -> Result<Option<ClientConfig>, Failure> {
        let mut given = BTreeMap::new();
        for property in &self.properties {
            let (key, value) = property.0.clone().ok_or_else(|| {
                Failure::Usage("-X: write KEY=VALUE (what is there is not shown, it may be a password)".to_owned())
            })?;
            given.insert(key, value);
        }
        let first = given.keys().next().cloned();
        let file = self.kafka_config.as_deref().map(read).transpose()?.unwrap_or_default();
        let Some(brokers) = brokers.or_else(|| file.brokers.clone()) else {
            return match (&self.kafka_config, first) {
                (Some(path), _) => Err(Failure::Usage(format!(
                    "--kafka-config {}: it has no bootstrap.servers, and there is no --brokers",
                    path.display()
                ))),
                (None, Some(key)) => Err(Failure::Usage(format!("-X {key}: there is no --brokers to use it with"))),
                (None, None) => Ok(None),
            };
        };
        let mut config = ClientConfig::new(brokers)?;
        // Before names are translated: what is refused is refused by the name that was written.
        for (key, value) in &given {
            config.clone().with(key.as_str(), value.as_str())?;
        }
        for (key, value) in file.with(given)?.properties {
            config = config.with(key, value)?;
        }
        Ok(Some(config))
    }
}

/// Reads a properties file, and tells what it holds in vain.
fn read(path: &Path) -> Result<Properties, Failure> {
    let name = format!("--kafka-config {}", path.display());
    let wrong = |why: &dyn fmt::Display| Failure::Usage(format!("{name}: {why}"));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| wrong(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(wrong(&format_args!("a properties file has at most {MAX_FILE_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong(&"not UTF-8; save it as UTF-8"))?;
    let properties = Properties::read(&text).map_err(|invalid| wrong(&invalid))?;
    for (own, why) in &properties.own {
        tracing::info!("{name}: {own} is left out, it is tidelog's own: {why}");
    }
    if !properties.unknown.is_empty() {
        let unknown = properties.unknown.join(", ");
        tracing::warn!("{name}: left out, as librdkafka has nothing like it: {unknown}");
    }
    Ok(properties)
}

/// A client that looks at the cluster. It connects by itself; nothing is asked yet.
pub fn broker(config: &ClientConfig) -> Result<Arc<dyn Broker>, Failure> {
    match KafkaBroker::new(config, Arc::new(times::now)) {
        Ok(broker) => Ok(Arc::new(broker)),
        Err(ClientError { property: Some(name), why, .. }) => {
            Err(Failure::Usage(format!("Kafka client property {name}: {why}")))
        }
        Err(error) => Err(Failure::Usage(error.to_string())),
    }
}
