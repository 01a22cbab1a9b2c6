//! Open holes at starts and looks.

use super::*;

#[test]
fn c14b_a_hole_that_holds_readable_records_is_read_again() {
    let scene = Scene::with(&["C t#1 0=0..520"], |broker, _| ScriptedBroker {
        readable: Some(|range| Seen::Known(range.from_offset())),
        ..broker
    });
    let started = scene.start("A", "t", "").unwrap();
    commit(&scene.control.journal, started.epoch, "t/0", 100, 200).unwrap();
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 4 t/0@0 unread_hole");
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 2 seq 4 t/0@0 in_range");
    // A broker that can't look into holes leaves them open.
    let scene = Scene::new(&["C t#1 0=0..520"]);
    let started = scene.start("A", "t", "").unwrap();
    commit(&scene.control.journal, started.epoch, "t/0", 100, 200).unwrap();
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 1 seq 3 t/0@200 in_range");
}

#[test]
fn what_an_earlier_look_knew_of_holes_is_not_asked_again() {
    // Every other answer does not come in time: never all of one look.
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let scene = Scene::with(&["C t#1 0=0..520"], |broker, _| ScriptedBroker {
        readable: Some(|_| match ASKED.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Seen::Failed("timed out".to_owned()),
            _ => Seen::Absent,
        }),
        ..broker
    });
    let started = scene.start("A", "t", "").unwrap();
    for from in [10, 30, 50] {
        commit(&scene.control.journal, started.epoch, "t/0", from, from + 10).unwrap();
    }
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 1 seq 6 t/0@60 in_range");
    assert_eq!(ASKED.load(Ordering::Relaxed), 3 + 2 + 1);
}

#[test]
fn many_holes_take_longer_than_the_deadline_as_long_as_they_are_answered() {
    // Four more of them each time: of 40 that are 10 rounds of 5 ms for each that is left, beyond the deadline of 600 ms.
    static ASKED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());
    let readable = |range: &OffsetRange| {
        std::thread::sleep(Duration::from_millis(5));
        let from = range.from_offset().as_u64();
        let mut asked = ASKED.lock().unwrap();
        let times = asked.entry(from).or_insert(0);
        *times += 1;
        if *times > from / 80 { Seen::Absent } else { Seen::Failed("not answered in time".to_owned()) }
    };
    let world = |looks: &[&str]| {
        ASKED.lock().unwrap().clear();
        let scene = Scene::with(looks, |broker, _| ScriptedBroker { readable: Some(readable), ..broker });
        let started = scene.start("A", "t", "").unwrap();
        for from in (10..=800).step_by(20) {
            commit(&scene.control.journal, started.epoch, "t/0", from, from + 10).unwrap();
        }
        scene
    };
    let scene = world(&["C t#1 0=0..820"]);
    let begun = Instant::now();
    assert_eq!(told(&scene.start("A", "t", "")), "epoch 1 seq 43 t/0@800 in_range");
    assert!(begun.elapsed() > scene.control.limits.deadline);
    // What is in the way beside them has the deadline that it always has.
    let scene = world(&["C t#1 0=0..820 1=0..5", "C t#1 0=0..820 1=?"]);
    let refused = told(&scene.start("A", "t", ""));
    assert!(refused.contains("t/1") && refused.contains("within 0.6 s"), "{refused}");
    assert!(ASKED.lock().unwrap()[&780] < 10, "the last one was asked as often as it needs");
}

#[test]
fn c14b_commits_out_of_order_through_ten_looks_correct_nothing() {
    let scene = Scene::with(&["C t#1 0=0..5000"], |broker, _| ScriptedBroker {
        readable: Some(|range| Seen::Known(range.from_offset())),
        ..broker
    });
    let request = request("A", "t", "");
    let started = start(&scene.control, request.clone()).unwrap();
    let assigned = BTreeSet::from([script::at("t/0")]);
    let mut undoubted: Option<BatchNumber> = None;
    for n in 0..10 {
        // The upper half first: a hole that is another task's work in progress, which holds records.
        let (low, middle, high) = (n * 100, n * 100 + 50, n * 100 + 100);
        commit(&scene.control.journal, started.epoch, "t/0", middle, high).unwrap();
        let looked = look_while_running(&scene.control, &request, &assigned, undoubted).unwrap();
        assert_eq!((looked.epoch, looked.positions.len(), looked.findings.len()), (started.epoch, 0, 0));
        undoubted = Some(looked.batch);
        commit(&scene.control.journal, started.epoch, "t/0", low, middle).unwrap();
    }
    assert_eq!(scene.position("t/0").as_u64(), 1000);
    assert!(!scene.entries()["started reconciled".len()..].contains("reconciled"));
}
