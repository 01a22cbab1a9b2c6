//! Cuts what is read into batches: contiguous ranges, up to where reading has come, markers and aborted records included.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use super::Cut;
use super::batch::Records;
use crate::kafka::raw::{Handle, Message};
use crate::offset::{Offset, OffsetRange, TopicId, TopicName, TopicPartition};
use crate::reconcile::StartPosition;

/// A record below the planned start was delivered: a bug in the client, or a lie of the broker.
#[derive(Debug)]
pub(super) struct BelowPlan {
    pub(super) at: TopicPartition,
    pub(super) planned: Offset,
    pub(super) delivered: i64,
}

struct Place {
    topic_id: Option<TopicId>,
    /// Where the next range begins: the end of the one before.
    from: Offset,
    /// What is read next.
    next: Offset,
    replaying_until: Option<Offset>,
    /// It has no position on the broker: it waits for a look.
    stalled: bool,
}

/// What is being read. The order of the fields matters: messages go before their client.
pub(super) struct Cutter {
    kept: Vec<(Message, u32)>,
    cut: Cut,
    names: Arc<Vec<TopicPartition>>,
    places: Vec<Place>,
    by_name: HashMap<TopicPartition, u32>,
    /// librdkafka's own names for them, good until something is assigned or unassigned.
    by_pointer: HashMap<(usize, i32), u32>,
    newest: Option<((usize, i32), u32)>,
    bytes: usize,
    /// Since when there is something to commit.
    since: Option<Instant>,
    handle: Arc<Handle>,
}

impl Cutter {
    pub(super) fn new(cut: Cut, handle: Arc<Handle>) -> Cutter {
        Cutter {
            kept: Vec::new(),
            cut,
            names: Arc::default(),
            places: Vec::new(),
            by_name: HashMap::new(),
            by_pointer: HashMap::new(),
            newest: None,
            bytes: 0,
            since: None,
            handle,
        }
    }

    /// Forgets everything and begins here.
    pub(super) fn restart(&mut self, starts: &[StartPosition]) {
        *self = Cutter::new(self.cut, Arc::clone(&self.handle));
        for start in starts {
            self.begin(start);
        }
    }

    /// Begins a partition here, or sets one anew; what was cut of it stays.
    pub(super) fn begin(&mut self, start: &StartPosition) {
        let place = Place {
            topic_id: start.topic_id,
            from: start.offset,
            next: start.offset,
            replaying_until: start.replaying_until,
            stalled: false,
        };
        self.by_pointer.clear();
        self.newest = None;
        match self.by_name.get(&start.at) {
            Some(index) => self.places[*index as usize] = place,
            None => {
                self.by_name.insert(start.at.clone(), u32::try_from(self.places.len()).unwrap_or(u32::MAX));
                Arc::make_mut(&mut self.names).push(start.at.clone());
                self.places.push(place);
            }
        }
    }

    /// What is read next of a partition that is assigned.
    pub(super) fn next(&self, at: &TopicPartition) -> Option<Offset> {
        self.by_name.get(at).map(|index| self.places[*index as usize].next)
    }

    /// The partitions.
    pub(super) fn assigned(&self) -> BTreeSet<TopicPartition> {
        self.by_name.keys().cloned().collect()
    }

    /// Those that wait for a look, with where reading had come.
    pub(super) fn stalled(&self) -> Vec<(TopicPartition, Offset)> {
        let stalled = self.places.iter().zip(self.names.iter()).filter(|(place, _)| place.stalled);
        stalled.map(|(place, at)| (at.clone(), place.next)).collect()
    }

    /// Goes on with a stalled partition where it was.
    pub(super) fn resume(&mut self, at: &TopicPartition) {
        self.by_pointer.clear();
        self.newest = None;
        if let Some(index) = self.by_name.get(at) {
            self.places[*index as usize].stalled = false;
        }
    }

