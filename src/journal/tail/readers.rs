//! Which of the unsealed batches read an offset. Only a stretch that may hold one is decoded.

use std::collections::HashMap;
use std::ops::Range;

use super::{Tail, seq};
use crate::entry::{Body, Entry};
use crate::journal::Order;
use crate::journal::codec::CodecError;
use crate::journal::store::{Portion, Question, Readings};
use crate::offset::{Offset, Seq, TopicPartition};

/// Entries of a group in a segment, from one snapshot of its positions to the next, and what they read.
#[derive(Debug)]
pub struct Stretch {
    /// Where they stand among the group's slots: never empty, once one was pushed.
    slots: Range<usize>,
    /// The lowest `from_offset` and the highest `until_offset`, by partition.
    spans: HashMap<TopicPartition, (Offset, Offset)>,
}

impl Stretch {
    /// An empty one after so many slots.
    pub fn after(slots: usize) -> Stretch {
        Stretch { slots: slots..slots, spans: HashMap::new() }
    }

    /// Takes in the group's next entry.
    pub fn push(&mut self, entry: &Entry) {
        self.slots.end += 1;
        let Body::Batch(batch) = &entry.body else { return };
        for range in &batch.ranges {
            let (from, until) = (range.from_offset(), range.until_offset());
            let span = self.spans.entry(range.topic_partition()).or_insert((from, until));
            *span = (span.0.min(from), span.1.max(until));
        }
    }
}

impl Tail {
    /// Adds the unsealed batches that read the offset, from seq `from` on (or back), to what was found so far: until that
    /// is enough, or one stretch was decoded, as the writer waits meanwhile.
    pub fn readers(
        &self,
        question: &Question,
        from: Seq,
        portion: Portion,
        found: &mut Readings,
    ) -> Result<(), CodecError> {
        let at = TopicPartition::new(question.topic.clone(), question.partition);
        let segments = in_order(self.segments.iter(), question.order);
        let stretches = segments.filter_map(|segment| Some((segment, segment.of_group(&question.group)?)));
        let stretches = stretches.flat_map(|(segment, of_group)| {
            in_order(of_group.stretches.iter(), question.order).map(move |stretch| (segment, of_group, stretch))
        });
        found.next = None;
        let mut decoded = false;
        for (segment, of_group, Stretch { slots, spans }) in stretches {
            let seq_of = |slot: usize| seq(segment.first + u64::from(of_group.slots[slot]));
            let (oldest, newest) = (seq_of(slots.start), seq_of(slots.end - 1));
            let near = match question.order {
                Order::Ascending if newest < from => continue,
                Order::Descending if oldest > from => continue,
                Order::Ascending => from.max(oldest),
                Order::Descending => from.min(newest),
            };
            if decoded || found.is_enough(portion) {
                found.next = Some(near);
                return Ok(());
            }
            found.heads += 1;
            if spans.get(&at).is_some_and(|(low, high)| (*low..*high).contains(&question.offset)) {
                decoded = true;
                for slot in in_order(of_group.slots[slots.clone()].iter(), question.order) {
                    let entry = segment.entry(*slot as usize)?;
                    if question.reached(entry.seq, from) {
                        found.readings.extend(question.answer(entry));
                    }
                }
            }
        }
        Ok(())
    }
}

fn in_order<'a, T: 'a>(
    items: impl DoubleEndedIterator<Item = T> + 'a,
    order: Order,
) -> Box<dyn Iterator<Item = T> + 'a> {
    match order {
        Order::Ascending => Box::new(items),
        Order::Descending => Box::new(items.rev()),
    }
}
