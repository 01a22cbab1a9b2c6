//! A sealed journal of a million batches: bytes a range on disk, time and memory of an open, positions as of a random
//! batch, a page of the newest 100 batches, and who read a random offset: all of them, over as many pages as that takes.
//!
//!     cargo bench --no-default-features --bench history [-- BATCHES RANGES]      (default: 1000000 of 12, then of 1)

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use tidelog::commit::Commit;
use tidelog::entry::{Body, Draft};
use tidelog::history::{OffsetQuery, readers};
use tidelog::journal::{Durability, Journal, Options, Order};
use tidelog::offset::{BatchNumber, Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicName};

/// A generator of numbers good enough for sizes of batches, so that each run writes the same.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(since.as_millis() as i64)
}

fn open(dir: &Path) -> Journal {
    let mut options = Options::new(Arc::new(now));
    // Durability is the other benchmark's subject; the bytes are the same.
    (options.create, options.durability) = (true, Durability::Process);
    Journal::open(dir, options).expect("the journal opens")
}

fn group() -> Group {
    Group::new("bench", "loader").expect("a legal name")
}

fn fill(dir: &Path, batches: u64, ranges: u32) {
    let journal = open(dir);
    journal
        .decide::<(), String>(|_| {
            let body = Body::Started { owner: "bench".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
            Ok((vec![Draft { group: Some(group()), epoch: Epoch::ZERO.next(), body }], ()))
        })
        .expect("a start");
    let topic = TopicName::new("orders").expect("a legal name");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut positions = vec![0u64; ranges as usize];
    let mut time = now().millis();
    let begun = Instant::now();
    for _ in 0..batches {
        let all = (0..ranges).map(|partition| {
            let position = &mut positions[partition as usize];
            let from = Offset::try_from(*position).expect("small");
            let size = 500 + random.below(1_000);
            *position += size;
            OffsetRange::new(topic.clone(), partition, from, from.plus(size)).expect("a legal range")
        });
        let all = all.collect();
        time += 900 + random.below(200) as i64;
        let commit = Commit::new(group(), Epoch::ZERO.next(), Timestamp::from_millis(time), all);
        journal.commit(commit.expect("each partition once")).expect("a commit");
    }
    let filled = begun.elapsed();
    let begun = Instant::now();
    journal.close().expect("a clean close");
    println!("  written at {:.0} batches/s, close {:.2?}", batches as f64 / filled.as_secs_f64(), begun.elapsed());
}

fn bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let size = |entry: std::fs::DirEntry| {
        let kind = entry.metadata().expect("metadata");
        if kind.is_dir() { bytes(&entry.path()) } else { kind.len() }
    };
    entries.map(|entry| size(entry.expect("an entry"))).sum()
}

/// Resident memory of this process, in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number") / 1024.0
}

fn ask(dir: &Path, batches: u64, ranges: u32) {
    let before = resident();
    let begun = Instant::now();
    let journal = open(dir);
    let opened = begun.elapsed();
    println!("  open {opened:.2?} (goal 100 ms), memory {:.1} MB, {before:.1} MB before", resident());
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut times: Histogram<u64> = Histogram::new(3).expect("3 digits");
    for _ in 0..20_000 {
        let seq = Seq::try_from(2 + random.below(batches)).expect("small");
        let begun = Instant::now();
        let as_of = journal.positions_as_of(&group(), seq).expect("a read").expect("it is there");
        times.record(begun.elapsed().as_nanos() as u64).expect("below the histogram's end");
        assert_eq!((as_of.seq, as_of.positions.iter().count()), (seq, ranges as usize));
    }
    let micros = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
    println!("  positions as of a batch: p50 {:.0} us, p99 {:.0} us (goal 500)", micros(0.5), micros(0.99));
    let begun = Instant::now();
    let mut page = 0;
    let visited = journal.visit_batches(&group(), BatchNumber::MAX, Order::Descending, &mut |_| {
        page += 1;
        if page < 100 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    visited.expect("a read");
    println!("  the newest 100 batches: {:.2?}", begun.elapsed());
    for recent in [false, true] {
        who_read(&journal, batches, ranges, recent);
    }
    println!("  memory after all {:.1} MB", resident());
}

/// Who read an offset: of any batch, or of the newest hundredth of them.
fn who_read(journal: &Journal, batches: u64, ranges: u32, recent: bool) {
    let mut random = Random(0x6a09_e667_f3bc_c909);
    let (mut pages, mut wholes): (Histogram<u64>, Histogram<u64>) =
        (Histogram::new(3).expect("3 digits"), Histogram::new(3).expect("3 digits"));
    let (mut all_pages, asked) = (0, 1_000);
    for _ in 0..asked {
        let span = if recent { batches / 100 } else { batches };
        let number = BatchNumber::try_from(batches - random.below(span)).expect("small");
        let entry = journal.batch(&group(), number).expect("a read").expect("it is there");
        let Body::Batch(batch) = entry.body else { panic!("it is a batch") };
        let range = &batch.ranges[random.below(u64::from(ranges)) as usize];
        let query = OffsetQuery {
            topic: range.topic().clone(),
            partition: range.partition(),
            offset: range.from_offset(),
            order: Order::Descending,
            limit: 100,
        };
        let (mut found, mut after) = (Vec::new(), None);
        let begun = Instant::now();
        loop {
            let page_begun = Instant::now();
            let page = readers(journal, [group()], &query, after).expect("a read");
            pages.record(page_begun.elapsed().as_nanos() as u64).expect("below the histogram's end");
            all_pages += 1;
            found.extend(page.readers.into_iter().map(|(_, reading)| reading.batch));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        wholes.record(begun.elapsed().as_nanos() as u64).expect("below the histogram's end");
        assert_eq!(found, [number]);
    }
    let millis = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64 / 1e6;
    println!(
        "  who read an offset of {}: p50 {:.2} ms, p99 {:.2} ms in {:.1} pages; a page p50 {:.2} ms, p99 {:.2} ms",
        if recent { "the newest hundredth" } else { "any batch" },
        millis(&wholes, 0.5),
        millis(&wholes, 0.99),
        f64::from(all_pages) / f64::from(asked),
        millis(&pages, 0.5),
        millis(&pages, 0.99),
    );
}

fn main() {
    let arguments: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if let [batches, ranges, dir] = arguments[..] {
        // The second half, in a process of its own, so that its memory is its own.
        return ask(Path::new(&format!("history-{dir}")), batches, ranges as u32);
    }
    let runs = match arguments[..] {
        [batches, ranges] => vec![(batches, ranges as u32)],
        _ => vec![(1_000_000, 12), (1_000_000, 1)],
    };
    for (batches, ranges) in runs {
        println!("{batches} batches of {ranges} ranges");
        let root = tempfile::tempdir_in(".").expect("a temporary directory");
        let number = u64::from(std::process::id());
        let dir = root.path().join(format!("history-{number}"));
        fill(&dir, batches, ranges);
        let (all, archive) = (bytes(&dir), dir.join("archive"));
        let archive = if archive.exists() { bytes(&archive) } else { 0 };
        let of_range = |size: u64| size as f64 / (batches * u64::from(ranges)) as f64;
        // The log is a segment of zeros by now.
        println!(
            "  on disk without archive {:.2} bytes a range, {} MB; in sled {:.2} (goals 5 and 14)",
            of_range(all - archive),
            all >> 20,
            of_range(bytes(&dir.join("sled"))),
        );
        let again = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args([batches, u64::from(ranges), number].map(|number| number.to_string()))
            .current_dir(root.path())
            .status();
        assert!(again.expect("this program starts").success());
    }
}
