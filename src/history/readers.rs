//! Who read an offset: the batches of all groups, in one order.

use std::collections::VecDeque;

use crate::journal::{Journal, Order, Portion, Question, ReadError, Reading};
use crate::offset::{Group, Offset, Seq, TopicName};

/// Blocks of the history that one page looks at, or one of each group if there are more groups; the page then has a
/// cursor to go on from.
pub const MAX_HEADS: usize = 1_000;

/// Which offset's readers are wanted, and in which order.
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
/// use tidelog::history::{OffsetQuery, readers};
/// use tidelog::journal::Order;
/// use tidelog::offset::Offset;
///
/// commit(500, 542)?;
/// let query = OffsetQuery {
///     topic: "orders".parse()?,
///     partition: 0,
///     offset: Offset::new(517)?,
///     order: Order::Descending,
///     limit: 100,
/// };
/// let page = readers(&control.journal, [loader], &query, None)?;
/// let (group, reading) = &page.readers[0];
/// assert_eq!((group.group(), reading.batch.get()), ("loader", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct OffsetQuery {
    /// The topic, in each of its incarnations.
    pub topic: TopicName,
    /// The partition.
    pub partition: u32,
    /// The offset.
    pub offset: Offset,
    /// Newest or oldest first.
    pub order: Order,
    /// At most so many readers.
    pub limit: usize,
}

/// A part of the readers of an offset.
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
/// use tidelog::history::{OffsetQuery, readers};
/// use tidelog::journal::Order;
///
/// let (topic, offset) = ("orders".parse()?, "542".parse()?);
/// let query = OffsetQuery { topic, partition: 0, offset, order: Order::Ascending, limit: 100 };
/// let page = readers(&control.journal, [loader], &query, None)?;
/// assert!(page.readers.is_empty() && page.next.is_none()); // [500,542) ends before it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ReadersPage {
    /// The batches that read it, each with its group, by seq.
    pub readers: Vec<(Group, Reading)>,
    /// What to give as `after` to go on; none at the end. A page without readers can have one.
    pub next: Option<Seq>,
}

/// The batches of `groups` that read an offset, beyond seq `after`. A batch that was rolled back has read it all the same.
///
/// # Errors
///
/// What the journal's reading says.
pub fn readers(
    journal: &Journal,
    groups: impl IntoIterator<Item = Group>,
    query: &OffsetQuery,
    after: Option<Seq>,
) -> Result<ReadersPage, ReadError> {
    let OffsetQuery { topic, partition, offset, order, limit } = query.clone();
    let from = match order {
        Order::Ascending => after.unwrap_or_default().next(),
        Order::Descending => after.map_or(Seq::MAX, Seq::previous),
    };
    let stream = |group| Stream {
        question: Question { group, topic: topic.clone(), partition, offset, order },
        found: VecDeque::new(),
        next: Some(from).filter(|from| *from > Seq::ZERO),
    };
    let mut streams: Vec<Stream> = groups.into_iter().map(stream).collect();
    let portion = Portion { heads: (MAX_HEADS / streams.len().max(1)).max(1), readings: limit };
    let mut heads_left = MAX_HEADS.max(streams.len());
    let mut page = ReadersPage { readers: Vec::new(), next: None };
    // What comes next is what was found there, or what may still be.
    while let Some((at, stream)) = next_of(&mut streams, order) {
        if stream.found.is_empty() && heads_left > 0 {
            let part = journal.readers(&stream.question, at, portion)?;
            heads_left = heads_left.saturating_sub(part.heads);
            (stream.found, stream.next) = (part.readings.into(), part.next);
        } else if stream.found.is_empty() || page.readers.len() >= limit {
            page.next = Some(match order {
                Order::Ascending => at.previous(),
                Order::Descending => at.next(),
            });
            break;
        } else if let Some(reading) = stream.found.pop_front() {
            page.readers.push((stream.question.group.clone(), reading));
        }
    }
    Ok(page)
}

/// The readers in one group.
struct Stream {
    question: Question,
    /// Those that are known and not in the page yet.
    found: VecDeque<Reading>,
    /// From where on there may be more.
    next: Option<Seq>,
}

/// The stream that goes on first, and where; none if all have ended.
fn next_of(streams: &mut [Stream], order: Order) -> Option<(Seq, &mut Stream)> {
    let place = |stream: &Stream| stream.found.front().map(|reading| reading.seq).or(stream.next);
    let open = streams.iter_mut().filter_map(|stream| Some((place(stream)?, stream)));
    match order {
        Order::Ascending => open.min_by_key(|(at, _)| *at),
        Order::Descending => open.max_by_key(|(at, _)| *at),
    }
}
