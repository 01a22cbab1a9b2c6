//! What holds of every decision, over worlds made by chance.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::broker::{Look, PartitionLook, Seen, TopicLook};
use crate::entry::{Body, Correction, Draft, Hole, Move, TopicChange};
use crate::offset::{Offset, Seq, Timestamp, TopicId};
use crate::positions::Positions;
use crate::reconcile::tests::script::{World, group, id, selectors, topic};
use crate::reconcile::{Decision, Holes, Observed, Occasion, Policy, Question, Starter, decide};

fn offset(n: i64) -> Offset {
    Offset::new(n).unwrap()
}

/// Mostly known, sometimes absent or failed.
fn seen<T: Clone + std::fmt::Debug + 'static>(known: impl Strategy<Value = T> + 'static) -> BoxedStrategy<Seen<T>> {
    prop_oneof![
        8 => known.prop_map(Seen::Known),
        1 => Just(Seen::Absent),
        1 => Just(Seen::Failed("timed out".to_owned())),
    ]
    .boxed()
}

fn topic_id() -> impl Strategy<Value = TopicId> {
    (1..4_u8).prop_map(|n| id(&n.to_string()))
}

fn partition() -> impl Strategy<Value = PartitionLook> {
    (seen(0..30_i64), seen(0..30_i64)).prop_map(|(a, b)| {
        let (earliest, latest) = match (a, b) {
            (Seen::Known(a), Seen::Known(b)) => (Seen::Known(offset(a.min(b))), Seen::Known(offset(a.max(b)))),
            (a, b) => (
                a.known().map_or(Seen::Absent, |a| Seen::Known(offset(*a))),
                match b {
                    Seen::Known(b) => Seen::Known(offset(b)),
                    Seen::Absent => Seen::Absent,
                    Seen::Failed(error) => Seen::Failed(error),
                },
            ),
        };
        PartitionLook { earliest, readable_end: latest.clone(), latest }
    })
}

fn look() -> impl Strategy<Value = Look> {
    let one = (seen(topic_id()), seen(prop::collection::btree_map(0..3_u32, partition(), 0..4)));
    let topics = prop::collection::btree_map(prop_oneof![Just("t"), Just("u"), Just("v")], one, 0..4);
    topics.prop_map(|topics| Look {
        taken_at: Timestamp::default(),
        brokers: "b".to_owned(),
        cluster_id: Seen::Known("C".to_owned()),
        topics: topics
            .into_iter()
            .map(|(name, (id, partitions))| (topic(name), TopicLook { id, partitions }))
            .collect(),
        listing: Seen::Known(()),
    })
}

