//! How Kafka is reached: brokers and the client's properties.

use std::sync::Arc;

use clap::Args;

use crate::broker::Broker;
use crate::cli::exit::Failure;
use crate::cli::times;
use crate::kafka::{ClientConfig, KafkaBroker};

/// The Kafka cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Kafka")]
pub struct KafkaArgs {
    /// Brokers to begin with: host:port, several separated by commas
    #[arg(short, long, visible_alias = "bootstrap-server", env = "TIDELOG_BROKERS", value_name = "BROKERS")]
    pub brokers: Option<String>,
    /// A property of the Kafka client (librdkafka), such as security.protocol=ssl; repeatable
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = property)]
    pub properties: Vec<(String, String)>,
}

/// Reads `key=value`. Values may hold `=`.
pub fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

impl KafkaArgs {
    /// Brokers and properties; none where no brokers are named.
    pub fn config(&self) -> Result<Option<ClientConfig>, Failure> {
        let Some(brokers) = &self.brokers else {
            return match self.properties.first() {
                Some((key, _)) => Err(Failure::Usage(format!("-X {key}: there is no --brokers to use it with"))),
                None => Ok(None),
            };
        };
        let mut config = ClientConfig::new(brokers.as_str())?;
        for (key, value) in &self.properties {
            config = config.with(key.as_str(), value.as_str())?;
        }
        Ok(Some(config))
    }

    /// The names of the properties that were given.
    pub fn property_names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|(name, _)| name.as_str())
    }

    /// Brokers and properties, which the command can't do without.
    pub fn needed(&self) -> Result<ClientConfig, Failure> {
        self.config()?.ok_or_else(|| Failure::Usage("no brokers: give --brokers, or set TIDELOG_BROKERS".to_owned()))
    }

    /// The cluster; none where no brokers are named.
    pub fn broker(&self) -> Result<Option<Arc<dyn Broker>>, Failure> {
        self.config()?.map(|config| broker(&config)).transpose()
    }
}

/// A client that looks at the cluster. It connects by itself; nothing is asked yet.
pub fn broker(config: &ClientConfig) -> Result<Arc<dyn Broker>, Failure> {
    let broker = KafkaBroker::new(config, Arc::new(times::now)).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Arc::new(broker))
}
