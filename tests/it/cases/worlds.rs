//! Several things at once in the cluster, and topics that are not what they were.

use crate::script::check;

#[test]
fn two_topics_are_recreated_at_once() {
    check(
        "
        broker a id=A 0:0..100
        broker b id=B 0:0..100 1:0..100
        start g owner=a topics=a,b
        commit g a/0 0..100 b/0 0..100 b/1 0..100 key=k
        broker a id=C 0:3..20
        broker b id=D 0:0..0
        start g owner=a topics=a,b
        start g owner=a topics=a,b
        commit g a/0 3..20 b/0 0..0 key=k
        positions g
        losses g
        entries g
        ",
        r#"
        started epoch 1 seq 2
        a/0 from 0 new_group
        b/0 from 0 new_group
        b/1 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 4
        a/0 from 3 topic_recreated
        b/0 from 0 topic_recreated
        found a/0 topic_recreated 100 -> 3 in 3..20 lost [0,3): topic id Q0NDQ0NDQ0NDQ0NDQ0NDQw, was QUFBQUFBQUFBQUFBQUFBQQ
        found b/0 topic_recreated 100 -> 0 in 0..0: topic id RERERERERERERERERERERA, was QkJCQkJCQkJCQkJCQkJCQg
        found b/1 topic_recreated 100 -> - in -..-: topic id RERERERERERERERERERERA, was QkJCQkJCQkJCQkJCQkJCQg; this partition is no more
        started epoch 2 seq 4
        a/0 from 3 in_range
        b/0 from 0 in_range
        batch 2 seq 5
        a/0 20
        b/0 0
        a/0 [0,3) expired seq 4
        1 started by a (epoch 1)
        2 reconciled, a/0 - -> 0, b/0 - -> 0, b/1 - -> 0 (epoch 1)
        3 batch 1 a/0 [0,100) b/0 [0,100) b/1 [0,100) key "k" (epoch 1)
        4 reconciled, a is another topic, b is another topic, a/0 100 -> 3, b/0 100 -> 0, b/1 100 -> -, lost a/0 [0,3) expired (epoch 2)
        5 batch 2 a/0 [3,20) b/0 [0,0) key "k" (epoch 2)
        "#,
    );
}

#[test]
fn one_start_finds_growth_expiry_and_a_recreation() {
    check(
        "
        broker a id=A 0:0..100 1:0..100
        broker b id=B 0:0..100
        start g owner=a topics=a,b
        commit g a/0 0..50 a/1 0..50 b/0 0..50
        broker a id=A 0:60..100 1:0..100 2:5..9
        broker b id=C 0:0..4
        start g owner=b topics=a,b,^c.*
        epoch g
        entries g
        losses g
        ",
        "
        started epoch 1 seq 2
        a/0 from 0 new_group
        a/1 from 0 new_group
        b/0 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 6
        a/0 from 60 head_out_of_range
        a/1 from 50 in_range
        a/2 from 5 partition_added
        b/0 from 0 topic_recreated
        found a/0 head_out_of_range 50 -> 60 in 60..100 lost [50,60)
        found a/2 partition_added - -> 5 in 5..9 lost [0,5)
        found b/0 topic_recreated 50 -> 0 in 0..4: topic id Q0NDQ0NDQ0NDQ0NDQ0NDQw, was QkJCQkJCQkJCQkJCQkJCQg
        epoch 2 by started b seq 4, owner b, picked up by b
        1 started by a (epoch 1)
        2 reconciled, a/0 - -> 0, a/1 - -> 0, b/0 - -> 0 (epoch 1)
        3 batch 1 a/0 [0,50) a/1 [0,50) b/0 [0,50) (epoch 1)
        4 started by b (epoch 2)
        5 reconciled, b is another topic, a/0 50 -> 60, b/0 50 -> 0, lost a/0 [50,60) expired (epoch 2)
        6 partitions_added, a/2 - -> 5, lost a/2 [0,5) expired (epoch 2)
        a/2 [0,5) expired seq 6
        a/0 [50,60) expired seq 5
        ",
    );
}

