//! The targets of a rollback as flags, with the words of Kafka's own tool where it has them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::exit::Failure;
use crate::cli::offsets_file;
use crate::offset::{BatchNumber, Group, Offset, Seq, Timestamp};
use crate::rollback::{Edge, Target, parse_duration};

/// Exactly one of them is given.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    #[command(flatten)]
    one: One,
    /// With --to-batch: the batch is to be done again
    #[arg(long, conflicts_with = "after")]
    before: bool,
    /// With --to-batch: the batch stays done (the default)
    #[arg(long)]
    after: bool,
}

#[derive(Debug, Args)]
#[group(id = "target", multiple = false)]
struct One {
    /// To the state at a batch
    #[arg(long, value_name = "N")]
    to_batch: Option<BatchNumber>,
    /// To what was committed by this time (RFC 3339 with a zone), by the journal's clock
    #[arg(long, value_name = "TIME")]
    to_commit_time: Option<Timestamp>,
    /// To the state that somebody named; see `tidelog mark`
    #[arg(long, value_name = "NAME")]
    to_mark: Option<String>,
    /// To the state right after an entry of the journal
    #[arg(long, value_name = "SEQ")]
    to_seq: Option<Seq>,
    /// Take the group's last move back
    #[arg(long)]
    undo: bool,
    /// To the start of each log
    #[arg(long)]
    to_earliest: bool,
    /// To the end of each log; what is between is a loss
    #[arg(long)]
    to_latest: bool,
    /// To this offset, for every partition in scope
    #[arg(long, value_name = "N")]
    to_offset: Option<Offset>,
    /// So many offsets on from the position, or back with a minus
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    shift_by: Option<i64>,
    /// To the first record of this time or later (RFC 3339 with a zone), by the records' own time
    #[arg(long, value_name = "TIME")]
    to_datetime: Option<Timestamp>,
    /// To the first record that is at most so old, such as P1DT2H, by the records' own time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    by_duration: Option<Duration>,
    /// To the offsets in this file, or on standard input for -: lines topic,partition,offset, or with the group in front,
    /// as kafka-consumer-groups writes them; partitions that it does not name stay
    #[arg(long, value_name = "CSV")]
    from_file: Option<PathBuf>,
}

impl TargetArgs {
    /// Whether any is given.
    pub fn is_given(&self) -> bool {
        self.first().is_some() || self.one.from_file.is_some() || self.before || self.after
    }

    /// The target of `group`; a file is read for it.
    pub fn target(&self, group: &Group) -> Result<Target, Failure> {
        if (self.before || self.after) && self.one.to_batch.is_none() {
            return Err(Failure::Usage("--before and --after go with --to-batch only".to_owned()));
        }
        if let Some(path) = &self.one.from_file {
            return offsets_file::read("--from-file", path, group).map(Target::Offsets);
        }
        self.first().ok_or_else(|| {
            Failure::Usage("where to? give one of --to-batch, --to-commit-time, --to-mark, --to-seq, --undo, --to-earliest, --to-latest, --to-offset, --shift-by, --to-datetime, --by-duration, --from-file, or --plan FILE".to_owned())
        })
    }

    fn first(&self) -> Option<Target> {
        let edge = if self.before { Edge::Before } else { Edge::After };
        let One { to_batch, to_commit_time, to_mark, to_seq, undo, to_earliest, to_latest, to_offset, .. } = &self.one;
        let One { shift_by, to_datetime, by_duration, .. } = &self.one;
        let given = [
            to_batch.map(|batch| Target::Batch { batch, edge }),
            to_commit_time.map(Target::CommitTime),
            to_mark.clone().map(Target::Mark),
            to_seq.map(Target::Seq),
            undo.then_some(Target::Undo),
            to_earliest.then_some(Target::Earliest),
            to_latest.then_some(Target::Latest),
            to_offset.map(Target::Offset),
            shift_by.map(Target::Shift),
            to_datetime.map(Target::RecordTime),
            by_duration.map(Target::Duration),
        ];
        given.into_iter().flatten().next()
    }
}
