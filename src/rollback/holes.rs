//! The holes of a partition that moves.

use super::Meaning;
use super::step::find;
use crate::entry::Hole;
use crate::offset::{Offset, TopicPartition};
use crate::positions::{PartitionState, holes};

/// The holes open afterwards: those open at the target are open again, below `start`. One that is open now stays open,
/// as it came up when the offsets were read once more.
pub fn open_at(meaning: &Meaning, at: &TopicPartition, now: &PartitionState, start: Offset) -> Vec<Hole> {
    let mut open = match meaning {
        Meaning::AsOf { positions: then, .. } => {
            let then = then.get(&at.topic, at.partition).map(|then| then.holes.as_slice()).unwrap_or_default();
            let mut open = less(&now.holes, then);
            open.extend_from_slice(then);
            open.sort_unstable_by_key(|hole| hole.from_offset);
            open
        }
        Meaning::Undo { moves, before, .. } => {
            let went_on = find(moves, at).is_some_and(|undone| undone.new != Some(now.position));
            match before.get(&at.topic, at.partition) {
                Some(then) if start != now.position || !went_on => then.holes.clone(),
                _ => now.holes.clone(),
            }
        }
        Meaning::Present
        | Meaning::Earliest
        | Meaning::Latest
        | Meaning::Offset(_)
        | Meaning::Shift(_)
        | Meaning::RecordTime(_)
        | Meaning::Offsets(_) => now.holes.clone(),
    };
    holes::cut(&mut open, start, Offset::MAX);
    open
}

/// What of `holes` is not in `others`.
pub fn less(holes: &[Hole], others: &[Hole]) -> Vec<Hole> {
    let mut left = holes.to_vec();
    for other in others {
        holes::cut(&mut left, other.from_offset, other.until_offset);
    }
    left
}
