//! All integration tests in one binary, a module a subject.

mod as_of;
mod cases;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod cli_consume;
#[cfg(feature = "cli")]
mod cli_offsets;
mod cli_rollback;
#[cfg(feature = "cli")]
mod cli_server;
#[cfg(feature = "cli")]
mod cli_terminal;
#[cfg(feature = "server")]
mod contract;
mod crash;
mod damage;
mod damage_cases;
#[cfg(feature = "kafka")]
mod examples;
#[cfg(feature = "server")]
mod http;
mod journal;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_consumer;
#[cfg(feature = "kafka")]
mod kafka_group;
#[cfg(feature = "kafka")]
mod kafka_harness;
#[cfg(feature = "cli")]
mod kafka_holes;
#[cfg(feature = "kafka")]
mod kafka_look;
#[cfg(feature = "kafka")]
mod kafka_mock;
#[cfg(feature = "cli")]
mod kafka_offsets;
#[cfg(feature = "kafka")]
mod kafka_running;
#[cfg(feature = "tls")]
mod kafka_tls;
#[cfg(feature = "cli")]
mod kill;
#[cfg(feature = "cli")]
mod live;
mod model;
#[cfg(feature = "cli")]
mod program;
mod readers;
mod reading;
#[cfg(feature = "cli")]
mod readme;
#[cfg(feature = "cli")]
mod real;
#[cfg(feature = "cli")]
mod real_csv;
mod results;
#[cfg(feature = "kafka")]
mod results_kill;
mod script;
mod tidy;
#[cfg(feature = "cli")]
mod two_brokers;
mod wait;