#[test]
fn a_rollback_across_a_growth_and_a_recreation() {
    check(
        "
        broker a id=A 0:0..100
        broker b id=B 0:0..100
        start g owner=a topics=a,b
        commit g a/0 0..50 b/0 0..50
        broker a id=A 0:0..100 1:7..100
        broker b id=C 0:0..100
        start g owner=b topics=a,b
        commit g a/0 50..60 a/1 7..40 b/0 0..10
        plan g after 1
        plan g after 1 leave
        execute last
        positions g
        execute g undo
        positions g
        positions g @batch=1
        ",
        "
        started epoch 1 seq 2
        a/0 from 0 new_group
        b/0 from 0 new_group
        batch 1 seq 3
        started epoch 2 seq 6
        a/0 from 50 in_range
        a/1 from 7 partition_added
        b/0 from 0 topic_recreated
        found a/1 partition_added - -> 7 in 7..100 lost [0,7)
        found b/0 topic_recreated 50 -> 0 in 0..100: topic id Q0NDQ0NDQ0NDQ0NDQ0NDQw, was QkJCQkJCQkJCQkJCQkJCQg
        batch 2 seq 7
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        a/0 60 -> 50 exact replayed 10
        a/1 40 -> 7 younger replayed 33
        b/0 10 -> - start 10 recreated
        not executable: b/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        to seq 3 batch 1 of 2026-11-30T09:00:00Z
        a/0 60 -> 50 exact replayed 10
        a/1 40 -> 7 younger replayed 33
        b/0 10 -> - start 10 recreated
        executed seq 8 epoch 3
        a/0 60 -> 50 replaying to 60
        a/1 40 -> 7 replaying to 40
        a/0 50 replaying to 60
        a/1 7 replaying to 40
        b/0 10
        executed seq 9 epoch 4
        a/0 50 -> 60
        a/1 7 -> 40
        a/0 60
        a/1 40
        b/0 10
        a/0 50
        b/0 50
        ",
    );
}

#[test]
fn a_stray_commit_past_the_end_of_the_log_is_corrected_at_the_next_start() {
    check(
        "
        broker orders id=A 0:0..520
        readable orders/0 0..520
        start g owner=a topics=orders
        commit g orders/0 0..500
        commit g orders/0 9000..9100
        look g owner=a topics=orders
        start g owner=b topics=orders tail=fail
        start g owner=b topics=orders
        commit g orders/0 500..520
        positions g
        losses g
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        batch 2 seq 4, hole orders/0 [500,9000)
        looked epoch 2 seq 5
        orders/0 from 520 truncated
        found orders/0 truncated 9100 -> 520 in 0..520: [520, 9100) was read, but is gone from the log
        started epoch 3 seq 7
        orders/0 from 500 unread_hole
        found orders/0 unread_hole 520 -> 500 in 0..520: [500, 520) was never read
        started epoch 3 seq 7
        orders/0 from 500 in_range
        batch 3 seq 8
        orders/0 520
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,500) (epoch 1)
        4 batch 2 orders/0 [9000,9100), hole orders/0 [500,9000) (epoch 1)
        5 reconciled, orders/0 9100 -> 520 hole [500,520) (epoch 2)
        6 started by b (epoch 3)
        7 reconciled, orders/0 520 -> 500 (epoch 3)
        8 batch 3 orders/0 [500,520) (epoch 3)
        ",
    );
}

#[test]
fn a_topic_that_is_recreated_while_its_group_is_rolled_back() {
    check(
        "
        broker orders id=A 0:0..1000
        start g owner=a topics=orders
        commit g orders/0 0..900 key=k
        mark g before
        execute g offset 500
        broker orders id=B 0:0..10
        execute g undo
        look g owner=a topics=orders
        execute g undo
        plan g mark before
        commit g orders/0 0..10 key=k epoch=3
        look g owner=a topics=orders undoubted=1
        positions g
        epoch g
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        4 mark "before" by ann (epoch 1)
        executed seq 5 epoch 2
        orders/0 900 -> 500 replaying to 900
        refused: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        looked epoch 3 seq 6
        orders/0 from 0 topic_recreated
        found orders/0 topic_recreated 500 -> 0 in 0..10: topic id QkJCQkJCQkJCQkJCQkJCQg, was QUFBQUFBQUFBQUFBQUFBQQ
        refused: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        to seq 4 batch 1 of 2026-11-30T09:00:00Z
        orders/0 0 -> - start 0 recreated
        not executable: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        nothing to do
        batch 2 seq 7
        looked epoch 3 seq 7
        orders/0 10
        epoch 3 by reconciled a seq 6, owner a, picked up by a
        "#,
    );
}

