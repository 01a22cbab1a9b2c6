//! Every kind of entry, to JSON and back.

use super::*;
use crate::entry::{Cause, Hole, Loss, LostRange, Move, NoteKind, RolledBack, TopicChange, Verdict};
use crate::offset::{Group, Offset, TopicId};
use crate::positions::GroupState;

fn offset(number: i64) -> Offset {
    Offset::new(number).unwrap()
}

fn topic() -> TopicName {
    "orders".parse().unwrap()
}

fn batch() -> Body {
    let range = OffsetRange::new(topic(), 0, offset(500), Offset::MAX).unwrap();
    let note = Note {
        topic: topic(),
        partition: 0,
        note: NoteKind::Hole,
        from_offset: offset(498),
        until_offset: offset(500),
    };
    Body::Batch(entry::Batch {
        batch: BatchNumber::ZERO.plus(7),
        batch_time: Timestamp::from_millis(1_796_032_800_000),
        key: Some("job-17/42".to_owned()),
        ranges: vec![range],
        notes: vec![note],
        firsts: Vec::new(),
        topic_ids: Vec::new(),
    })
}

fn correction() -> Correction {
    let moved = Move {
        topic: topic(),
        partition: 1,
        topic_id: TopicId::from_bytes([7; 16]),
        old: Some(offset(100)),
        new: None,
        holes: vec![Hole { from_offset: offset(1), until_offset: offset(2), seq: Seq::ZERO.plus(3) }],
        replaying_until: Some(offset(100)),
    };
    let loss = Loss {
        topic: topic(),
        partition: 1,
        from_offset: offset(100),
        until_offset: offset(250),
        cause: Cause::Expired,
    };
    Correction {
        topics: vec![TopicChange { topic: topic(), topic_id: None, new_incarnation: true }],
        moves: vec![moved],
        losses: vec![loss],
        cluster_id: Some("GlwF".to_owned()),
    }
}

fn findings() -> Vec<Finding> {
    vec![Finding {
        topic: Some(topic()),
        partition: Some(1),
        verdict: Verdict::HeadOutOfRange,
        position: Some(offset(100)),
        earliest: Some(offset(250)),
        latest: Some(offset(400)),
        start: Some(offset(250)),
        loss: Some(LostRange { from_offset: offset(100), until_offset: offset(250) }),
        detail: None,
    }]
}

/// One of each kind.
fn bodies() -> Vec<Body> {
    let (actor, name) = ("ann".to_owned(), "before deploy 42".to_owned());
    let of = Seq::ZERO.plus(3);
    let moved = RolledBack {
        plan: "p-1".to_owned(),
        target: "before batch 41".to_owned(),
        actor: actor.clone(),
        reason: "a \"test\"".to_owned(),
        undoes: Some(of),
        kafka: false,
        correction: correction(),
    };
    let outcome = KafkaOutcome { topic: topic(), partition: 0, offset: Some(offset(5)), error: None };
    vec![
        batch(),
        Body::Started {
            owner: "loader@host1:4711".to_owned(),
            isolation: Isolation::ReadUncommitted,
            kafka_group: None,
        },
        Body::Reconciled { findings: findings(), correction: correction() },
        Body::PartitionsAdded { findings: findings(), correction: correction() },
        Body::RolledBack(moved),
        Body::KafkaResult { of, partitions: vec![outcome] },
        Body::Held { reason: "mending the sink".to_owned(), actor: actor.clone() },
        Body::Released { actor: actor.clone() },
        Body::Retired { topic: Some(topic()), actor: actor.clone() },
        Body::Mark { name, actor: actor.clone() },
        Body::LossAcknowledged { of, actor: actor.clone() },
        Body::Imported { source: "a file".to_owned(), correction: correction() },
        Body::Pruned { through: of, actor, groups: vec![(Group::new("default", "g").unwrap(), GroupState::default())] },
    ]
}

fn entry_of(body: Body) -> entry::Entry {
    entry::Entry {
        seq: Seq::ZERO.plus(121),
        recorded_at: Timestamp::from_millis(1_796_032_800_123),
        machine_clock: Timestamp::from_millis(1_796_032_800_123),
        group: Some(Group::new("default", "loader").unwrap()),
        epoch: Epoch::ZERO.plus(3),
        body,
    }
}

#[test]
fn every_kind_comes_back_as_it_was_written() {
    for body in bodies() {
        let kind = body.kind();
        let written = Entry::from(entry_of(body));
        assert_eq!(written.own.kind(), kind);
        let text = serde_json::to_string(&written).unwrap();
        assert!(text.contains(&format!(r#""kind":"{kind}""#)), "{text}");
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), written, "{text}");
    }
}

#[test]
fn the_fields_of_an_entry_and_of_a_batch_are_those_of_the_interface() {
    let mark = entry_of(Body::Mark { name: "m".to_owned(), actor: "ann".to_owned() });
    assert_eq!(
        serde_json::to_string(&Entry::from(mark)).unwrap(),
        concat!(
            r#"{"seq":"121","group":"loader","app":"default","recorded_at":"2026-11-30T10:00:00.123Z","#,
            r#""machine_clock":"2026-11-30T10:00:00.123Z","epoch":"3","kind":"mark","name":"m","actor":"ann"}"#
        )
    );
    let batch = Batch::of(entry_of(batch())).unwrap();
    let text = serde_json::to_string(&batch).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"batch":"7","seq":"121","batch_time":"2026-11-30T10:00:00Z","recorded_at":"2026-11-30T10:00:00.123Z","#,
            r#""epoch":"3","key":"job-17/42","ranges":[{"topic":"orders","partition":0,"from_offset":"500","#,
            r#""until_offset":"9223372036854775807"}],"notes":[{"topic":"orders","partition":0,"note":"hole","#,
            r#""from_offset":"498","until_offset":"500"}]}"#
        )
    );
    assert_eq!(serde_json::from_str::<Batch>(&text).unwrap(), batch);
    assert_eq!(Batch::of(entry_of(Body::Released { actor: "ann".to_owned() })), None);
}
