//! What is settled and checked when a plan is executed.

use super::*;
use crate::offset::Group;

#[test]
fn with_hold_the_group_is_stopped_in_the_same_append() {
    check_after_batches(
        "plan after 1 in t:1 hold
         execute
         execute
         plan offset 0 in t:1 hold
         execute",
        "
        t/1 30 -> 10 exact replayed 20
        seq 5 epoch 2: after batch 1
        t/1 30 -> 10 replaying until 30
        seq 6 epoch 2: held
        repeated: seq 5
        t/1 10 -> 0 exact replayed 10
        seq 7 epoch 3: offset 0
        t/1 10 -> 0 replaying until 30",
    );
}

#[test]
fn the_id_covers_each_flag() {
    let world = after_batches();
    let id = |flags: &str| world.plan(&request(&["after", "1", flags][..if flags.is_empty() { 2 } else { 3 }])).id;
    let ids = ["", "allow_clamp", "leave_unmovable", "unchecked", "hold"].map(id);
    for (index, id) in ids.iter().enumerate() {
        assert!(id.starts_with("p-") && id.len() == 18, "{id}");
        assert!(!ids[..index].contains(id), "{ids:?}");
    }
}

#[test]
fn the_id_covers_the_group_and_its_topics() {
    let id = |topic: &str, app: &str| {
        let mut world = World::new();
        world.run(topic);
        let mut request = request(&["offset", "0", "unchecked"]);
        request.group = Group::new(app, "g").unwrap();
        world.plan(&request).id
    };
    let ids = [("topic t A t/0=5", "a"), ("topic t B t/0=5", "a"), ("topic u A u/0=5", "a"), ("topic t A t/0=5", "b")]
        .map(|(topic, app)| id(topic, app));
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{ids:?}");
    }
}

#[test]
fn an_order_is_checked_on_the_state_of_its_moment() {
    let mut world = after_batches();
    let order = |world: &World, request: PlanRequest| Order {
        plan: None,
        meaning: world.meaning(&request.to),
        looked: world.looked(&request),
        actor: "ann".to_owned(),
        reason: "test".to_owned(),
        request,
    };
    let unknown = order(&world, request(&["offset", "5", "in", "t:9"]));
    let refused = decide(world.state(), &unknown).unwrap_err();
    assert!(matches!(refused, Refused::WrongName(WrongName::Unknown { partition: Some(9), .. })), "{refused}");
    world.run("plan offset 5");
    world.run("execute");
    let undo = order(&world, request(&["undo"]));
    world.run("plan offset 7");
    world.run("execute");
    assert_eq!(decide(world.state(), &undo).unwrap_err(), Refused::MovedAgain(group()));
}