#[test]
fn partitions_that_go_and_come_back_without_ids() {
    check(
        "
        broker orders no-id 0:0..100 1:0..100 2:0..100
        start g owner=a topics=orders
        commit g orders/0 0..100 orders/1 0..100 orders/2 0..100
        flap orders no-id 0:0..100
        start g owner=a topics=orders
        broker orders no-id 0:0..100
        start g owner=a topics=orders recreated=fail
        start g owner=a topics=orders
        broker orders no-id 0:0..100 1:0..100 2:0..100
        start g owner=a topics=orders
        plan g before 1
        entries g
        ",
        "
        started epoch 1 seq 2
        orders/0 from 0 new_group
        orders/1 from 0 new_group
        orders/2 from 0 new_group
        batch 1 seq 3
        started epoch 1 seq 3
        orders/0 from 100 in_range
        orders/1 from 100 in_range
        orders/2 from 100 in_range
        refused: group g can't start: orders/0: topic_recreated, was at 100, the log holds [0,100) (1 partitions, had 3); orders/1: topic_recreated, was at 100 (1 partitions, had 3; this partition is no more); orders/2: topic_recreated, was at 100 (1 partitions, had 3; this partition is no more)
        started epoch 2 seq 4
        orders/0 from 0 topic_recreated
        found orders/0 topic_recreated 100 -> 0 in 0..100: 1 partitions, had 3
        found orders/1 topic_recreated 100 -> - in -..-: 1 partitions, had 3; this partition is no more
        found orders/2 topic_recreated 100 -> - in -..-: 1 partitions, had 3; this partition is no more
        started epoch 2 seq 5
        orders/0 from 0 in_range
        orders/1 from 0 partition_added
        orders/2 from 0 partition_added
        found orders/1 partition_added - -> 0 in 0..100
        found orders/2 partition_added - -> 0 in 0..100
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 0 -> - start 0 recreated
        orders/1 0 -> - start 0 recreated
        orders/2 0 -> - start 0 recreated
        not executable: orders/0: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        not executable: orders/1: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        not executable: orders/2: the topic was deleted and created again since, its old offsets mean nothing now; leave_unmovable leaves it where it is and moves the others
        nothing to do
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0, orders/1 - -> 0, orders/2 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,100) orders/1 [0,100) orders/2 [0,100) (epoch 1)
        4 reconciled, orders is another topic, orders/0 100 -> 0, orders/1 100 -> -, orders/2 100 -> - (epoch 2)
        5 partitions_added, orders/1 - -> 0, orders/2 - -> 0 (epoch 2)
        ",
    );
}

#[test]
fn a_topic_learns_its_id_and_keeps_its_position() {
    check(
        "
        broker orders no-id 0:0..100
        start g owner=a topics=orders
        commit g orders/0 0..100 key=k
        broker orders id=A 0:0..100
        start g owner=a topics=orders
        commit g orders/0 0..100 key=k
        plan g before 1
        commit g orders/0 100..100 id=orders:B
        entries g
        ",
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        batch 1 seq 3
        started epoch 1 seq 4
        orders/0 from 100 in_range
        batch 1 seq 3 again
        to seq 2 batch 0 of 2026-11-30T09:00:00Z
        orders/0 100 -> 0 exact replayed 100
        refused: fenced: orders was read under topic id QkJCQkJCQkJCQkJCQkJCQg, but is QUFBQUFBQUFBQUFBQUFBQQ now; start group g again
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 batch 1 orders/0 [0,100) key "k" (epoch 1)
        4 reconciled (epoch 1)
        "#,
    );
}
