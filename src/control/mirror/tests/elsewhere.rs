//! A broker of another cluster, and one that does not answer.

use super::*;

/// The group belongs to this cluster from now on.
fn of_cluster(world: &World, id: &str) {
    let correction = crate::entry::Correction { cluster_id: Some(id.to_owned()), ..Default::default() };
    let body = crate::entry::Body::Reconciled { findings: Vec::new(), correction };
    let draft = crate::entry::Draft { group: Some(world.group.clone()), epoch: world.epoch(), body };
    world.control.journal.decide(move |_| Ok::<_, ()>((vec![draft], ()))).unwrap();
}

#[test]
fn another_cluster_is_told_nothing() {
    let world = world();
    of_cluster(&world, "C1");
    assert!(!follow(&world), "the broker does not say its cluster");
    assert!(writes(&world).is_empty());
    assert!(world.control.mirror.status(&world.group).error.unwrap().contains("cluster"));
    let moved =
        execute(&world.control, PlanRequest { kafka: false, unchecked: true, ..to(&world, 40) }, None, "ann", "why");
    let error = set_kafka(&world.control, moved.unwrap().seq.unwrap()).unwrap_err();
    assert!(matches!(error, SetError::OtherCluster(_)), "{error}");
    assert!(writes(&world).is_empty());
    // The addresses lead to the right one, then to another.
    let is = |id: &str| world.broker.kafka.lock().unwrap().cluster_id = Seen::Known(id.to_owned());
    is("C1");
    assert!(follow(&world));
    is("C2");
    world.commit_to("t", 90);
    assert!(!follow(&world));
    assert_eq!(world.broker.held("t"), Some(40));
}

/// Setting Kafka's offsets asks four things, and a write of the mirror two.
#[test]
fn what_is_asked_in_one_go_keeps_to_one_deadline() {
    let world = world();
    of_cluster(&world, "C1");
    world.broker.kafka.lock().unwrap().cluster_id = Seen::Known("C1".to_owned());
    let done = execute(&world.control, to(&world, 40), None, "ann", "why").unwrap();
    let waits = || std::mem::take(&mut world.broker.kafka.lock().unwrap().waits);
    waits();
    set_kafka(&world.control, done.seq.unwrap()).unwrap();
    let set = waits();
    assert!(follow(&world));
    for (waits, count) in [(set, 4), (waits(), 2)] {
        assert!(waits.len() == count && waits.is_sorted_by(|a, b| a > b), "each has what is left: {waits:?}");
    }
}

/// That it is not reached is no refusal: neither by the whole broker, nor by the one that has the group.
#[test]
fn a_broker_that_does_not_answer_is_unavailable_in_the_same_words() {
    let world = world();
    of_cluster(&world, "C1");
    let silent = || "timed out".to_owned();
    let say = |cluster_id: Seen<String>, members: Result<Vec<Member>, Untold>| {
        let mut kafka = world.broker.kafka.lock().unwrap();
        (kafka.cluster_id, kafka.members) = (cluster_id, members);
    };
    let here = || Seen::Known("C1".to_owned());
    say(here(), Ok(Vec::new()));
    let done = execute(&world.control, to(&world, 40), None, "ann", "why").unwrap();
    let seq = || world.control.journal.with_state(|state| state.seq);
    let before = seq();
    for (cluster_id, members) in [(Seen::Failed(silent()), Ok(Vec::new())), (here(), Err(Untold::Silent(silent())))] {
        say(cluster_id, members.clone());
        let error = set_kafka(&world.control, done.seq.unwrap()).unwrap_err();
        assert!(matches!(error, SetError::BrokerUnavailable { .. }), "{error:?}");
        assert!(error.to_string().starts_with("no answer from fake:9092 within 400ms: "), "{error}");
        if members.is_ok() {
            continue;
        }
        for error in [
            plan(&world.control, to(&world, 30)).unwrap_err().to_string(),
            execute(&world.control, to(&world, 30), None, "ann", "why").unwrap_err().to_string(),
            execute(&world.control, to(&world, 40), None, "ann", "why").unwrap_err().to_string(),
        ] {
            assert_eq!(error, "no answer from fake:9092 within 400ms");
        }
    }
    world.broker.silent();
    let error = plan(&world.control, to(&world, 30)).unwrap_err().to_string();
    assert_eq!(error, "no answer from fake:9092 within 400ms", "unchecked is no way out with kafka");
    assert_eq!((seq(), world.position("t")), (before, 40));
    // The mirror's words are the same.
    say(Seen::Failed(silent()), Ok(Vec::new()));
    assert!(!follow(&world));
    let error = world.control.mirror.status(&world.group).error;
    assert_eq!(error.as_deref(), Some("no answer from fake:9092 within 400ms: timed out"));
}
