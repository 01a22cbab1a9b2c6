//! Scripts and what they say: one for each target, outcome and flag.

mod decisions;
mod holes;
mod outcomes;
mod properties;
mod targets;
mod world;

use self::world::{World, group, request};
use super::{Order, Outcome, PlanRequest, Refused, WrongName, decide, plan};
use crate::broker::Seen;

#[track_caller]
fn check(script: &str, expected: &str) {
    let mut world = World::new();
    let said: String = script.lines().map(str::trim).filter(|l| !l.is_empty()).map(|line| world.run(line)).collect();
    let expected: String = expected.lines().map(|line| format!("{}\n", line.trim())).skip(1).collect();
    let expected = expected.trim_end_matches('\n');
    assert_eq!(said.trim_end_matches('\n'), expected, "\nsaid:\n{said}");
}

const BATCHES: &str = "
    topic t A t/0=0 t/1=0
    commit t/0:0..100 t/1:0..10
    commit t/0:100..180
    commit t/0:180..250 t/1:10..30
    broker t A 0:0..300 1:0..30
";

#[track_caller]
fn check_after_batches(script: &str, expected: &str) {
    check(&format!("{BATCHES}{script}"), expected);
}

fn after_batches() -> World {
    let mut world = World::new();
    BATCHES.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| drop(world.run(line)));
    world
}
