//! One durable commit of 4 ranges against a bare append + fdatasync of as many bytes, to an equally pre-zeroed file and
//! to a growing one, from a thread and over tokio; then 256 concurrent committers against one; then commits with results,
//! and how these are read. All in one run, samples interleaved, as the disk's mood changes by the minute.
//!
//!     cargo bench --no-default-features --bench commit [-- DIR]

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use tidelog::commit::Commit;
use tidelog::entry::{Body, Draft};
use tidelog::journal::{Journal, Options};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Timestamp, TopicName};
use tidelog::results::Puts;

const ROUNDS: usize = 3_000;
const RANGES: u32 = 4;
/// About what a commit of 4 ranges takes in the write-ahead log.
const BYTES: usize = 64;
/// Commits with so many results each, of so many bytes, under keys that are new each time.
const RESULTS: [usize; 3] = [0, 10, 1_000];
const RESULT_BYTES: usize = 100;
const RESULT_ROUNDS: usize = 500;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(since.as_millis() as i64)
}

fn open(dir: &Path) -> Journal {
    let mut options = Options::new(Arc::new(now));
    options.create = true;
    Journal::open(dir, options).expect("the journal opens")
}

fn group(number: usize) -> Group {
    Group::new("bench", &format!("g{number}")).expect("a legal name")
}

