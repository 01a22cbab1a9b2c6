//! A crash at each point of a seal, and at each point of the sweep after it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use super::super::{Sealer, Store, StoreError, StoreOptions};
use super::model::check;
use super::open;
use super::script::{Step, Writer, group, push, steps};
use crate::entry::Entry;

/// Opens with a hook that panics at its call number `at`, counted from 0.
fn open_to_crash(dir: &Path, at: usize) -> Result<(Store, Sealer), StoreError> {
    let calls = AtomicUsize::new(0);
    let crash = move |point: &'static str| {
        if calls.fetch_add(1, Ordering::Relaxed) == at {
            std::panic::panic_any(point);
        }
    };
    super::super::open(dir, StoreOptions { cache_bytes: 0, crash_at: Some(Arc::new(crash)) })
}

/// The point at which `work` crashed; none if it went through.
fn crashed(work: impl FnOnce()) -> Option<&'static str> {
    let panic = catch_unwind(AssertUnwindSafe(work)).err()?;
    Some(panic.downcast_ref::<&'static str>().copied().expect("a panic of the hook"))
}

fn seal(sealer: &mut Sealer, entries: &[Entry]) {
    entries.iter().for_each(|entry| push(sealer, entry));
    sealer.finish().unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &target);
        } else {
            std::fs::copy(file.path(), target).unwrap();
        }
    }
}

#[test]
fn a_seal_or_the_one_before() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&'static str>().is_none_or(|point| !point.contains(": ")) {
            eprintln!("{info}");
        }
    }));
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut script = steps(300..301).new_tree(&mut runner).unwrap().current();
    script.insert(250, Step::Wide { group: 1, partitions: 4000 });
    let mut writer = Writer::default();
    script.iter().for_each(|step| writer.play(step));
    // A new group and a new topic in the seal that is torn.
    writer.commit_one(crate::offset::Group::new("late", "comer").unwrap(), 9);
    let entries = writer.entries;
    let first = entries.len() * 2 / 5;
    let start = tempfile::tempdir().unwrap();
    seal(&mut open(start.path()).1, &entries[..first]);

    let mut points = std::collections::BTreeSet::new();
    for at in 0.. {
        let torn = tempfile::tempdir().unwrap();
        copy(start.path(), torn.path());
        let Some(point) = crashed(|| seal(&mut open_to_crash(torn.path(), at).unwrap().1, &entries[first..])) else {
            break;
        };
        points.insert(point);
        // The sweep crashes in turn, at each of its points, until it goes through.
        for again in 0.. {
            let dir = tempfile::tempdir().unwrap();
            copy(torn.path(), dir.path());
            let point = crashed(|| drop(open_to_crash(dir.path(), again).unwrap()));
            let (store, mut sealer) = open(dir.path());
            let sealed = store.sealed().as_u64() as usize;
            assert!(sealed == first || sealed == entries.len(), "sealed {sealed}");
            assert_eq!(sealed == entries.len(), points.contains("seal: old states"), "{points:?}");
            check_some(&store, &entries[..sealed]);
            if (at + again) % 3 == 2 {
                // What takes the place of the torn seal has no results: none of it may have been left.
                entries[sealed..].iter().for_each(|entry| sealer.push(entry, &[]).unwrap());
                sealer.finish().unwrap();
                store.verify().unwrap();
            } else {
                seal(&mut sealer, &entries[sealed..]);
                check_some(&store, &entries);
            }
            if at % 15 == 0 && again == 0 {
                check(&store, &entries);
            }
            match point {
                Some(point) => points.insert(point),
                None => break,
            };
        }
    }
    let expected = "open: sled, open: sled opened, seal: data, seal: index, seal: names, seal: old states, seal: results, \
                    seal: valid, sweep: data, sweep: index";
    assert_eq!(points.into_iter().collect::<Vec<_>>().join(", "), expected);
}

fn check_some(store: &Store, entries: &[Entry]) {
    store.verify().unwrap();
    let all = super::model::all(store, None, crate::offset::Seq::ZERO, super::super::Order::Ascending);
    assert!(all == entries);
    (0..3).for_each(|number| super::model::check_results(store, entries, &group(number)));
}
