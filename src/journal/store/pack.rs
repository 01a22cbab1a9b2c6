//! Cutting batches into blocks: as many to a block as fit one value.

use super::disk::MAX_SINGLE;
use crate::entry::{Body, Entry};
use crate::journal::codec::CodecError;
use crate::journal::codec::block::{self, Around};

/// A block of this size is not tried again: little more would fit.
pub const FULL: usize = 3900;
/// What a block is aimed at, when its size is guessed.
const AIM: usize = 4020;
/// Guesses before what fits is taken.
const TRIES: usize = 5;

/// Batches of a block whose batches don't fit a value each: what only the first of a block has to say of each partition
/// is then said once for all of them.
pub const WIDE: usize = 4;

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

/// A block's worth of batches.
pub struct Fitted {
    /// How many.
    pub count: usize,
    /// The block.
    pub bytes: Vec<u8>,
}

/// Encodes as many of `entries` as fit one value, at least `fitting` (which are known to). Where not even one fits, up to
/// [`WIDE`] share a block of several values. `scale` is bytes a [`weight`], learned from each block.
pub fn fit(
    group: u32,
    entries: &[Entry],
    fitting: usize,
    scale: &mut f64,
    around: Around<'_>,
) -> Result<Fitted, CodecError> {
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
        let bytes = block::encode(group, &entries[..count], around)?;
        let size = bytes.len();
        let weights: usize = entries[..count].iter().map(weight).sum();
        *scale = size as f64 / weights.max(1) as f64;
        if size <= MAX_SINGLE {
            best = Some(Fitted { count, bytes });
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
    if let Some(best) = best {
        return Ok(best);
    }
    // Nothing that was tried fits: what is known to, or wide batches.
    let wide = entries[..most].iter().take(WIDE).take_while(|entry| weight(entry) as f64 * *scale > AIM as f64).count();
    let count = if fits > 0 { fits } else { wide.max(1) };
    Ok(Fitted { count, bytes: block::encode(group, &entries[..count], around)? })
}