type Had = Vec<(&'static str, Option<TopicId>, BTreeMap<u32, (i64, Option<(i64, i64)>)>)>;

/// What the group has: topics with positions and at most one hole each.
fn had() -> impl Strategy<Value = Had> {
    let hole = (0..30_i64, 1..10_i64).prop_map(|(from, size)| (from, from + size));
    let partitions = prop::collection::btree_map(0..3_u32, (0..40_i64, prop::option::of(hole)), 0..4);
    let one = (prop_oneof![Just("t"), Just("u")], prop::option::of(topic_id()), partitions);
    prop::collection::vec(one, 0..3)
}

fn world(had: Had) -> World {
    let mut world = World::default();
    let mut correction = Correction::default();
    for (name, topic_id, partitions) in had {
        if correction.topics.iter().any(|change| change.topic == topic(name)) {
            continue;
        }
        correction.topics.push(TopicChange { topic: topic(name), topic_id, new_incarnation: false });
        for (partition, (position, hole)) in partitions {
            let hole = hole.filter(|(_, until)| *until <= position);
            let holes = hole.map(|(from, until)| Hole {
                from_offset: offset(from),
                until_offset: offset(until),
                seq: Seq::ZERO,
            });
            let holes = holes.into_iter().collect();
            let (topic, new) = (topic(name), Some(offset(position)));
            correction.moves.push(Move { topic, partition, topic_id, old: None, new, holes, replaying_until: None });
        }
    }
    correction.moves.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    if !correction.is_empty() {
        let epoch = "1".parse().unwrap();
        let started = Body::Started { owner: "A".to_owned(), isolation: Default::default(), kafka_group: None };
        for body in [started, Body::Reconciled { findings: Vec::new(), correction }] {
            world.append(Draft { group: Some(group()), epoch, body });
        }
    }
    world
}

fn policies() -> impl Strategy<Value = Policy> {
    let words = "{} {\"reset\":{\"tail\":\"latest\",\"missing\":\"skip\"},\"new_group\":\"latest\"} \
                 {\"reset\":{\"tail\":\"fail\",\"head\":\"fail\",\"recreated\":\"fail\"}}";
    let policies = words.split(' ').filter(|word| !word.is_empty()).map(|word| serde_json::from_str(word).unwrap());
    prop::sample::select(policies.collect::<Vec<Policy>>())
}

/// A look with nothing known in it.
fn failures(mut look: Look) -> Look {
    for topic in look.topics.values_mut() {
        topic.partitions = Seen::Failed("timed out".to_owned());
    }
    look
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_start_is_within_the_look_and_a_second_decision_finds_nothing(
        had in had(),
        earlier in look(),
        newest in prop::option::of(look()),
        policy in policies(),
    ) {
        let mut world = world(had);
        let topics = selectors("t u ^v".split(' '));
        let group = group();
        let positions = |world: &World| world.state.groups.get(&group).map(|g| g.positions.clone()).unwrap_or_default();
        let observe = |look: Look, positions: Positions| Observed { look, positions };
        let newest = observe(newest.unwrap_or_else(|| earlier.clone()), positions(&world));
        let earlier = observe(earlier, positions(&world));
        let firsts = BTreeMap::new();
        let ask = |world: &World, newest: &Observed| decide(&Question {
            group: &group,
            state: world.state.groups.get(&group),
            topics: &topics,
            observed: newest,
            earlier: Some(&earlier),
            holes: &Holes::NotLooked,
            firsts: &firsts,
            policy: &policy,
            occasion: Occasion::Start(Starter { owner: "B", isolation: None, kafka_group: None }),
        });

        let failed = observe(failures(newest.look.clone()), newest.positions.clone());
        let has_topics = !failed.look.topics.is_empty() || !positions(&world).topics.is_empty();
        if let Decision::Decided(decided) = ask(&world, &failed) {
            prop_assert!(!has_topics, "{decided:?}");
        }

        let Decision::Decided(decided) = ask(&world, &newest) else { return Ok(()) };
        for start in &decided.starts {
            let (earliest, latest) = (start.earliest.unwrap(), start.latest.unwrap());
            prop_assert!(earliest <= start.offset && start.offset <= latest, "{start:?}");
            let Seen::Known(seen) = &newest.look.topics[&start.at.topic].partitions else { panic!("{start:?}") };
            prop_assert_eq!(seen[&start.at.partition].latest.known(), Some(&latest));
        }
        for draft in decided.drafts {
            prop_assert_eq!(draft.epoch, decided.epoch);
            if let Some(correction) = draft.body.correction() {
                prop_assert!(correction.losses.iter().all(|loss| loss.from_offset < loss.until_offset));
                prop_assert!(correction.moves.is_sorted_by_key(Move::topic_partition));
            }
            world.append(draft);
        }
        for start in &decided.starts {
            let partition = world.state.groups[&group].positions.get(&start.at.topic, start.at.partition);
            prop_assert_eq!(partition.map(|partition| partition.position), Some(start.offset));
        }
        let again = observe(newest.look.clone(), positions(&world));
        let Decision::Decided(second) = ask(&world, &again) else { panic!("not decided again") };
        prop_assert_eq!(&second.drafts, &Vec::new());
        prop_assert_eq!(second.epoch, decided.epoch);
    }
}
