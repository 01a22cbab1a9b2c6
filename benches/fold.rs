//! What a commit costs besides the disk: the check against the state, and the fold, for batches of 12, 100 and 10,000
//! ranges.
//!
//!     cargo bench --no-default-features --bench fold

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tidelog::commit::{Checked, Commit, check};
use tidelog::entry::{Body, Entry};
use tidelog::offset::{Epoch, Group, Isolation, Offset, OffsetRange, Seq, Timestamp, TopicName};
use tidelog::positions::State;

fn entry(state: &State, body: Body) -> Entry {
    let time = Timestamp::from_millis(1_700_000_000_000);
    let group = Some(Group::new("bench", "loader").expect("legal names"));
    Entry { seq: state.seq.next(), recorded_at: time, machine_clock: time, group, epoch: Epoch::ZERO.next(), body }
}

fn started() -> State {
    let mut state = State::default();
    let body = Body::Started { owner: "bench".into(), isolation: Isolation::ReadCommitted, kafka_group: None };
    state.apply(&entry(&state, body));
    state
}

fn commit(round: u64, ranges: u32) -> Commit {
    let topic = TopicName::new("orders").expect("a legal name");
    let from = Offset::try_from(round * 10).expect("small");
    let ranges = (0..ranges)
        .map(|partition| OffsetRange::new(topic.clone(), partition, from, from.plus(10)).expect("a legal range"));
    let group = Group::new("bench", "loader").expect("legal names");
    Commit::new(group, Epoch::ZERO.next(), Timestamp::from_millis(1), ranges.collect()).expect("a legal commit")
}

fn next(state: &State, round: u64, ranges: u32) -> Entry {
    match check(state, &commit(round, ranges)) {
        Ok(Checked::Append(draft)) => entry(state, draft.body),
        other => unreachable!("a new batch: {other:?}"),
    }
}

fn fold(criterion: &mut Criterion) {
    for ranges in [12, 100, 10_000] {
        let mut group = criterion.benchmark_group("ranges");
        group.throughput(Throughput::Elements(u64::from(ranges)));
        let mut state = started();
        state.apply(&next(&state, 0, ranges));
        let second = commit(1, ranges);
        group.bench_function(BenchmarkId::new("check", ranges), |bencher| {
            bencher.iter(|| black_box(check(black_box(&state), black_box(&second))));
        });
        let entry = next(&state, 1, ranges);
        assert_eq!(entry.seq, Seq::new(3).expect("small"));
        group.bench_function(BenchmarkId::new("apply", ranges), |bencher| {
            bencher.iter_batched_ref(|| state.clone(), |state| state.apply(black_box(&entry)), BatchSize::LargeInput);
        });
        group.finish();
    }
}

criterion_group!(benches, fold);
criterion_main!(benches);
