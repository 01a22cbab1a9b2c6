//! Pages of a journal's history: filters, limits and cursors over the journal's walks. For every face of tidelog that
//! lists batches, entries or the readers of an offset.

mod readers;

use std::ops::ControlFlow;

pub use self::readers::{MAX_HEADS, OffsetQuery, ReadersPage, readers};
use crate::entry::{Body, Entry};
use crate::journal::{Journal, Order, ReadError};
use crate::offset::{BatchNumber, Group, Seq, Timestamp, TopicName};

/// Entries that one page looks at, so that a filter that nothing passes ends in bounded time; the page then has a
/// cursor to go on from.
pub const MAX_WALK: usize = 100_000;

/// Ranges that one page holds: past it the page ends early, with a cursor. Ten batches of 10,000 partitions.
pub const MAX_PAGE_RANGES: usize = 100_000;

/// Which part of a list.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(|| tidelog::offset::Timestamp::from_millis(1_796_032_800_000));
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let at = tidelog::offset::TopicPartition::new("orders".parse()?, 0);
/// # let mut request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # request.policy.new_group = tidelog::reconcile::NewGroup::Offsets([(at, "500".parse()?)].into());
/// # let started = tidelog::control::start(&control, request)?;
/// # let commit = |from: i64, until: i64| -> Result<_, Box<dyn std::error::Error>> {
/// #     use tidelog::offset::{Offset, OffsetRange, Timestamp};
/// #     let range = OffsetRange::new("orders".parse()?, 0, Offset::new(from)?, Offset::new(until)?)?;
/// #     let time = Timestamp::from_millis(1_796_032_800_000 + from);
/// #     Ok(control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?)
/// # };
/// use tidelog::history::{self, BatchFilter, Window};
/// use tidelog::journal::Order;
///
/// commit(500, 542)?;
/// commit(542, 600)?;
/// let window = Window { order: Order::Descending, from: None, to: None, limit: 1 };
/// let filter = BatchFilter { topic: Some("orders".parse()?), ..BatchFilter::default() };
/// let newest = history::batches(&control.journal, &loader, &window, &filter, None)?;
/// assert_eq!(newest.entries[0].seq.get(), 4);
/// let older = history::batches(&control.journal, &loader, &window, &filter, newest.next)?;
/// assert_eq!((older.entries[0].seq.get(), older.next), (3, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Window {
    /// Newest or oldest first.
    pub order: Order,
    /// Recorded at or after.
    pub from: Option<Timestamp>,
    /// Recorded before.
    pub to: Option<Timestamp>,
    /// At most so many.
    pub limit: usize,
}

/// Which batches of the window; a field that is not set lets all pass.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
/// # control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?;
///
/// use tidelog::history::{BatchFilter, Window, batches};
/// use tidelog::journal::Order;
///
/// let window = Window { order: Order::Ascending, from: None, to: None, limit: 100 };
/// let filter = BatchFilter { topic: Some("orders".parse()?), partition: Some(1), ..BatchFilter::default() };
/// assert!(batches(&control.journal, &loader, &window, &filter, None)?.entries.is_empty()); // it read orders/0
/// let filter = BatchFilter { partition: Some(0), ..filter };
/// assert_eq!(batches(&control.journal, &loader, &window, &filter, None)?.entries.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct BatchFilter {
    /// With a range of this topic.
    pub topic: Option<TopicName>,
    /// With a range of this partition, of the topic if one is set.
    pub partition: Option<u32>,
    /// With a batch time at or after.
    pub batch_from: Option<Timestamp>,
    /// With a batch time before.
    pub batch_to: Option<Timestamp>,
}

impl BatchFilter {
    fn passes(&self, entry: &Entry) -> bool {
        let Body::Batch(batch) = &entry.body else { return false };
        let named = |range: &crate::offset::OffsetRange| {
            self.topic.as_ref().is_none_or(|topic| topic == range.topic())
                && self.partition.is_none_or(|partition| partition == range.partition())
        };
        self.batch_from.is_none_or(|from| batch.batch_time >= from)
            && self.batch_to.is_none_or(|to| batch.batch_time < to)
            && ((self.topic.is_none() && self.partition.is_none()) || batch.ranges.iter().any(named))
    }
}

/// A part of a list.
///
/// ```
/// # let clock: tidelog::journal::Clock = std::sync::Arc::new(tidelog::offset::Timestamp::default);
/// # let dir = tempfile::tempdir()?;
/// # let options = tidelog::journal::Options { create: true, ..tidelog::journal::Options::new(clock.clone()) };
/// # let journal = tidelog::journal::Journal::open(dir.path(), options)?;
/// # let control = tidelog::control::Control::new(journal, None, clock);
/// # let loader = tidelog::offset::Group::new("default", "loader")?;
/// # let request = tidelog::control::StartRequest::new(loader.clone(), vec!["orders".parse()?], "me");
/// # let started = tidelog::control::start(&control, request)?;
/// # let time = tidelog::offset::Timestamp::from_millis(1_796_032_800_000);
/// # let range = tidelog::offset::OffsetRange::new("orders".parse()?, 0, "500".parse()?, "542".parse()?)?;
/// # control.journal.commit(tidelog::commit::Commit::new(loader.clone(), started.epoch, time, vec![range])?)?;
///
/// use tidelog::history::{Window, entries};
/// use tidelog::journal::Order;
///
/// let window = Window { order: Order::Ascending, from: None, to: None, limit: 1 };
/// let first = entries(&control.journal, None, &window, None)?;
/// let second = entries(&control.journal, None, &window, first.next)?;
/// assert_eq!((first.entries[0].body.kind(), second.entries[0].body.kind()), ("started", "batch"));
/// assert_eq!(second.next, None); // that is all
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Page<C> {
    /// Its entries, in order.
    pub entries: Vec<Entry>,
    /// What to give as `after` to go on; none at the end.
    pub next: Option<C>,
}

