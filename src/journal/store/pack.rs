//! Cutting batches into blocks: as many to a block as fit one value.

use super::disk::MAX_SINGLE;
use crate::entry::{Body, Entry};
use crate::journal::codec::{CodecError, block};
use crate::offset::TopicName;

/// A block of this size is not tried again: little more would fit.
pub const FULL: usize = 3900;
/// What a block is aimed at, when its size is guessed.
const AIM: usize = 4020;
/// Guesses before what fits is taken.
const TRIES: usize = 5;

/// About how many bytes a batch takes in a block.
pub fn weight(entry: &Entry) -> usize {
    match &entry.body {
        Body::Batch(batch) => {
            let key = batch.key.as_ref().map_or(0, String::len);
            6 + 3 * batch.ranges.len() + key + 8 * batch.notes.len() + 8 * batch.firsts.len()
        }
        _ => 0,
    }
}

/// Encodes as many of `entries` as fit one value, at least `fitting` (which are known to), at least one (which may
/// be larger than a value); returns how many, and the bytes. `scale` is bytes a [`weight`], learned from each block.
pub fn fit(
    group: u32,
    entries: &[Entry],
    fitting: usize,
    scale: &mut f64,
    topic_id: &dyn Fn(&TopicName) -> Option<u32>,
) -> Result<(usize, Vec<u8>), CodecError> {
    let most = entries.len().min(block::MAX_BATCHES);
    let mut weights = 0.0;
    let guess = entries[..most].iter().take_while(|entry| {
        weights += weight(entry) as f64;
        weights * *scale <= AIM as f64
    });
    let mut count = guess.count().clamp(fitting.max(1), most);
    let (mut fits, mut too_many) = (fitting, most + 1);
    let mut best = None;
    for _ in 0..TRIES {
        let bytes = block::encode(group, &entries[..count], topic_id)?;
        let size = bytes.len();
        let weights: usize = entries[..count].iter().map(weight).sum();
        *scale = size as f64 / weights.max(1) as f64;
        if size <= MAX_SINGLE || count == 1 {
            best = Some((count, bytes));
            fits = count;
            if count == most || size >= FULL {
                break;
            }
        } else {
            too_many = count;
        }
        if fits + 1 >= too_many {
            break;
        }
        count = (count * AIM / size).clamp(fits + 1, too_many - 1);
    }
    match best {
        Some(best) => Ok(best),
        None => {
            let count = fits.max(1);
            Ok((count, block::encode(group, &entries[..count], topic_id)?))
        }
    }
}
