//! What holds of every plan, whatever came before it.

use proptest::prelude::*;

use super::world::{World, show_positions};
use crate::offset::Offset;
use crate::rollback::Decided;

/// A consumer's or an operator's doing, with numbers that are brought into range when it is done.
#[derive(Debug, Clone)]
enum Step {
    Commit { partition: u32, ahead: i64, count: u64 },
    Rollback(Goal),
}

#[derive(Debug, Clone)]
enum Goal {
    Before(u64),
    After(u64),
    Seq(u64),
    Undo,
    Earliest,
    Latest,
    Offset(u64),
    Shift(i64),
}

const LATEST: u64 = 1_000;

fn commit() -> impl Strategy<Value = Step> {
    (0..2_u32, -60..60_i64, 0..100_u64).prop_map(|(partition, ahead, count)| Step::Commit { partition, ahead, count })
}

fn goal() -> impl Strategy<Value = Goal> {
    prop_oneof![
        any::<u64>().prop_map(Goal::Before),
        any::<u64>().prop_map(Goal::After),
        any::<u64>().prop_map(Goal::Seq),
        Just(Goal::Undo),
        Just(Goal::Earliest),
        Just(Goal::Latest),
        (0..LATEST + 200).prop_map(Goal::Offset),
        (-300..300_i64).prop_map(Goal::Shift),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop_oneof![3 => commit(), 1 => goal().prop_map(Step::Rollback)], 0..30)
}

fn world() -> World {
    let mut world = World::new();
    world.run("topic t A t/0=20 t/1=20");
    world.run("broker t A 0:20..1000 1:20..1000");
    world.run("commit t/0:20..30 t/1:20..25");
    world
}

impl World {
    fn do_commit(&mut self, partition: u32, ahead: i64, count: u64) {
        let position = self.positions().get(&"t".parse().unwrap(), partition).unwrap().position.get();
        let from = (position + ahead).clamp(20, LATEST as i64) as u64;
        self.commit(&[&format!("t/{partition}:{from}..{}", (from + count).min(LATEST))]);
    }

    /// The words of a goal; none where there is nothing of the kind.
    fn words(&self, goal: &Goal) -> Option<String> {
        let newest = self.positions().batch.as_u64();
        Some(match goal {
            Goal::Before(n) => format!("before {}", n % newest + 1),
            Goal::After(n) => format!("after {}", n % newest + 1),
            Goal::Seq(n) => format!("seq {}", n % self.state().seq.as_u64() + 1),
            Goal::Undo => self.group().last_move.map(|_| "undo".to_owned())?,
            Goal::Earliest => "earliest".to_owned(),
            Goal::Latest => "latest".to_owned(),
            Goal::Offset(n) => format!("offset {n}"),
            Goal::Shift(n) => format!("shift {n}"),
        })
    }

    fn do_steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Commit { partition, ahead, count } => self.do_commit(*partition, *ahead, *count),
                Step::Rollback(goal) => {
                    let Some(words) = self.words(goal) else { continue };
                    let words: Vec<_> = words.split(' ').chain(["allow_clamp"]).collect();
                    let plan = self.plan(&super::world::request(&words));
                    self.execute(&plan).unwrap();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn an_executed_plan_leaves_each_partition_at_its_start(history in steps(), goal in goal()) {
        let mut world = world();
        world.do_steps(&history);
        let Some(words) = world.words(&goal) else { return Ok(()) };
        let words: Vec<_> = words.split(' ').chain(["allow_clamp"]).collect();
        let plan = world.plan(&super::world::request(&words));
        prop_assert!(plan.executable());
        let epoch = world.group().epoch;
        let (entries, decided) = world.execute(&plan).unwrap();
        prop_assert_eq!(entries.is_empty(), plan.nothing_to_do);
        prop_assert_eq!(decided == Decided::Moves, !plan.nothing_to_do);
        prop_assert_eq!(world.group().epoch.since(epoch), u64::from(!plan.nothing_to_do));
        for planned in &plan.partitions {
            let now = world.positions().get(&planned.at.topic, planned.at.partition).unwrap();
            prop_assert_eq!(now.position, planned.start);
            prop_assert!(planned.start >= Offset::new(20).unwrap() && planned.start <= Offset::new(1_000).unwrap());
            prop_assert!(now.holes.iter().all(|hole| hole.until_offset <= now.position));
            prop_assert!(now.holes.windows(2).all(|pair| pair[0].until_offset <= pair[1].from_offset));
        }
        // Once more: the first receipt, or still nothing.
        let (again, _) = world.execute(&plan).unwrap();
        prop_assert!(again.is_empty());
    }

    #[test]
    fn an_undo_with_no_commits_between_restores(history in steps(), goal in goal()) {
        let mut world = world();
        world.do_steps(&history);
        let before = world.positions().clone();
        let Some(words) = world.words(&goal) else { return Ok(()) };
        let entries = world.entries.len();
        world.do_steps(&[Step::Rollback(goal)]);
        if world.entries.len() > entries {
            world.do_steps(&[Step::Rollback(Goal::Undo)]);
        }
        for (at, _, then) in before.iter() {
            let now = world.positions().get(&at.topic, at.partition).unwrap();
            prop_assert_eq!(now.position, then.position);
            prop_assert_eq!(&now.holes, &then.holes, "{} {}", words, show_positions(&before));
        }
    }

    #[test]
    fn a_consumer_that_goes_on_leaves_the_id_as_it_is(
        history in steps(),
        goal in goal(),
        commits in prop::collection::vec(commit(), 1..10),
    ) {
        let mut world = world();
        world.do_steps(&history);
        let Some(words) = world.words(&goal) else { return Ok(()) };
        let words: Vec<_> = words.split(' ').chain(["allow_clamp"]).collect();
        let plan = world.plan(&super::world::request(&words));
        world.do_steps(&commits);
        let now = world.plan(&plan.execute);
        prop_assert_eq!(&now.id, &plan.id);
        prop_assert!(world.execute(&plan).is_ok());
        // A move in between makes it another plan; the same one again is the first receipt.
        prop_assert!(world.execute(&plan).is_ok());
        world.do_steps(&[Step::Rollback(Goal::Offset(21))]);
        let moved = world.group().epoch != plan.epoch;
        prop_assert!(!moved || world.plan(&plan.execute).id != plan.id);
    }
}