/// The batches of `group` within the window that pass the filter, beyond batch `after`.
///
/// # Errors
///
/// What the journal's walk says.
pub fn batches(
    journal: &Journal,
    group: &Group,
    window: &Window,
    filter: &BatchFilter,
    after: Option<BatchNumber>,
) -> Result<Page<BatchNumber>, ReadError> {
    // The newest batch that was recorded before `time`; zero before the first.
    let batch_before = |time: Timestamp| -> Result<BatchNumber, ReadError> {
        let Some(seq) = seq_before(journal, Some(group), time)? else { return Ok(BatchNumber::ZERO) };
        let as_of = journal.positions_as_of(group, seq)?;
        Ok(as_of.map_or(BatchNumber::ZERO, |as_of| as_of.positions.batch))
    };
    let start = match window.order {
        Order::Ascending => {
            let first = window.from.map(batch_before).transpose()?.unwrap_or_default();
            first.max(after.unwrap_or_default()).next()
        }
        Order::Descending => {
            let last = window.to.map(batch_before).transpose()?.unwrap_or(BatchNumber::MAX);
            // Below the first there is none: batch 0.
            after.map_or(last, |after| last.min(after.previous()))
        }
    };
    if start == BatchNumber::ZERO {
        return Ok(Page { entries: Vec::new(), next: None });
    }
    let mut collect = Collect::new(
        window,
        |entry: &Entry| filter.passes(entry),
        |entry| match &entry.body {
            Body::Batch(batch) => batch.batch,
            _ => BatchNumber::ZERO,
        },
    );
    journal.visit_batches(group, start, window.order, &mut |entry| collect.visit(entry))?;
    Ok(collect.page)
}

/// The entries of `group`, or of all groups, within the window, beyond seq `after`.
///
/// # Errors
///
/// What the journal's walk says.
pub fn entries(
    journal: &Journal,
    group: Option<&Group>,
    window: &Window,
    after: Option<Seq>,
) -> Result<Page<Seq>, ReadError> {
    let start = match window.order {
        Order::Ascending => {
            let before = match window.from {
                Some(from) => seq_before(journal, group, from)?.unwrap_or_default(),
                None => Seq::ZERO,
            };
            before.max(after.unwrap_or_default()).next()
        }
        Order::Descending => {
            let last = match window.to {
                Some(to) => seq_before(journal, group, to)?.unwrap_or_default(),
                None => Seq::MAX,
            };
            let last = after.map_or(last, |after| last.min(after.previous()));
            if last == Seq::ZERO {
                return Ok(Page { entries: Vec::new(), next: None });
            }
            last
        }
    };
    let mut collect = Collect::new(window, |_: &Entry| true, |entry| entry.seq);
    journal.visit_entries(group, start, window.order, &mut |entry| collect.visit(entry))?;
    Ok(collect.page)
}

/// The last entry that was recorded before `time`.
fn seq_before(journal: &Journal, group: Option<&Group>, time: Timestamp) -> Result<Option<Seq>, ReadError> {
    if time.millis() == 0 {
        return Ok(None);
    }
    journal.seq_at(group, Timestamp::from_millis(time.millis() - 1))
}

/// How many ranges, moves or findings an entry holds: what it takes in memory and on the wire goes by that.
pub fn size(entry: &Entry) -> usize {
    match &entry.body {
        Body::Batch(batch) => batch.ranges.len(),
        Body::Reconciled { findings, correction } | Body::PartitionsAdded { findings, correction } => {
            findings.len() + correction.moves.len()
        }
        Body::RolledBack(rolled_back) => rolled_back.correction.moves.len(),
        Body::Imported { correction, .. } => correction.moves.len(),
        Body::KafkaResult { partitions, .. } => partitions.len(),
        Body::Started { .. }
        | Body::Held { .. }
        | Body::Released { .. }
        | Body::Retired { .. }
        | Body::Mark { .. }
        | Body::LossAcknowledged { .. }
        | Body::Pruned { .. } => 1,
    }
}

/// Fills a page from a walk.
struct Collect<'a, C, P, K> {
    window: &'a Window,
    passes: P,
    cursor: K,
    walked: usize,
    ranges: usize,
    last: Option<C>,
    page: Page<C>,
}

impl<'a, C: Copy, P: Fn(&Entry) -> bool, K: Fn(&Entry) -> C> Collect<'a, C, P, K> {
    fn new(window: &'a Window, passes: P, cursor: K) -> Self {
        Collect {
            window,
            passes,
            cursor,
            walked: 0,
            ranges: 0,
            last: None,
            page: Page { entries: Vec::new(), next: None },
        }
    }

    fn visit(&mut self, entry: Entry) -> ControlFlow<()> {
        // Times never fall from one entry to the next, so the far end of the window ends the walk.
        let beyond = match self.window.order {
            Order::Ascending => self.window.to.is_some_and(|to| entry.recorded_at >= to),
            Order::Descending => self.window.from.is_some_and(|from| entry.recorded_at < from),
        };
        if beyond {
            return ControlFlow::Break(());
        }
        let passes = (self.passes)(&entry);
        let full = self.page.entries.len() == self.window.limit || self.ranges >= MAX_PAGE_RANGES;
        if self.walked == MAX_WALK || (passes && full) {
            self.page.next = self.last;
            return ControlFlow::Break(());
        }
        self.walked += 1;
        self.last = Some((self.cursor)(&entry));
        if passes {
            self.ranges += size(&entry);
            self.page.entries.push(entry);
        }
        ControlFlow::Continue(())
    }
}
