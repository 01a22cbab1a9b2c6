//! `tidelog import`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::broker::PartitionLook;
use crate::cli::args::{GroupArg, JournalArg, quoted, words_of};
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::output::{Out, Rows, or_dash};
use crate::cli::progress::Waiting;
use crate::cli::{offsets_file, opening};
use crate::control::import;
use crate::control::{ImportError, Limits};
use crate::journal::{Journal, OpenError};
use crate::offset::Seq;

const EXAMPLE: &str = "\
Examples:
  tidelog import --positions offsets.csv loader -b kafka:9092         a new group, its positions from the file
  tidelog import --positions offsets.csv loader -b kafka:9092 --dry-run
  kafka-consumer-groups --bootstrap-server kafka:9092 --group loader --all-topics \\
      --reset-offsets --to-current --export | tidelog import --positions - loader -b kafka:9092

The file has lines topic,partition,offset or group,topic,partition,offset, no header, as kafka-consumer-groups writes \
them. A group that the journal has is rolled back instead: tidelog rollback GROUP --from-file FILE.";

/// How long another process is waited for that holds the journal.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Take over a new group's positions from another store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Import {
    /// Where the positions are: a CSV file, or - for standard input
    #[arg(long, value_name = "FILE")]
    positions: Option<PathBuf>,
    #[command(flatten)]
    group: GroupArg,
    /// Write nothing: check the file, with --brokers also against the cluster, and show the positions
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    journal: JournalArg,
    #[command(flatten)]
    kafka: KafkaArgs,
}

impl Import {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let Some(file) = &self.positions else {
            let why = "--positions FILE says where a new group's positions are; whole journals can't be imported yet";
            return Err(Failure::Usage(why.to_owned()));
        };
        let offsets = offsets_file::read("--positions", file, &group)?;
        // Before a journal may be made: an import that can't be makes none.
        let seen = match self.kafka.broker()? {
            Some(broker) => {
                let _waiting = Waiting::begin("waiting for the broker");
                Some(import::look(broker.as_ref(), &offsets, Limits::default())?)
            }
            None => None,
        };
        let import = import::Import { group, source: source(file), offsets, seen };
        let seq = match self.open()? {
            Some(journal) => {
                let done = match self.dry_run {
                    true => journal.with_state(|state| import::check_new(state, &import.group)).map(|()| None),
                    false => import::import(&journal, import.clone()).map(Some),
                };
                opening::close(journal);
                done.map_err(|error| explain(error, file))?
            }
            None => None,
        };
        show(out, &import, seq)
    }

    /// The journal; none for a dry run where there is none.
    fn open(&self) -> Result<Option<Journal>, Failure> {
        match opening::within(&self.journal.journal, !self.dry_run, LOCK_WAIT) {
            Err(Failure::Open(OpenError::NotThere { .. })) if self.dry_run => Ok(None),
            opened => opened.map(Some),
        }
    }
}

/// The file's name without its directory, which means nothing to those who read the history elsewhere.
fn source(path: &Path) -> String {
    match path.file_name() {
        Some(name) if !offsets_file::is_stdin(path) => name.to_string_lossy().into_owned(),
        Some(_) | None => "standard input".to_owned(),
    }
}

fn explain(error: ImportError, file: &Path) -> Failure {
    match error {
        ImportError::Exists(group) => {
            let file = quoted(&file.to_string_lossy());
            let how = format!("tidelog rollback {} --from-file {file}", words_of(&group));
            Failure::Refused(format!("group {group} is in the journal already: roll it back to the file, {how}"))
        }
        error => error.into(),
    }
}

fn show(out: &mut Out, import: &import::Import, seq: Option<Seq>) -> Result<(), Failure> {
    let import::Import { group, source, offsets, seen } = import;
    let (partitions, begin) = (offsets.len(), format!("Group {group}"));
    out.line(match seq {
        Some(seq) => format!("{begin} has {partitions} positions from {source}: seq {seq}."),
        None => format!("{begin} would have {partitions} positions from {source}; nothing is written."),
    })?;
    let mut rows = Rows::new(&["topic", ">partition", ">offset", ">earliest", ">latest"]);
    let mut outside = 0;
    for (at, offset) in offsets {
        let ends = seen.as_ref().and_then(|seen| seen.ends.get(at));
        let end = |of: fn(&PartitionLook) -> Option<&crate::offset::Offset>| ends.and_then(of).copied();
        let (earliest, latest) = (end(|ends| ends.earliest.known()), end(|ends| ends.latest.known()));
        rows.push([
            at.topic.to_string(),
            at.partition.to_string(),
            offset.to_string(),
            or_dash(earliest),
            or_dash(latest),
        ]);
        if earliest.is_some_and(|earliest| *offset < earliest) || latest.is_some_and(|latest| *offset > latest) {
            outside += 1;
            rows.strike();
        }
    }
    out.table(rows)?;
    if outside > 0 {
        out.flush()?;
        tracing::warn!("{outside} positions are outside of their logs: the group's start corrects them, and says so");
    }
    if seen.is_none() {
        out.flush()?;
        tracing::info!("no broker was asked; the group's start compares the positions with its logs");
    }
    Ok(())
}
