//! Cases C23 and C24: a journal of another version or program, with lost, cut, flipped or older files, is refused with
//! the file's name, or holds all that was acknowledged. Never an empty or a shorter one, never another value.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidelog::commit::Commit;
use tidelog::entry::{Body, Draft, Entry};
use tidelog::journal::{Cut, Journal, OpenError, Options, Order};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicName};

fn open(dir: &Path) -> Result<Journal, OpenError> {
    let mut options = Options::new(Arc::new(|| Timestamp::from_millis(1_764_496_800_000)));
    // Even one who asks for a new journal where there is none is not given one in place of a damaged one.
    (options.create, options.segment_bytes, options.lock_wait) = (true, 16 << 10, Duration::ZERO);
    Journal::open(dir, options)
}

fn start(journal: &Journal) {
    let body = Body::Started { owner: "a".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
    let draft = Draft { group: Some(group()), epoch: Epoch::ZERO.next(), body };
    journal.decide::<(), String>(move |_| Ok((vec![draft], ()))).expect("an entry");
}

fn group() -> Group {
    Group::new("default", "g").expect("a legal name")
}

fn commit(journal: &Journal, from: u64) {
    let offset = |number| Offset::try_from(number).expect("small");
    let topic = TopicName::new("t").expect("a legal name");
    let range = OffsetRange::new(topic, 0, offset(from), offset(from + 7)).expect("a legal range");
    let time = Timestamp::from_millis(1_764_496_800_000);
    journal.commit(Commit::new(group(), Epoch::ZERO.next(), time, vec![range]).expect("legal")).expect("a commit");
}

fn entries(journal: &Journal) -> Vec<Entry> {
    let mut entries = Vec::new();
    let visited = journal.visit_entries(None, Seq::ZERO, Order::Ascending, &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    });
    visited.expect("a read");
    entries
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}

/// The files of a journal, below its directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found.into_iter().map(|path| path.strip_prefix(dir).expect("below it").to_owned()).collect()
}

/// What is done to one file.
type Harm<'a> = &'a dyn Fn(&Path);

/// A place for damaged copies of one journal.
struct Copies {
    root: tempfile::TempDir,
    whole: Vec<Entry>,
}

/// What became of a damaged copy.
#[derive(Debug)]
enum Opened {
    Refused(OpenError),
    Holds(Vec<Entry>, Option<Cut>),
}

impl Copies {
    /// Of a journal with sealed entries and more in its log. Its last copy is that of a running one.
    fn new() -> Copies {
        let root = tempfile::tempdir().expect("a temporary directory");
        let dir = root.path().join("journal");
        let journal = open(&dir).expect("a new journal");
        start(&journal);
        commit(&journal, 0);
        journal.close().expect("a clean close");
        copy(&dir, &root.path().join("older"));
        let journal = open(&dir).expect("the same journal");
        (1..4).for_each(|number| commit(&journal, number * 7));
        journal.close().expect("a clean close");
        copy(&dir, &root.path().join("closed"));
        let journal = open(&dir).expect("the same journal");
        (4..6).for_each(|number| commit(&journal, number * 7));
        copy(&dir, &root.path().join("running"));
        Copies { whole: entries(&journal), root }
    }

    fn path(&self, which: &str) -> PathBuf {
        self.root.path().join(which)
    }

    /// Opens a copy after `damage` was done to it.
    fn open(&self, which: &str, damage: impl FnOnce(&Path)) -> Opened {
        let dir = tempfile::tempdir().expect("a temporary directory");
        copy(&self.path(which), dir.path());
        damage(dir.path());
        match open(dir.path()) {
            Ok(journal) => Opened::Holds(entries(&journal), journal.cut().cloned()),
            Err(error) => Opened::Refused(error),
        }
    }

    /// Refused, or whole; of a running one the very last group may be cut, if that is said.
    #[track_caller]
    fn is_right(&self, which: &str, what: &str, opened: &Opened) {
        let whole = if which == "closed" { &self.whole[..self.whole.len() - 2] } else { &self.whole[..] };
        match opened {
            Opened::Refused(error) => {
                let text = error.to_string();
                assert!(text.contains('/'), "{which}, {what}: no file is named: {text}");
            }
            Opened::Holds(held, cut) => {
                let torn = which == "running" && cut.is_some() && *held == whole[..whole.len() - 1];
                assert!(*held == whole || torn, "{which}, {what}: {} of {} entries, {cut:?}", held.len(), whole.len());
            }
        }
    }
}

