//! tidelog keeps the offsets of Kafka consumers in a local, append-only journal: one entry for each committed batch,
//! never overwritten. From it come the start positions of a consumer (repaired when data expired, a topic was purged
//! or recreated, or partitions were added, and every loss written down), the history of what was consumed when, and
//! the rollback of a group to any earlier batch.
//!
//! # Code map, ground first
//!
//! Each module imports only what stands above it in this list.
//!
//! - `fingerprint`: a checksum to compare by; `message`: what messages for people have in common.
//! - [`offset`], [`entry`], [`positions`]: the words as types, and the fold [`positions::State::apply`], the only way
//!   that state changes: live, at open and in tests.
//! - [`results`]: keyed results that a batch writes into the journal.
//! - [`commit`]: the pure check of a commit against a group's state.
//! - [`broker`]: what a look at a broker holds, and the trait that takes one.
//! - [`reconcile`], [`rollback`]: pure decisions over state, a look and a policy.
//! - [`journal`]: the only place that knows sled and bytes.
//! - [`history`]: pages of batches and entries over the journal.
//! - [`control`]: start, plan, execute: fetches the look, runs the decision in the journal's writer.
//! - [`wire`]: the JSON shapes of the command line and the server.
//! - `kafka` (feature `kafka`): the only place that knows rdkafka.
//! - `server` (feature `server`): the only place that knows axum.
//! - `cli` (feature `cli`): one file a command.

mod fingerprint;

mod message;

pub mod offset;

pub mod entry;

pub mod positions;

pub mod results;

pub mod commit;

pub mod broker;

pub mod reconcile;

pub mod rollback;

pub mod journal;

pub mod history;

pub mod control;

pub mod wire;

#[cfg(feature = "kafka")]
pub mod kafka;

#[cfg(feature = "server")]
pub mod server;

#[cfg(feature = "cli")]
pub mod cli;

/// The README's Rust, compiled.
#[cfg(all(doctest, feature = "kafka"))]
#[doc = include_str!("../README.md")]
struct Readme;
