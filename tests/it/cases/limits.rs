//! The edges of numbers and sizes, groups without a broker, groups that come from Kafka.

use crate::script::check;

#[test]
fn a_commit_of_100_000_ranges_is_taken_and_one_more_is_not() {
    check(
        "
        broker orders id=A 0:0..10
        start g owner=a topics=orders
        commit g t/0-99999 5..7
        commit g t/0-100000 7..8
        commit g t/0-99999 5..7
        positions g
        close
        positions g @3
        plan g before 1 unchecked
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3, 100000 notes
        refused: ranges "100001": a batch has 1 to 100000 ranges
        batch 1 seq 3 again, 100000 notes
        orders/0 0
        t/0 7
        t/1 7
        t/2 7
        t/3 7
        t/4 7
        t/5 7
        t/6 7
        and 99993 more
        orders/0 0
        t/0 7
        t/1 7
        t/2 7
        t/3 7
        t/4 7
        t/5 7
        t/6 7
        and 99993 more
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 0 -> 0 unchecked
        t/0 7 -> 5 unchecked replayed 2
        t/1 7 -> 5 unchecked replayed 2
        t/2 7 -> 5 unchecked replayed 2
        t/3 7 -> 5 unchecked replayed 2
        t/4 7 -> 5 unchecked replayed 2
        t/5 7 -> 5 unchecked replayed 2
        t/6 7 -> 5 unchecked replayed 2
        and 99993 more
        "#,
    );
}

#[test]
fn past_1000_holes_the_nearest_are_joined_and_nothing_is_lost() {
    let mut script = "
        broker orders id=A 0:0..100000
        start g owner=a topics=orders
    "
    .to_owned();
    let mut expected = "started epoch 1 seq 2\norders/0 from 0 new_group\n".to_owned();
    for index in 0..1_001u64 {
        let (from, seq) = (10 + index * 10, index + 3);
        let position = if index == 0 { 0 } else { from - 9 };
        // The range between two holes is one offset, except before the last hole but one.
        script += &format!("commit g orders/0 {from}..{}\n", from + 1);
        expected += &format!("batch {} seq {seq}, hole orders/0 [{position},{from})\n", index + 1);
    }
    script += "positions g\nclose\ncommit g orders/0 0..10020\npositions g\n";
    expected += "orders/0 10011 1000 holes\nbatch 1002 seq 1004, overlap orders/0 [0,10011)\norders/0 10020\n";
    check(&script, &expected);
}

#[test]
fn empty_ranges_are_a_batch() {
    check(
        "
        broker orders id=A 0:0..100 1:0..100
        start g owner=a topics=orders
        commit g orders/0 0..0 orders/1 0..0 key=e
        commit g orders/0 0..0 orders/1 0..0 key=e
        commit g orders/0 0..10
        plan g before 1
        plan g after 1
        execute g before 1
        commit g orders/0 0..0 orders/1 0..0 key=e
        commit g orders/0 50..50
        positions g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        batch 1 seq 3
        batch 1 seq 3 again
        batch 2 seq 4
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 10 -> 0 exact replayed 10
        orders/1 0 -> 0 unchanged
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        orders/0 10 -> 0 exact replayed 10
        orders/1 0 -> 0 unchanged
        executed seq 5 epoch 2
        orders/0 10 -> 0 replaying to 10
        batch 1 seq 3 again
        batch 3 seq 6, hole orders/0 [0,50)
        orders/0 50 hole [0,50)
        orders/1 0
        ",
    );
}

#[test]
fn an_epoch_that_never_was() {
    check(
        "
        broker orders id=A 0:0..100
        start g owner=a topics=orders
        commit g orders/0 0..10 epoch=0
        commit g orders/0 0..10 epoch=2
        commit g orders/0 0..10 epoch=9223372036854775807
        commit g orders/0 0..10 epoch=-1
        commit g orders/0 0..10 epoch=1
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        refused: fenced: read under epoch 0, but group g is at epoch 1 (started by a, seq 1); start again
        refused: epoch 2 is above 1, the newest of group g: this journal is an older copy of the one that the consumer started from
        refused: epoch 9223372036854775807 is above 1, the newest of group g: this journal is an older copy of the one that the consumer started from
        refused: epoch "-1": not a whole number of digits only, 0 to 9223372036854775807
        batch 1 seq 3
        "#,
    );
}