#[test]
fn c23_another_version_another_program_no_marker() {
    let copies = Copies::new();
    let text = fs::read_to_string(copies.path("closed").join("FORMAT")).expect("a marker");
    let write = |text: String| move |dir: &Path| fs::write(dir.join("FORMAT"), text).expect("a file");
    let check = |opened: Opened, expected: &str| match opened {
        Opened::Refused(error) => assert!(error.to_string().contains(expected), "{error}"),
        Opened::Holds(held, _) => panic!("opened with {} entries, not refused: {expected}", held.len()),
    };
    for which in ["closed", "running"] {
        let newer = copies.open(which, write(text.replace("format 1", "format 2")));
        check(newer, "it has format 2, this program reads format 1");
        check(copies.open(which, write("PostgreSQL 17\n".into())), "does not begin with \"tidelog journal\"");
        check(copies.open(which, write(String::new())), "does not begin with");
        check(copies.open(which, |dir| fs::remove_file(dir.join("FORMAT")).expect("a file")), "it has no file FORMAT");
        for part in ["wal", "sled"] {
            let lost = copies.open(which, |dir| fs::remove_dir_all(dir.join(part)).expect("a directory"));
            check(lost, &format!("/{part}: it is missing"));
        }
    }
}

#[test]
fn c23_any_one_file_lost_cut_or_older_is_refused_or_the_journal_is_whole() {
    let copies = Copies::new();
    let mut refused = 0;
    for which in ["closed", "running"] {
        for file in files(&copies.path(which)) {
            let older = copies.path("older").join(&file);
            let damages: [(&str, Harm<'_>); 6] = [
                ("lost", &|path| fs::remove_file(path).expect("a file")),
                ("empty", &|path| fs::write(path, "").expect("a file")),
                ("half", &|path| set_len(path, |len| len / 2)),
                ("a byte less", &|path| set_len(path, |len| len.saturating_sub(1))),
                ("trailing bytes", &|path| append(path, &[0xA5; 64])),
                ("older", &|path| drop(fs::copy(&older, path))),
            ];
            for (damage, harm) in damages {
                let opened = copies.open(which, |dir| harm(&dir.join(&file)));
                copies.is_right(which, &format!("{} {damage}", file.display()), &opened);
                refused += usize::from(matches!(opened, Opened::Refused(_)));
            }
        }
        for part in ["wal", "sled"] {
            let opened = copies.open(which, |dir| {
                fs::remove_dir_all(dir.join(part)).expect("a directory");
                copy(&copies.path("older").join(part), &dir.join(part));
            });
            assert!(matches!(opened, Opened::Refused(_)), "{which}, an older {part}: {opened:?}");
        }
        let emptied = copies.open(which, |dir| {
            fs::remove_dir_all(dir.join("sled")).expect("a directory");
            fs::create_dir(dir.join("sled")).expect("a directory");
        });
        assert!(matches!(emptied, Opened::Refused(_)), "{which}, an empty sled: {emptied:?}");
    }
    assert!(refused > 20, "only {refused} damages were found");
}

fn set_len(path: &Path, change: impl Fn(u64) -> u64) {
    let len = fs::metadata(path).expect("a file").len();
    fs::OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(change(len))).expect("a file");
}

fn append(path: &Path, more: &[u8]) {
    let bytes = fs::read(path).expect("a file");
    fs::write(path, [&bytes, more].concat()).expect("a file");
}

#[test]
fn c24_a_flip_of_any_byte_of_the_log_is_refused_or_cut_from_its_end() {
    let copies = Copies::new();
    let mut told = [0usize; 3];
    for which in ["closed", "running"] {
        let segments = files(&copies.path(which)).into_iter().filter(|file| file.starts_with("wal"));
        for segment in segments {
            let bytes = fs::read(copies.path(which).join(&segment)).expect("a segment");
            // Zeros are what is not written yet.
            for at in (0..bytes.len()).filter(|at| bytes[*at] != 0) {
                let opened = copies.open(which, |dir| {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << (at % 8);
                    fs::write(dir.join(&segment), flipped).expect("a file");
                });
                copies.is_right(which, &format!("byte {at} of {}", segment.display()), &opened);
                told[match opened {
                    Opened::Refused(_) => 0,
                    Opened::Holds(_, Some(_)) => 1,
                    Opened::Holds(_, None) => 2,
                }] += 1;
            }
        }
    }
    let [refused, cut, whole] = told;
    assert!(refused > 50 && cut > 10, "{refused} refused, {cut} cut, {whole} whole");
}

#[test]
fn c24_a_length_of_two_to_the_62_asks_for_no_memory() {
    let copies = Copies::new();
    let segment = files(&copies.path("running")).into_iter().rfind(|file| file.starts_with("wal"));
    let segment = segment.expect("a segment");
    for at in [64usize, 4096, 4608, 8192, 8196, 8224, 8232] {
        for length in [(1u64 << 62).to_le_bytes(), u64::MAX.to_le_bytes(), (1u64 << 31).to_le_bytes()] {
            let opened = copies.open("running", |dir| {
                let mut bytes = fs::read(dir.join(&segment)).expect("a segment");
                bytes[at..at + 8].copy_from_slice(&length);
                fs::write(dir.join(&segment), bytes).expect("a file");
            });
            copies.is_right("running", &format!("a length at byte {at}"), &opened);
        }
    }
}
