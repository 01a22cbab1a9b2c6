//! What a target means: finds the moment that it names in the journal's history.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{OldestBatch, PlanError};
use crate::control::Control;
use crate::entry::{Body, Entry};
use crate::journal::{Order, ReadError};
use crate::offset::{BatchNumber, Group, Invalid, OffsetRange, Seq, Timestamp};
use crate::positions::GroupState;
use crate::rollback::{Edge, Meaning, Moment, PlanRequest, Target};

/// What a target means, as far as history knows.
pub enum Sought {
    /// All of it.
    Known(Meaning),
    /// The broker has to say which records came first at or after this time.
    RecordsFrom(Timestamp),
}

/// What the target of `request` means to `group`.
pub fn target(control: &Control, request: &PlanRequest, group: &GroupState) -> Result<Sought, PlanError> {
    let history = History { control, request };
    let meaning = match &request.to {
        Target::Batch { batch, edge } => history.batch(*batch, *edge, group.positions.batch)?,
        Target::CommitTime(time) => history.commit_time(*time)?,
        Target::Mark(name) => history.mark(name)?,
        Target::Seq(seq) => history.seq(*seq)?,
        Target::Undo => history.undo(group.last_move)?,
        Target::Earliest => Meaning::Earliest,
        Target::Latest => Meaning::Latest,
        Target::Offset(offset) => Meaning::Offset(*offset),
        Target::Shift(shift) => Meaning::Shift(*shift),
        Target::Offsets(offsets) => Meaning::Offsets(offsets.clone()),
        Target::RecordTime(time) => return Ok(Sought::RecordsFrom(*time)),
        Target::Duration(duration) => {
            let back = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
            let time = (control.clock)().millis().saturating_sub(back);
            return Ok(Sought::RecordsFrom(Timestamp::from_millis(time)));
        }
    };
    Ok(Sought::Known(meaning))
}

/// The history of the group that a request names.
struct History<'a> {
    control: &'a Control,
    request: &'a PlanRequest,
}

impl History<'_> {
    fn group(&self) -> &Group {
        &self.request.group
    }

    fn before_history(&self) -> Result<PlanError, ReadError> {
        let oldest = self.oldest_batch()?;
        Ok(PlanError::BeforeHistory { group: self.group().clone(), target: self.request.to.to_string(), oldest })
    }

    /// The group as of `seq`, where `again` is to be read again.
    fn as_of(&self, seq: Seq, again: Vec<OffsetRange>) -> Result<Meaning, PlanError> {
        let Some(as_of) = self.control.journal.positions_as_of(self.group(), seq)? else {
            return Err(self.before_history()?);
        };
        let moment = Moment { seq: as_of.seq, batch: as_of.positions.batch, recorded_at: as_of.recorded_at };
        Ok(Meaning::AsOf { moment, positions: Arc::new(as_of.positions), again })
    }

    fn batch(&self, batch: BatchNumber, edge: Edge, newest: BatchNumber) -> Result<Meaning, PlanError> {
        let entry = self.control.journal.batch(self.group(), batch)?;
        let Some(Entry { seq, body: Body::Batch(found), .. }) = entry else {
            if batch <= newest {
                return Err(self.before_history()?);
            }
            return Err(PlanError::UnknownBatch { group: self.group().clone(), batch, newest });
        };
        match edge {
            Edge::After => self.as_of(seq, Vec::new()),
            Edge::Before => self.as_of(seq.previous(), found.ranges),
        }
    }

    fn commit_time(&self, time: Timestamp) -> Result<Meaning, PlanError> {
        let newest = self.control.journal.seq_at(Some(self.group()), time)?;
        if !self.moved_after(newest.unwrap_or_default())? {
            return Ok(Meaning::Present);
        }
        match (newest, self.oldest_batch()?) {
            (Some(seq), Some(oldest)) if time >= oldest.recorded_at => self.as_of(seq, Vec::new()),
            _ => Err(self.before_history()?),
        }
    }

    /// Whether a position was set by an entry after `seq`.
    fn moved_after(&self, seq: Seq) -> Result<bool, ReadError> {
        let moves = |entry: &Entry| matches!(entry.body, Body::Batch(_)) || entry.body.correction().is_some();
        self.find(seq.next(), Order::Ascending, moves).map(|found| found.is_some())
    }

    fn mark(&self, name: &str) -> Result<Meaning, PlanError> {
        let named = |entry: &Entry| matches!(&entry.body, Body::Mark { name: other, .. } if other == name);
        let mut newest = None;
        self.control.journal.visit_others(self.group(), &mut |entry| {
            if !named(&entry) {
                return ControlFlow::Continue(());
            }
            newest = Some(entry.seq);
            ControlFlow::Break(())
        })?;
        match newest {
            Some(seq) => self.as_of(seq, Vec::new()),
            None => Err(PlanError::UnknownMark { group: self.group().clone(), mark: name.to_owned() }),
        }
    }

    fn seq(&self, seq: Seq) -> Result<Meaning, PlanError> {
        let newest = self.control.journal.with_state(|state| state.seq);
        if seq > newest {
            let why = format!("above {newest}, the newest entry of this journal");
            return Err(Invalid::new("seq", seq, why).into());
        }
        self.as_of(seq, Vec::new())
    }

    fn undo(&self, last_move: Option<Seq>) -> Result<Meaning, PlanError> {
        let nothing = || PlanError::NothingToUndo { group: self.group().clone() };
        let of = last_move.ok_or_else(nothing)?;
        let Some(Entry { body: Body::RolledBack(undone), .. }) = self.control.journal.entry(of)? else {
            return Err(nothing());
        };
        let before = self.control.journal.positions_as_of(self.group(), of.previous())?;
        let before = before.map(|as_of| as_of.positions).unwrap_or_default();
        let (mut first, mut undoes) = (undone.correction.moves.clone(), undone.undoes);
        while let Some(seq) = undoes {
            let Some(Entry { body: Body::RolledBack(earlier), .. }) = self.control.journal.entry(seq)? else { break };
            (first, undoes) = (earlier.correction.moves, earlier.undoes);
        }
        Ok(Meaning::Undo { of, moves: undone.correction.moves, before: Arc::new(before), first })
    }

    fn oldest_batch(&self) -> Result<Option<OldestBatch>, ReadError> {
        let mut oldest = None;
        let journal = &self.control.journal;
        journal.visit_batches(self.group(), BatchNumber::ZERO.next(), Order::Ascending, &mut |entry| {
            if let Body::Batch(batch) = &entry.body {
                oldest = Some(OldestBatch { batch: batch.batch, seq: entry.seq, recorded_at: entry.recorded_at });
            }
            ControlFlow::Break(())
        })?;
        Ok(oldest)
    }

    /// The first entry of the group from `from` on, in `order`, that is `wanted`.
    fn find(&self, from: Seq, order: Order, wanted: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, ReadError> {
        let mut found = None;
        self.control.journal.visit_entries(Some(self.group()), from, order, &mut |entry| {
            if !wanted(&entry) {
                return ControlFlow::Continue(());
            }
            found = Some(entry);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}
