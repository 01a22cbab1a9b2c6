//! Figures, not checks: `cargo test --release --no-default-features --lib figures -- --ignored --nocapture --test-threads 1`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::{Order, Store};
use super::open;
use crate::entry::{Batch, Body, Entry};
use crate::offset::*;

/// A cheap, fixed source of noise.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 24) % limit
    }
}

struct Shape {
    name: &'static str,
    groups: usize,
    batches: usize,
    partitions: usize,
    ranges: usize,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "12 of 12", groups: 1, batches: 1_000_000, partitions: 12, ranges: 12 },
    Shape { name: "1 of 12", groups: 1, batches: 1_000_000, partitions: 12, ranges: 1 },
    Shape { name: "12 of 12, 100 groups", groups: 100, batches: 200_000, partitions: 12, ranges: 12 },
    Shape { name: "12 of 12, 10000 groups", groups: 10_000, batches: 200_000, partitions: 12, ranges: 12 },
    Shape { name: "10000 of 10000", groups: 1, batches: 400, partitions: 10_000, ranges: 10_000 },
    Shape { name: "100 of 10000", groups: 1, batches: 40_000, partitions: 10_000, ranges: 100 },
];

fn dir(shape: &Shape) -> PathBuf {
    std::env::temp_dir().join(format!("tidelog-figures-{}", shape.name.replace([' ', ','], "-")))
}

fn bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap()).map(|m| m.blocks() * 512).sum()
}

fn rss_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    format!("p50 {:.3} ms, p99 {:.3} ms", at(50), at(99))
}

#[test]
#[ignore = "takes minutes; prints figures"]
fn figures_write() {
    for shape in SHAPES {
        let dir = dir(&shape);
        let _ = std::fs::remove_dir_all(&dir);
        let (_, mut sealer) = open(&dir);
        let mut noise = Noise(88172645463325252);
        let topic = TopicName::new("orders").unwrap();
        let groups: Vec<Group> = (0..shape.groups).map(|n| Group::new("app", &format!("g{n}")).unwrap()).collect();
        let mut positions = vec![vec![1_000_000u64; shape.partitions]; shape.groups];
        let mut numbers = vec![0u64; shape.groups];
        let (mut time, mut spent, mut in_seal, mut ranges_in_seal) = (1_700_000_000_000i64, Duration::ZERO, 0, 0);
        let mut slowest = Duration::ZERO;
        for n in 0..shape.batches {
            let g = noise.below(shape.groups as u64) as usize % shape.groups;
            numbers[g] += 1;
            time += 900 + noise.below(200) as i64;
            let first =
                noise.below((shape.partitions / shape.ranges) as u64) as usize % (shape.partitions / shape.ranges);
            let ranges = (first * shape.ranges..(first + 1) * shape.ranges).map(|p| {
                let from = positions[g][p];
                positions[g][p] += noise.below(2048);
                let (from, until) = (Offset::try_from(from).unwrap(), Offset::try_from(positions[g][p]).unwrap());
                OffsetRange::new(topic.clone(), p as u32, from, until).unwrap()
            });
            let batch = Batch {
                batch: BatchNumber::try_from(numbers[g]).unwrap(),
                batch_time: Timestamp::from_millis(time),
                key: None,
                ranges: ranges.collect(),
                notes: Vec::new(),
                firsts: Vec::new(),
            };
            let recorded_at = Timestamp::from_millis(time + 5 + noise.below(32) as i64);
            let entry = Entry {
                seq: Seq::try_from(n as u64 + 1).unwrap(),
                recorded_at,
                machine_clock: recorded_at,
                group: Some(groups[g].clone()),
                epoch: Epoch::ZERO.next(),
                body: Body::Batch(batch),
            };
            let begun = Instant::now();
            sealer.push(&entry).unwrap();
            ranges_in_seal += shape.ranges + 2;
            in_seal += 1;
            if ranges_in_seal > 2_000_000 || n + 1 == shape.batches {
                let finishing = Instant::now();
                sealer.finish().unwrap();
                slowest = slowest.max(finishing.elapsed());
                (in_seal, ranges_in_seal) = (0, 0);
            }
            spent += begun.elapsed();
        }
        let _ = in_seal;
        let rss = rss_mib();
        drop(sealer);
        let bytes = bytes(&dir);
        println!(
            "{}: {:.2} bytes a range ({} KiB), {:.0} batches a second, longest finish {:.2} s, RSS {rss} MiB",
            shape.name,
            bytes as f64 / (shape.batches * shape.ranges) as f64,
            bytes >> 10,
            shape.batches as f64 / spent.as_secs_f64(),
            slowest.as_secs_f64(),
        );
    }
}

#[test]
#[ignore = "prints figures of what figures_write wrote"]
fn figures_read() {
    for shape in SHAPES {
        let before = rss_mib();
        let begun = Instant::now();
        let (store, _sealer) = open(&dir(&shape));
        let opened = begun.elapsed();
        let rss = rss_mib();
        let mut noise = Noise(362436069);
        let group = |n: u64| Group::new("app", &format!("g{}", n as usize % shape.groups)).unwrap();
        let sealed = store.sealed().as_u64();
        let time = |ask: &mut dyn FnMut(&Store, Group, Seq)| {
            let times = (0..1000).map(|_| {
                let (seq, group) =
                    (Seq::try_from(1 + noise.below(sealed) % sealed).unwrap(), group(noise.below(1 << 20)));
                let begun = Instant::now();
                ask(&store, group, seq);
                begun.elapsed()
            });
            percentiles(times.collect())
        };
        let mut time = time;
        println!("{}: open {:.3} s, RSS {before} -> {rss} MiB", shape.name, opened.as_secs_f64());
        println!("  as of: {}", time(&mut |store, group, seq| drop(store.positions_as_of(&group, seq).unwrap())));
        println!("  entry: {}", time(&mut |store, _, seq| drop(store.entry(seq).unwrap())));
        let newest = time(&mut |store, group, _| {
            let mut left = 100;
            let visit = &mut |_| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            store.visit_batches(&group, BatchNumber::MAX, Order::Descending, visit).unwrap();
        });
        println!("  newest 100: {newest}");
        let at = time(&mut |store, group, seq| {
            let time = Timestamp::from_millis(1_700_000_000_000 + seq.get() * 1000);
            store.seq_at(Some(&group), time).unwrap();
        });
        println!("  seq at: {at}; RSS {} MiB", rss_mib());
    }
}
