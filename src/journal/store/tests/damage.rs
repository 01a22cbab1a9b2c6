//! Each record flipped, and each record missing: an error, or the right answer.

use std::ops::ControlFlow;
use std::path::Path;

use super::super::{Order, Store, StoreError, StoreOptions};
use super::open;
use super::script::{KEYS, Step, Writer, group, push, puts_of};
use crate::entry::Entry;
use crate::offset::Seq;
use crate::positions::Positions;

/// The database itself, once a handle that was just dropped has let it go.
pub fn raw(dir: &Path) -> sled::Db {
    let begun = std::time::Instant::now();
    loop {
        match sled::Config::new().path(dir).flush_every_ms(None).open() {
            Err(error) if error.to_string().contains("lock") && begun.elapsed().as_secs() < 20 => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            opened => return opened.unwrap(),
        }
    }
}

/// All that the store tells; an error is fine, a wrong answer is not. Whether there was an error.
fn errs(dir: &Path, entries: &[Entry]) -> bool {
    let opened = super::super::open(dir, StoreOptions::default());
    let Ok((store, _sealer)) = opened else {
        return true;
    };
    let found = [visited(&store, entries), as_of(&store, entries), results(&store, entries)]
        .into_iter()
        .flatten()
        .inspect(|error| {
            let text = error.to_string();
            assert!(text.contains("put it back from a copy") && text.contains("db"), "{text}");
        });
    found.count() > 0
}

fn visited(store: &Store, entries: &[Entry]) -> Option<StoreError> {
    let mut found = None;
    for order in [Order::Ascending, Order::Descending] {
        for of in [None, Some(group(0)), Some(group(1))] {
            let mut seen = Vec::new();
            let from = if order == Order::Ascending { Seq::ZERO } else { Seq::MAX };
            let result = store.visit_entries(of.as_ref(), from, order, &mut |entry| {
                seen.push(entry);
                ControlFlow::Continue(())
            });
            let mut expected: Vec<_> = entries.iter().filter(|e| of.is_none() || e.group == of).cloned().collect();
            if order == Order::Descending {
                expected.reverse();
            }
            match result {
                Ok(()) => assert!(seen == expected),
                Err(error) => {
                    assert!(expected.starts_with(&seen));
                    found = Some(error);
                }
            }
        }
    }
    found
}

fn as_of(store: &Store, entries: &[Entry]) -> Option<StoreError> {
    let mut found = None;
    let mut positions = Positions::default();
    for entry in entries.iter().filter(|e| e.group == Some(group(0))) {
        positions.apply(entry);
        match store.positions_as_of(&group(0), entry.seq) {
            Ok(as_of) => assert!(as_of.is_some_and(|as_of| as_of.positions == positions)),
            Err(error) => found = Some(error),
        }
    }
    found
}

fn results(store: &Store, entries: &[Entry]) -> Option<StoreError> {
    let mut found = None;
    for of in [group(0), group(1)] {
        let mut folded = std::collections::BTreeMap::new();
        for entry in entries.iter().filter(|e| e.group.as_ref() == Some(&of)) {
            let puts = puts_of(entry);
            folded.extend(puts.iter().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))));
            for key in KEYS {
                match store.result(&of, key, entry.seq) {
                    Ok(value) => assert_eq!(value, folded.get(key).cloned().flatten()),
                    Err(error) => found = Some(error),
                }
            }
        }
    }
    found
}

#[test]
fn no_damage_is_a_wrong_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::default();
    for i in 0..200u64 {
        let picks = (0..6).map(|p| (p, 0, i * 0x9e37_79b9 % (1 << 40))).collect();
        writer.play(&Step::Commit { group: i as usize % 2, picks, key: true, behind: 0 });
        if i % 40 == 20 {
            writer.play(&Step::Other { group: i as usize / 40 % 2, kind: 3, amount: i });
        }
    }
    writer.play(&Step::Wide { group: 1, partitions: 2000 });
    let (_, mut sealer) = open(dir.path());
    for some in writer.entries.chunks(90) {
        some.iter().for_each(|entry| push(&mut sealer, entry));
        sealer.finish().unwrap();
    }
    drop(sealer);
    let change = |change: &dyn Fn(&sled::Db)| {
        let db = raw(dir.path());
        change(&db);
        db.flush().unwrap();
    };
    let mut records = Vec::new();
    let db = raw(dir.path());
    records.extend(db.iter().map(Result::unwrap));
    drop(db);
    assert!(!errs(dir.path(), &writer.entries));
    let mut kinds = std::collections::BTreeMap::<u8, usize>::new();
    for (key, value) in records {
        let kind = kinds.entry(key[0]).or_default();
        *kind += 1;
        if *kind > 6 {
            continue;
        }
        for at in [0, value.len() / 2, value.len() - 1] {
            let mut flipped = value.to_vec();
            flipped[at] ^= 0x10;
            change(&|db| drop(db.insert(&key, flipped.as_slice()).unwrap()));
            // A snapshot that nobody asked for may be wrong unnoticed; here every seq of group 1 is asked for.
            let needed = key[0] != b'p' || key[4] == 1;
            assert!(errs(dir.path(), &writer.entries) || !needed, "{key:?} flipped at {at}");
        }
        change(&|db| drop(db.remove(&key).unwrap()));
        // Without a snapshot the fold only takes longer.
        assert!(errs(dir.path(), &writer.entries) || key[0] == b'p', "{key:?} removed");
        change(&|db| drop(db.insert(&key, &value).unwrap()));
    }
    assert!(!errs(dir.path(), &writer.entries));
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), *b"bdmpqrsx");
}
