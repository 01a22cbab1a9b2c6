//! Killed at each place where a journal writes, each time that it comes there.
//!
//! A first run without a kill tells which places there are, and how often each is come to; then a child is killed at
//! each of them in turn, and the whole contents are compared with the fold of what was acknowledged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tidelog::journal::Journal;

use super::{DIR, Point, Said, check, child, options, run};

/// Enough for two wide batches, several rotations and seals with old states to remove, a topic that is made again, a
/// rollback, and a seal at the close.
const ENTRIES: u64 = 52;
/// Children at once.
const WORKERS: usize = 3;

/// Each time that the children of a run came to a place, one point.
fn each_time(said: &Said) -> Vec<Point> {
    let each = |point: &Point| {
        let name = point.name.clone();
        (1..=point.nth).map(move |nth| Point { name: name.clone(), nth }).collect::<Vec<_>>()
    };
    said.passed.iter().flat_map(each).collect()
}

/// How many children were killed at each place; those that came to their end before are not counted.
#[derive(Default)]
struct Kills(Mutex<BTreeMap<String, u32>>);

impl Kills {
    /// Runs a child for each point in `dir`s that `begin` makes, killed there, and checks what it left.
    fn at_each(&self, test: &str, points: &[Point], entries: u64, begin: &(dyn Fn(&Path) -> u64 + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let dir = tempfile::tempdir().expect("a temporary directory");
                        let before = begin(dir.path());
                        let said = run(test, dir.path(), Some(point), entries);
                        check(dir.path(), said.acknowledged.max(before), &format!("killed at {point}"));
                        if !said.done {
                            *self.0.lock().expect("no panic").entry(point.name.clone()).or_default() += 1;
                        }
                    }
                });
            }
        });
    }

    fn count(&self) -> u32 {
        self.0.lock().expect("no panic").values().sum()
    }

    /// Most points of `wanted` were come to: which thread is first differs from run to run, a few may be missed.
    fn covers(&self, before: u32, wanted: &[Point]) {
        let killed = self.count() - before;
        assert!(killed as usize >= wanted.len() - wanted.len() / 20, "{killed} kills at {} points", wanted.len());
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for file in std::fs::read_dir(from).expect("a directory").map(|file| file.expect("a file")) {
        let target = to.join(file.file_name());
        match file.file_type().expect("a type").is_dir() {
            true => copy(&file.path(), &target),
            false => drop(std::fs::copy(file.path(), &target).expect("a copy")),
        }
    }
}

#[test]
fn each_write_of_a_journal_is_a_kill_point() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::points::each_write_of_a_journal_is_a_kill_point";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let whole = run(TEST, dir.path(), None, ENTRIES);
    check(dir.path(), ENTRIES, "not killed");
    let kills = Kills::default();

    // From nothing to a closed journal.
    let points = each_time(&whole);
    kills.at_each(TEST, &points, ENTRIES, &|_| 0);
    kills.covers(0, &points);

    // What is left is opened, and closed again: a torn log, a half-made segment, a seal that was not finished.
    let middle = |name: &str| {
        let passed = whole.passed.iter().find(|point| point.name == name);
        Point { name: name.to_owned(), nth: passed.unwrap_or_else(|| panic!("{name} is no place")).nth.div_ceil(2) }
    };
    let torn = [
        "create: marked",
        "wal-write-half",
        "wal-rotate-closed",
        "seal: names",
        "seal: results",
        "seal: data",
        "seal: valid",
        "seal: old states",
        "seal: archive",
        "wal-remove",
    ];
    for name in torn {
        let first = tempfile::tempdir().expect("a temporary directory");
        let left = run(TEST, first.path(), Some(&middle(name)), ENTRIES);
        assert!(!left.done, "not killed at {name}");
        let again = tempfile::tempdir().expect("a temporary directory");
        copy(first.path(), again.path());
        let points = each_time(&run(TEST, again.path(), None, 0));
        let before = kills.count();
        kills.at_each(TEST, &points, 0, &|dir| {
            copy(first.path(), dir);
            left.acknowledged
        });
        kills.covers(before, &points);
    }

    let killed = kills.0.into_inner().expect("no panic");
    println!("killed {} times: {killed:?}", killed.values().sum::<u32>());
    let parts = [
        "create: ",
        "open: ",
        "seal: index",
        "seal: names",
        "seal: results",
        "seal: data",
        "seal: valid",
        "seal: old states",
        "seal: archive",
        "sweep: data",
        "sweep: index",
        "wal-write",
        "wal-sync",
        "wal-recover",
        "wal-prepare",
        "wal-rotate",
        "wal-remove",
        "wal-idle",
    ];
    for part in parts {
        let times: u32 = killed.iter().filter(|(name, _)| name.starts_with(part)).map(|(_, times)| times).sum();
        assert!(times > 0, "never killed at {part:?}, only at {killed:?}");
    }
}

#[test]
fn a_seal_without_its_last_step_comes_to_it_again_before_the_log_lets_go() {
    if let Some(dir) = std::env::var_os(DIR) {
        return child(Path::new(&dir));
    }
    const TEST: &str = "crash::points::a_seal_without_its_last_step_comes_to_it_again_before_the_log_lets_go";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let point = Point { name: "seal: archive".to_owned(), nth: 1 };
    let left = run(TEST, dir.path(), Some(&point), ENTRIES);
    assert!(!left.done && left.acknowledged > 0);
    let log = |dir: &Path| std::fs::read_dir(dir.join("wal")).expect("the log").count();
    let segments = log(dir.path());

    let passed = Arc::new(Mutex::new(Vec::new()));
    let (told, mut options) = (Arc::clone(&passed), options());
    options.crash_at = Some(Arc::new(move |name| told.lock().expect("no panic").push(name)));
    let journal = Journal::open(dir.path(), options).expect("it opens");
    journal.close().expect("a clean close");
    let passed = passed.lock().expect("no panic").clone();
    let first = |name: &str| passed.iter().position(|passed| *passed == name).expect("it came there");
    assert!(first("seal: archive") < first("wal-remove"), "{passed:?}");
    // Its entries were in the store already: the step alone was left.
    assert!(first("seal: archive") < first("seal: valid"), "{passed:?}");
    assert!(log(dir.path()) < segments);
    check(dir.path(), left.acknowledged, "opened again");
}