    /// The partition of a message; none for one that is not read any more.
    fn place(&mut self, message: &Message) -> Option<u32> {
        let pointer = message.place();
        if let Some((newest, index)) = self.newest
            && newest == pointer
        {
            return Some(index);
        }
        let index = match self.by_pointer.get(&pointer) {
            Some(index) => *index,
            None => {
                let topic = TopicName::new(message.topic()).ok()?;
                let at = TopicPartition::new(topic, u32::try_from(pointer.1).ok()?);
                let index = *self.by_name.get(&at)?;
                self.by_pointer.insert(pointer, index);
                index
            }
        };
        self.newest = Some((pointer, index));
        Some(index)
    }

    /// Takes a record in.
    pub(super) fn record(&mut self, message: Message) -> Result<(), BelowPlan> {
        let Some(index) = self.place(&message) else { return Ok(()) };
        let place = &mut self.places[index as usize];
        match Offset::new(message.offset()) {
            Ok(offset) if offset >= place.next => place.next = offset.next(),
            _ => {
                let at = self.names[index as usize].clone();
                return Err(BelowPlan { at, planned: place.next, delivered: message.offset() });
            }
        }
        self.bytes = self.bytes.saturating_add(message.size());
        self.kept.push((message, index));
        self.since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// All below the message's offset is read.
    pub(super) fn end(&mut self, message: &Message) -> Option<TopicPartition> {
        let index = self.place(message)?;
        let place = &mut self.places[index as usize];
        if let Ok(end) = Offset::new(message.offset())
            && end > place.next
        {
            place.next = end;
            self.since.get_or_insert_with(Instant::now);
        }
        Some(self.names[index as usize].clone())
    }

    /// The partition stopped.
    pub(super) fn stall(&mut self, message: &Message) -> Option<TopicPartition> {
        let index = self.place(message)?;
        self.places[index as usize].stalled = true;
        Some(self.names[index as usize].clone())
    }

    /// How many more records fit.
    pub(super) fn room(&self) -> usize {
        self.cut.max_records.get().saturating_sub(self.kept.len())
    }

    /// Whether a batch is to be cut now: full, or old enough.
    pub(super) fn is_due(&self) -> bool {
        self.is_full() || self.since.is_some_and(|since| since.elapsed() >= self.cut.max_wait)
    }

    /// Whether no more fits.
    pub(super) fn is_full(&self) -> bool {
        self.room() == 0 || self.bytes >= self.cut.max_bytes.get()
    }

    /// Whether there are records, in contrast to markers alone.
    pub(super) fn has_records(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Cuts: all that was taken in since the last time.
    pub(super) fn take(&mut self) -> Taken {
        let mut taken = Taken {
            records: Records {
                kept: std::mem::take(&mut self.kept),
                names: Arc::clone(&self.names),
                unpacking: Default::default(),
                _handle: Some(Arc::clone(&self.handle)),
            },
            ..Taken::default()
        };
        for (place, at) in self.places.iter_mut().zip(self.names.iter()) {
            if place.from == place.next {
                continue;
            }
            let range = OffsetRange::new(at.topic.clone(), at.partition, place.from, place.next);
            taken.ranges.push(range.expect("reading only goes forward"));
            taken.replaying |= place.replaying_until.is_some_and(|until| place.from < until);
            if let Some(id) = place.topic_id {
                taken.topic_ids.entry(at.topic.clone()).or_insert(id);
            }
            place.from = place.next;
        }
        taken.ranges.sort_unstable_by(|a, b| (a.topic(), a.partition()).cmp(&(b.topic(), b.partition())));
        (self.bytes, self.since) = (0, None);
        taken
    }

    /// Takes ranges without records back, which were cut last and not committed: the next cut has them again.
    pub(super) fn give_back(&mut self, ranges: &[OffsetRange]) {
        for range in ranges {
            if let Some(index) = self.by_name.get(&range.topic_partition()) {
                self.places[*index as usize].from = range.from_offset();
            }
        }
        self.since.get_or_insert_with(Instant::now);
    }
}

/// What was cut.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) ranges: Vec<OffsetRange>,
    pub(super) topic_ids: BTreeMap<TopicName, TopicId>,
    pub(super) replaying: bool,
    pub(super) records: Records,
}