#[test]
fn without_a_broker_positions_are_unchecked_and_given() {
    check(
        "
        no-broker
        start g owner=a topics=orders
        commit g orders/0 5..10 earliest=orders/0:2
        commit g orders/1 5..10
        start g owner=b topics=orders
        start h owner=b topics=^orders
        start h owner=b topics=orders new=latest
        start h owner=b topics=orders new=orders/0:7,orders/1:0
        plan h before 1
        plan g before 1
        plan g before 1 unchecked
        execute last
        positions g
        losses g
        ",
        r#"
        started epoch 1 seq 1
        batch 1 seq 2, first orders/0 [5,10)
        batch 2 seq 3, first orders/1 [5,10)
        started epoch 2 seq 4
        orders/0 from 10 unchecked
        orders/1 from 10 unchecked
        refused: topics "^orders": a pattern needs a broker; name the topics
        refused: new_group "latest": needs a broker
        started epoch 1 seq 6
        orders/0 from 7 unchecked
        orders/1 from 0 unchecked
        refused: group h has no batch 1; its newest is 0
        to seq 1 batch 0 of 2026-11-30T09:00:00Z
        orders/0 10 -> 5 unchecked replayed 5
        orders/1 10 -> 5 unchecked replayed 5
        not executable: orders/0: no broker was asked; unchecked moves it all the same, and the next start looks
        not executable: orders/1: no broker was asked; unchecked moves it all the same, and the next start looks
        to seq 1 batch 0 of 2026-11-30T09:00:00Z
        orders/0 10 -> 5 unchecked replayed 5
        orders/1 10 -> 5 unchecked replayed 5
        executed seq 7 epoch 3
        orders/0 10 -> 5 hole [2,5) replaying to 10
        orders/1 10 -> 5 replaying to 10
        orders/0 5 hole [2,5) replaying to 10
        orders/1 5 replaying to 10
        orders/0 [2,5) hole seq 2
        "#,
    );
}

#[test]
fn limits_of_numbers() {
    check(
        "
        broker orders id=A 0:0..9223372036854775807
        start g owner=a topics=orders
        commit g orders/0 0..9223372036854775806
        plan g shift 100
        plan g shift -9223372036854775808
        plan g shift -9223372036854775806
        execute g offset 9223372036854775807
        commit g orders/0 9223372036854775807..9223372036854775807
        execute g shift -9223372036854775808
        execute g shift -9223372036854775808 clamp
        execute g seq 9223372036854775807
        execute g before 9223372036854775807
        execute g before 0
        execute g seq 0
        positions g
        close
        positions g
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        orders/0 9223372036854775806 -> 9223372036854775807 exact skipped 1
        orders/0 9223372036854775806 -> - start 0 expired replayed 9223372036854775806
        not executable: orders/0: it would go below offset 0; allow_clamp starts at 0
        orders/0 9223372036854775806 -> 0 exact replayed 9223372036854775806
        executed seq 4 epoch 2
        orders/0 9223372036854775806 -> 9223372036854775807
        batch 2 seq 5
        refused: orders/0: it would go below offset 0; allow_clamp starts at 0
        executed seq 6 epoch 3
        orders/0 9223372036854775807 -> 0 replaying to 9223372036854775807
        refused: seq "9223372036854775807": above 6, the newest entry of this journal
        refused: group g has no batch 9223372036854775807; its newest is 2
        refused: batch "0": batches are numbered from 1 on
        refused: after seq 0 is before the history of group g: its oldest batch is 1, recorded at 2026-11-30T09:00:00Z
        orders/0 0 replaying to 9223372036854775807
        orders/0 0 replaying to 9223372036854775807
        "#,
    );
}

#[test]
fn kafkas_own_committed_offsets_begin_a_new_group() {
    check(
        "
        broker orders id=A 0:10..500 1:0..50 2:0..50 3:0..50
        kafka orders/0=4 orders/1=40 orders/2=900
        start g owner=a topics=orders new=kafka
        start g owner=a topics=orders new=kafka
        kafka orders/0=? orders/1=40
        start h owner=a topics=orders new=kafka
        times orders/0=20 orders/1=end orders/2=30
        start t owner=a topics=orders new=2026-11-30T08:00:00Z
        losses g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 10 head_out_of_range
        orders/1 from 40 new_group
        orders/2 from 0 tail_out_of_range
        orders/3 from 0 new_group
        found orders/0 head_out_of_range 4 -> 10 in 10..500 lost [4,10)
        found orders/2 tail_out_of_range 900 -> 0 in 0..50: the log ends below the position, and no topic id tells whether it is the same
        started epoch 1 seq 2
        orders/0 from 10 in_range
        orders/1 from 40 in_range
        orders/2 from 0 in_range
        orders/3 from 0 in_range
        refused: fake:9092 did not settle where to start within 0.25 s: orders/0: its first offset: no leader
        started epoch 1 seq 4
        orders/0 from 20 new_group
        orders/1 from 50 new_group
        orders/2 from 30 new_group
        orders/3 from 50 new_group
        orders/0 [4,10) expired seq 2
        ",
    );
}