fn start(journal: &Journal, number: usize) {
    journal
        .decide::<(), String>(move |_| {
            let body = Body::Started { owner: "bench".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
            Ok((vec![Draft { group: Some(group(number)), epoch: Epoch::ZERO.next(), body }], ()))
        })
        .expect("a start");
}

fn commit(group: &Group, topic: &TopicName, round: usize) -> Commit {
    let from = Offset::try_from(round as u64 * 10).expect("small");
    let ranges = (0..RANGES)
        .map(|partition| OffsetRange::new(topic.clone(), partition, from, from.plus(10)).expect("a legal range"));
    Commit::new(group.clone(), Epoch::ZERO.next(), now(), ranges.collect()).expect("each partition once")
}

struct Times(Histogram<u64>);

impl Times {
    fn new() -> Times {
        Times(Histogram::new(3).expect("3 digits"))
    }

    fn take(&mut self, started: Instant) {
        self.0.record(started.elapsed().as_nanos() as u64).expect("below the histogram's end");
    }

    fn p50(&self) -> f64 {
        self.0.value_at_quantile(0.5) as f64
    }

    fn show(&self, what: &str, than: &Times) {
        let micros = |quantile| self.0.value_at_quantile(quantile) as f64 / 1e3;
        let ratio = self.p50() / than.p50();
        println!("{what:<42} p50 {:>8.1} us  p99 {:>8.1} us  {ratio:>5.2} x", micros(0.5), micros(0.99));
    }
}

fn one_commit(root: &Path) {
    let zeroed = File::create(root.join("zeroed")).expect("a file");
    (&zeroed).write_all(&vec![0; 16 << 20]).expect("zeros");
    zeroed.sync_all().expect("an fsync");
    let growing = File::create(root.join("growing")).expect("a file");
    let journal = open(&root.join("journal"));
    start(&journal, 0);
    start(&journal, 1);
    let topic = TopicName::new("orders").expect("a legal name");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let [mut bare, mut growth, mut thread, mut tokio] = [(); 4].map(|()| Times::new());
    let bytes = [7; BYTES];
    for round in 0..ROUNDS {
        let at = (round * BYTES) as u64;
        let begun = Instant::now();
        zeroed.write_all_at(&bytes, at).expect("a write");
        zeroed.sync_data().expect("an fdatasync");
        bare.take(begun);

        let begun = Instant::now();
        growing.write_all_at(&bytes, at).expect("a write");
        growing.sync_data().expect("an fdatasync");
        growth.take(begun);

        let next = commit(&group(0), &topic, round);
        let begun = Instant::now();
        journal.commit(next).expect("a commit");
        thread.take(begun);

        let next = commit(&group(1), &topic, round);
        let begun = Instant::now();
        runtime.block_on(journal.commit_async(next)).expect("a commit");
        tokio.take(begun);
    }
    println!("one durable commit of {RANGES} ranges, {ROUNDS} rounds");
    bare.show("append + fdatasync, pre-zeroed file", &bare);
    growth.show("append + fdatasync, growing file", &bare);
    thread.show("commit, from a thread (goal 1.30)", &bare);
    tokio.show("commit, from tokio (goal 1.40)", &bare);
    println!(
        "{:<42} {:>5.2} x, tokio {:.2} x",
        "against the growing file",
        thread.p50() / growth.p50(),
        tokio.p50() / growth.p50()
    );
    journal.close().expect("a clean close");
}

fn rate(root: &Path, committers: usize, time: Duration) -> f64 {
    let journal = open(&root.join(format!("journal-{committers}")));
    for number in 0..committers {
        start(&journal, number);
    }
    let topic = TopicName::new("orders").expect("a legal name");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let begun = Instant::now();
    let committed: usize = runtime.block_on(async {
        let tasks: Vec<_> = (0..committers)
            .map(|number| {
                let (journal, topic) = (journal.clone(), topic.clone());
                tokio::spawn(async move {
                    let mut round = 0;
                    while begun.elapsed() < time {
                        let next = commit(&group(number), &topic, round);
                        journal.commit_async(next).await.expect("a commit");
                        round += 1;
                    }
                    round
                })
            })
            .collect();
        let mut all = 0;
        for task in tasks {
            all += task.await.expect("no panic");
        }
        all
    });
    let rate = committed as f64 / begun.elapsed().as_secs_f64();
    println!("{committers:>4} concurrent committers: {rate:>9.0} commits/s");
    journal.close().expect("a clean close");
    rate
}

fn result_key(round: usize, nth: usize) -> String {
    // Not in the order in which they come.
    format!("{:016x}", (round as u64 * 1_000 + nth as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Bytes that do not compress.
fn result(seed: usize) -> Vec<u8> {
    let mixed = (1..).map(|n: u64| (n + seed as u64).wrapping_mul(0x5851_f42d_4c95_7f2d).to_be_bytes()[0]);
    mixed.take(RESULT_BYTES).collect()
}

fn with_results(root: &Path) {
    let dir = root.join("results");
    let journal = open(&dir);
    let topic = TopicName::new("orders").expect("a legal name");
    let mut times = RESULTS.map(|_| Times::new());
    (0..RESULTS.len()).for_each(|number| start(&journal, number));
    for round in 0..RESULT_ROUNDS {
        for (number, count) in RESULTS.into_iter().enumerate() {
            let mut puts = Puts::new();
            for nth in 0..count {
                puts.put(result_key(round, nth), result(round * 1_000 + nth)).expect("within the limits");
            }
            let next = commit(&group(number), &topic, round).with_puts(puts);
            let begun = Instant::now();
            journal.commit(next).expect("a commit");
            times[number].take(begun);
        }
    }
    println!("one durable commit of {RANGES} ranges with results of {RESULT_BYTES} bytes, {RESULT_ROUNDS} rounds");
    for (count, time) in RESULTS.iter().zip(&times) {
        time.show(&format!("{count} results"), &times[0]);
    }
    let begun = Instant::now();
    journal.close().expect("a clean close");
    println!("{:<42} {:>8.1} ms", "close, with what was not sealed yet", begun.elapsed().as_secs_f64() * 1e3);
    let begun = Instant::now();
    let journal = open(&dir);
    let count = RESULT_ROUNDS * RESULTS.iter().sum::<usize>();
    println!("{:<42} {:>8.1} ms", format!("open, {count} sealed results"), begun.elapsed().as_secs_f64() * 1e3);
    let (mut now, mut then, mut page) = (Times::new(), Times::new(), Times::new());
    let last = journal.group(&group(2)).expect("it has started").positions.batch;
    for round in 0..RESULT_ROUNDS {
        let key = result_key(round, round * 7 % 1_000);
        let begun = Instant::now();
        let found = journal.result(&group(2), key.as_bytes()).expect("a read");
        now.take(begun);
        assert_eq!(found, Some(result(round * 1_000 + round * 7 % 1_000)));
        let begun = Instant::now();
        journal.result_as_of(&group(2), key.as_bytes(), last).expect("a read");
        then.take(begun);
        if round % 50 == 0 {
            let begun = Instant::now();
            journal.results(&group(2), key.as_bytes(), None, 1_000).expect("a page");
            page.take(begun);
        }
    }
    now.show("a result, now", &now);
    then.show("a result, as of a batch", &now);
    page.show("a page of 1,000", &now);
}

fn main() {
    let under = std::env::args().nth(1).filter(|argument| !argument.starts_with("--"));
    let root = match under {
        Some(under) => tempfile::tempdir_in(under),
        None => tempfile::tempdir_in("."),
    };
    let root = root.expect("a temporary directory");
    one_commit(root.path());
    let one = rate(root.path(), 1, Duration::from_secs(5));
    let many = rate(root.path(), 256, Duration::from_secs(5));
    println!("256 against one (goal 20): {:.1} x", many / one);
    with_results(root.path());
}
