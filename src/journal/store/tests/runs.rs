//! Runs of results: few, whatever the size of seals; and one that can't be read.

use super::super::keys;
use super::damage::raw;
use super::open;
use super::script::{Step, Writer, group};
use crate::journal::codec::puts;
use crate::offset::Seq;
use crate::results::Puts;

/// The next batch of group 0, with what `put` adds.
fn commit(writer: &mut Writer, sealer: &mut super::Sealer, put: impl Fn(Seq, &mut Puts)) -> Seq {
    let known = writer.entries.len();
    writer.play(&Step::Commit { group: 0, picks: vec![(0, 0, 10)], key: false, behind: 0 });
    // The first one comes after a start.
    let (batch, others) = writer.entries[known..].split_last().unwrap();
    others.iter().for_each(|entry| sealer.push(entry, &[]).unwrap());
    let mut puts = Puts::new();
    put(batch.seq, &mut puts);
    sealer.push(batch, &puts::encode(&puts)).unwrap();
    batch.seq
}

/// The same in a seal of its own, with as many results.
fn seal(writer: &mut Writer, sealer: &mut super::Sealer, results: usize) -> Seq {
    let seq = commit(writer, sealer, |seq, puts| {
        (0..results).for_each(|number| puts.put(key(number), seq.to_string()).unwrap());
    });
    sealer.finish().unwrap();
    seq
}

fn key(number: usize) -> String {
    format!("{:08x}", number * 7919)
}

/// How many results each run has, the oldest first.
fn runs(store: &super::Store) -> Vec<u64> {
    store.0.published().runs.values().flat_map(|runs| runs.iter().map(|run| run.puts)).collect()
}

#[test]
fn small_runs_are_taken_into_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, (store, mut sealer)) = (Writer::default(), open(dir.path()));
    for n in 1..=40 {
        seal(&mut writer, &mut sealer, 10);
        let runs = runs(&store);
        assert_eq!(runs.iter().sum::<u64>(), n * 10);
        assert!(runs.windows(2).all(|two| two[0] >= 2 * two[1]), "{runs:?}");
    }
    seal(&mut writer, &mut sealer, 500);
    assert_eq!(runs(&store), [900]);
    store.verify().unwrap();
    // What was taken in is gone from the disk too.
    drop((store, sealer));
    let listed = raw(dir.path()).scan_prefix(b"r").keys().map(|key| keys::run_of(&key.unwrap()).unwrap());
    let mut listed: Vec<_> = listed.collect();
    listed.dedup();
    assert_eq!(listed.len(), 1);
}

#[test]
fn a_run_that_cannot_be_read_stops_no_seal() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, (store, mut sealer)) = (Writer::default(), open(dir.path()));
    seal(&mut writer, &mut sealer, 1_000);
    drop((store, sealer));
    let db = raw(dir.path());
    let middle = db.scan_prefix(b"r").keys().nth(2).unwrap().unwrap();
    db.remove(middle).unwrap();
    db.flush().unwrap();
    drop(db);
    let (store, mut sealer) = open(dir.path());
    let newest = seal(&mut writer, &mut sealer, 900);
    assert_eq!(runs(&store), [1_000, 900]);
    let text = newest.to_string().into_bytes();
    assert_eq!(store.result(&group(0), key(899).as_bytes(), Seq::MAX).unwrap(), Some(text));
    let before = Seq::try_from(newest.as_u64() - 1).unwrap();
    let read = |number| store.result(&group(0), key(number).as_bytes(), before);
    let read = (0..1_000).map(read).collect::<Vec<_>>();
    let failed = read.iter().filter(|read| read.is_err()).count();
    assert!((1..500).contains(&failed), "{failed}");
    assert!(read.iter().flatten().all(Option::is_some));
    assert!(store.verify().is_err());
}

#[test]
fn a_key_of_many_versions_is_read_as_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let (mut writer, (store, mut sealer)) = (Writer::default(), open(dir.path()));
    let value = |seq: Seq| format!("{seq} {}", "x".repeat(seq.as_u64() as usize % 90));
    let mut put: Vec<(Seq, &str)> = Vec::new();
    for n in 0..600 {
        let other = if n % 2 == 0 { "a" } else { "c" };
        let seq = commit(&mut writer, &mut sealer, |seq, puts| {
            puts.put("b", value(seq)).unwrap();
            puts.put(other, value(seq)).unwrap();
        });
        put.push((seq, other));
        if n % 100 == 50 {
            sealer.finish().unwrap();
        }
    }
    sealer.finish().unwrap();
    let mut walk = store.results(&group(0), b"").unwrap();
    for key in ["a", "b", "c"] {
        assert_eq!(walk.key(), Some(key.as_bytes()));
        let mut newest = None;
        for (seq, other) in &put {
            if key == "b" || key == *other {
                newest = Some(value(*seq).into_bytes());
            }
            assert_eq!(store.result(&group(0), key.as_bytes(), *seq).unwrap(), newest, "{key} as of {seq}");
            assert_eq!(walk.value(*seq).unwrap(), newest, "{key} as of {seq}");
        }
        walk.advance().unwrap();
    }
    assert_eq!(walk.key(), None);
}
