//! Opening the journal, and finding a group in it.

use std::path::Path;
use std::sync::Arc;

use crate::broker::Broker;
use crate::cli::exit::Failure;
use crate::cli::times;
use crate::control::{Control, Limits, UnknownGroup};
use crate::entry::Entry;
use crate::journal::{Durability, Journal, Options};
use crate::offset::{BatchNumber, Group};
use crate::positions::GroupState;

/// Opens a journal that is there.
pub fn existing(dir: &Path) -> Result<Journal, Failure> {
    open(dir, false, Durability::Fsync)
}

/// Opens the journal, or makes one and says so.
pub fn or_new(dir: &Path, durability: Durability) -> Result<Journal, Failure> {
    let journal = open(dir, true, durability)?;
    if journal.created() {
        let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        tracing::info!("made a new journal in {}", full.display());
    }
    Ok(journal)
}

fn open(dir: &Path, create: bool, durability: Durability) -> Result<Journal, Failure> {
    let command = std::env::args().nth(1).unwrap_or_default();
    let holder = format!("process {} (tidelog {command})", std::process::id());
    Ok(Journal::open(dir, Options { create, durability, holder, ..Options::new(Arc::new(times::now)) })?)
}

/// The journal and a broker, to be steered.
pub fn control(journal: Journal, broker: Option<Arc<dyn Broker>>) -> Control {
    Control { journal, broker, limits: Limits::default(), clock: Arc::new(times::now) }
}

/// Closes a journal that was only read: a failure to tidy up changes no answer.
pub fn close(journal: Journal) {
    if let Err(error) = journal.close() {
        tracing::warn!("{error}");
    }
}

/// The group's present state.
///
/// # Errors
///
/// There is none: names the applications that hold a group of this name.
pub fn group_state(journal: &Journal, group: &Group) -> Result<GroupState, Failure> {
    journal.group(group).ok_or_else(|| Failure::NotFound(UnknownGroup::of(journal, group).to_string()))
}

/// The entry of a batch.
///
/// # Errors
///
/// There is none: names the newest batch.
pub fn batch_entry(journal: &Journal, group: &Group, batch: BatchNumber) -> Result<Entry, Failure> {
    if batch == BatchNumber::ZERO {
        return Err(Failure::Usage("batch 0: batches are numbered from 1".to_owned()));
    }
    let newest = group_state(journal, group)?.positions.batch;
    journal.batch(group, batch)?.ok_or_else(|| {
        Failure::NotFound(match newest {
            BatchNumber::ZERO => format!("group {group} has no batch yet"),
            newest if batch > newest => format!("no batch {batch} of group {group}; its newest is {newest}"),
            newest => format!("batch {batch} of group {group} is no longer kept; its newest is {newest}"),
        })
    })
}

/// Who acts: what was given, else the login name.
pub fn actor(given: Option<String>) -> String {
    let named = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    given
        .or_else(|| named("LOGNAME"))
        .or_else(|| named("USER"))
        .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}
