//! Each verdict under each policy, at a start.

use crate::reconcile::tests::script::check;

#[test]
fn in_range_the_position_is_the_start_and_nothing_is_written() {
    check(
        "have C t#1 0@500 1@0 u 0@7
         look C t#1 0=0..520 1=0..0 u 0=0..7
         start A t u",
        "epoch 1
         t/0 500 in_range
         t/1 0 in_range
         u/0 7 in_range",
    );
}

#[test]
fn topics_that_are_not_asked_for_are_left_alone() {
    check(
        "have C t#1 0@500 u#2 0@7 __x#3 0@1
         look C t#1 0=0..520 __x#3 0=0..4
         start A t",
        "epoch 1
         t/0 500 in_range",
    );
    // No topic named: all of the group, and a pattern never takes internal ones.
    check(
        "have C t#1 0@500 u#2 0@7 __x#3 0@1
         retire u
         look C t#1 0=0..520 u#2 0=0..9 __x#3 0=0..4
         start A
         start A ^.*",
        "epoch 1
         __x/0 1 in_range
         t/0 500 in_range
         epoch 1
         t/0 500 in_range",
    );
}

#[test]
fn c14c_another_owner_raises_the_epoch_once_also_if_it_corrects() {
    check(
        "have C t#1 0@500
         look C t#1 0=0..520
         start B t
         start B t
         start A t",
        "epoch 2
         t/0 500 in_range
         started B
         epoch 2
         t/0 500 in_range
         epoch 3
         t/0 500 in_range
         started A",
    );
    check(
        "have C t#1 0@500
         look C t#1 0=0..400 1=5..9
         look C t#1 0=0..400 1=5..9
         start B t",
        "epoch 2
         t/0 400 truncated
         t/1 5 partition_added
         found truncated t/0 at 500 start 400 ([400, 500) was read, but is gone from the log)
         found partition_added t/1 start 5 loss [0,5)
         started B
         reconciled t/0 500->400
         partitions_added t/1 none->5 expired t/1[0,5)",
    );
}

#[test]
fn verdict_1_another_cluster_is_refused_until_it_is_accepted_by_its_id() {
    let given = "have C t#1 0@500[3,5) u#2 0@7 v 0@9
         retire v
         look D t#8 0=0..6 1=2..3";
    let refusal = "refused
         found other_cluster (the group belongs to cluster C, but b:9092 is cluster D; \
         to move the group there accept it by that id)";
    check(&format!("{given}\nstart A t"), refusal);
    check(&format!("{given}\npolicy accept=E\nstart A t"), refusal);
    check(
        &format!("{given}\npolicy accept=D recreated=fail\nstart A t"),
        "epoch 2
         t/0 0 other_cluster
         t/1 2 other_cluster
         found other_cluster t/0 at 500 start 0 (cluster D, was C; accepted)
         found other_cluster t/1 start 2 loss [0,2) (cluster D, was C; accepted)
         reconciled cluster D t#8! u! t/0 500->0 t/1 none->2 u/0 7->none recreated t/0[3,5) expired t/1[0,2)",
    );
}

#[test]
fn a_cluster_id_is_adopted_and_its_absence_is_unknown() {
    check(
        "have t#1 0@500
         look C t#1 0=0..520
         start A t",
        "epoch 1
         t/0 500 in_range
         reconciled cluster C",
    );
    check(
        "have t#1 0@500
         look - t#1 0=0..520
         start A t",
        "epoch 1
         t/0 500 in_range",
    );
    check(
        "have C t#1 0@500
         look - t#9 0=0..2
         look - t#9 0=0..2
         start A t",
        "again b:9092 gave no cluster id, and the group belongs to C",
    );
}

#[test]
fn c17_verdict_2_a_missing_topic_is_refused_or_left_out_and_its_position_kept() {
    let given = "have C orders#1 0@500 t#2 0@5
         look C orders#1 missing t#2 0=0..9
         look C orders#1 missing t#2 0=0..9";
    let found = "found topic_missing orders (no such topic on b:9092; its positions are kept)";
    check(&format!("{given}\nstart A orders t"), &format!("refused\n{found}"));
    check(&format!("{given}\nstart A ^ord.* t"), &format!("refused\n{found}"));
    check(&format!("{given}\npolicy missing=skip\nstart A"), &format!("epoch 1\nt/0 5 in_range\n{found}"));
    check(
        "have C orders#1 0@500
         look C orders#1 missing
         start A orders",
        "again orders: topic_missing, seen once; a second look must agree",
    );
}

#[test]
fn c02_verdict_3_a_recreated_topic_starts_at_its_earliest() {
    for (latest, policy) in [("5", ""), ("0", ""), ("5", "policy tail=latest head=fail")] {
        check(
            &format!(
                "have C t#1 0@1000 1@70[60,65)
                 look C t#2 0=0..{latest}
                 look C t#2 0=0..{latest}
                 {policy}
                 start A t"
            ),
            "epoch 2
             t/0 0 topic_recreated
             found topic_recreated t/0 at 1000 start 0 (topic id AAAAAAAAAAAAAAAAAAAAAg, was AAAAAAAAAAAAAAAAAAAAAQ)
             found topic_recreated t/1 at 70 (topic id AAAAAAAAAAAAAAAAAAAAAg, was AAAAAAAAAAAAAAAAAAAAAQ; \
             this partition is no more)
             reconciled t#2! t/0 1000->0 t/1 70->none recreated t/1[60,65)",
        );
    }
}

#[test]
fn verdict_3_by_policy_fail_is_refused_and_says_each_partition() {
    check(
        "have C t 0@1000 1@2 2@3
         look C t 0=0..5 1=4..9
         look C t 0=0..5 1=4..9
         policy recreated=fail
         start A t",
        "refused
         found topic_recreated t/0 at 1000 (2 partitions, had 3)
         found topic_recreated t/1 at 2 loss [0,4) (2 partitions, had 3)
         found topic_recreated t/2 at 3 (2 partitions, had 3; this partition is no more)",
    );
}

#[test]
fn verdict_3_a_former_id_and_no_id_are_unknown() {
    check(
        "had t#1 0@10
         have t#2 0@500
         look C t#1 0=0..5
         look C t#1 0=0..5
         start A t",
        "again t: the answer is of a former topic, id AAAAAAAAAAAAAAAAAAAAAQ",
    );
    check(
        "have t#2 0@500 1@3
         look C t 0=0..5
         look C t 0=0..5
         start A t",
        "again t: no id in the answer, it is known by AAAAAAAAAAAAAAAAAAAAAg",
    );
}

#[test]
fn an_id_learned_is_adopted_without_an_epoch() {
    check(
        "have C t 0@500 1@3
         look C t#1 0=0..520 1=0..3
         start A t",
        "epoch 1
         t/0 500 in_range
         t/1 3 in_range
         reconciled t#1",
    );
}

#[test]
fn verdict_5_truncated_goes_to_latest_whatever_the_tail_policy_but_fail() {
    let given = "have C t#1 0@1000
         look C t#1 0=0..5
         look C t#1 0=0..8";
    let corrected = "epoch 2
         t/0 8 truncated
         found truncated t/0 at 1000 start 8 ([8, 1000) was read, but is gone from the log)
         reconciled t/0 1000->8";
    check(&format!("{given}\nstart A t"), corrected);
    check(&format!("{given}\npolicy tail=latest\nstart A t"), corrected);
    check(
        &format!("{given}\npolicy tail=fail\nstart A t\nstart A t"),
        &"refused
         found truncated t/0 at 1000 (the log ends below the position)\n"
            .repeat(2),
    );
}

#[test]
fn verdict_5_without_ids_the_tail_policy_says_where() {
    let given = "have C t 0@1000[300,400)
         look C t 0=2..5
         look C t 0=2..5";
    check(
        &format!("{given}\nstart A t"),
        "epoch 2
         t/0 2 tail_out_of_range
         found tail_out_of_range t/0 at 1000 start 2 \
         (the log ends below the position, and no topic id tells whether it is the same)
         reconciled t/0 1000->2",
    );
    check(
        &format!("{given}\npolicy tail=latest\nstart A t"),
        "epoch 2
         t/0 5 tail_out_of_range
         found tail_out_of_range t/0 at 1000 start 5 loss [2,5) \
         (the log ends below the position; if it is another topic, what it holds is lost)
         reconciled t/0 1000->5 recreated t/0[2,5)",
    );
    check(
        &format!("{given}\npolicy tail=fail\nstart A t"),
        "refused
         found tail_out_of_range t/0 at 1000 (the log ends below the position)",
    );
    // An id that is learned only now tells nothing of the past.
    check(
        "have C t 0@1000
         look C t#1 0=2..5
         look C t#1 0=2..5
         start A t",
        "epoch 2
         t/0 2 tail_out_of_range
         found tail_out_of_range t/0 at 1000 start 2 \
         (the log ends below the position, and no topic id tells whether it is the same)
         reconciled t#1 t/0 1000->2",
    );
}

#[test]
fn c01_verdict_6_an_expired_head_starts_at_earliest_with_a_loss() {
    for (ends, earliest) in [("250..400", 250), ("400..400", 400)] {
        check(
            &format!(
                "have C t#1 0@100 1@50
                 look C t#1 0={ends} 1=0..60
                 start A t"
            ),
            &format!(
                "epoch 1
                 t/0 {earliest} head_out_of_range
                 t/1 50 in_range
                 found head_out_of_range t/0 at 100 start {earliest} loss [100,{earliest})
                 reconciled t/0 100->{earliest} expired t/0[100,{earliest})"
            ),
        );
    }
    check(
        "have C t#1 0@100 1@50
         look C t#1 0=250..400 1=0..60
         policy head=fail
         start A t",
        "refused
         found head_out_of_range t/0 at 100 loss [100,250)",
    );
}

#[test]
fn c05_verdict_8_new_partitions_start_at_their_earliest_whatever_the_policy() {
    check(
        "have C t#1 0@5 1@6
         look C t#1 0=0..10 1=0..10 2=0..37 3=12..40 u#2 0=3..9
         policy new_group=latest tail=latest
         start A ^[tu]$",
        "epoch 1
         t/0 5 in_range
         t/1 6 in_range
         t/2 0 partition_added
         t/3 12 partition_added
         u/0 3 partition_added
         found partition_added t/2 start 0
         found partition_added t/3 start 12 loss [0,12)
         found partition_added u/0 start 3 loss [0,3)
         partitions_added u#2 t/2 none->0 t/3 none->12 u/0 none->3 expired t/3[0,12) expired u/0[0,3)",
    );
}

#[test]
fn verdict_9_a_new_group_begins_as_the_policy_says() {
    let begin = |policy: &str, start: &str, rest: &str| {
        check(
            &format!(
                "look C t#1 0=3..9/8
                 look C t#1 0=3..9/8
                 policy {policy}
                 start A t"
            ),
            &format!(
                "epoch 1
                 t/0 {start}
                 {rest}"
            ),
        );
    };
    begin("", "3 new_group", "started A\nreconciled cluster C t#1 t/0 none->3");
    begin("new_group=latest", "8 new_group", "started A\nreconciled cluster C t#1 t/0 none->8");
    let given = |offset: u32| format!(r#"new_group={{"offsets":[{{"topic":"t","partition":0,"offset":{offset}}}]}}"#);
    begin(&given(7), "7 new_group", "started A\nreconciled cluster C t#1 t/0 none->7");
    // What was given is judged like any position.
    begin(
        &given(1),
        "3 head_out_of_range",
        "found head_out_of_range t/0 at 1 start 3 loss [1,3)
         started A
         reconciled cluster C t#1 t/0 none->3 expired t/0[1,3)",
    );
    begin(
        &given(10),
        "3 tail_out_of_range",
        "found tail_out_of_range t/0 at 10 start 3 \
         (the log ends below the position, and no topic id tells whether it is the same)
         started A
         reconciled cluster C t#1 t/0 none->3",
    );
    check(
        r#"look C t#1 0=3..9
         policy new_group={"offsets":[{"topic":"t","partition":4,"offset":1}]}
         start A t
         look C t#1 0=3..9
         start A t"#,
        "again t/4: topic_missing, seen once; a second look must agree
         refused
         found topic_missing t/4 (an offset was given for it, but the topic has no such partition)",
    );
    check(
        "look C t#1 0=3..9
         policy new_group=fail
         start A t",
        "refused
         found new_group t/0 (the group has no position, and new groups are refused (g))",
    );
}

#[test]
fn verdict_9_by_time_and_by_kafka_waits_for_the_answers() {
    for (policy, absent) in [("new_group=2026-11-30T10:00:00Z", 9), ("new_group=kafka", 3)] {
        check(
            &format!(
                "look C t#1 0=3..9 1=3..9
                 firsts t/0=5 t/1=none
                 policy {policy}
                 start A t"
            ),
            &format!(
                "epoch 1
                 t/0 5 new_group
                 t/1 {absent} new_group
                 started A
                 reconciled cluster C t#1 t/0 none->5 t/1 none->{absent}"
            ),
        );
        check(
            &format!(
                "look C t#1 0=3..9 1=3..9
                 firsts t/0=?
                 policy {policy}
                 start A t"
            ),
            "again t/0: its first offset: timed out
             again t/1: its first offset was not asked for",
        );
    }
}

#[test]
fn a_new_group_that_would_read_nothing_is_refused() {
    check(
        "look C t missing
         look C t missing
         policy missing=skip
         start A t",
        "refused
         found topic_missing t (no such topic on b:9092)",
    );
    check(
        "look C
         start A ^ord.*",
        "refused
         found topic_missing (no topic matches ^ord.*)",
    );
}

#[test]
fn a_retired_topic_comes_back_when_named_at_its_old_position_and_never_by_pattern() {
    check(
        "have C t#1 0@5 u#2 0@6
         retire t
         look C t#1 0=0..10 u#2 0=0..10
         start A ^.*
         start A t u",
        "epoch 1
         u/0 6 in_range
         epoch 1
         t/0 5 in_range
         u/0 6 in_range
         reconciled t#1",
    );
    check(
        "have C t#1 0@5
         retire group
         look C t#1 0=0..10
         start A t",
        "epoch 2
         t/0 5 in_range
         started A",
    );
}

#[test]
fn without_a_broker_positions_are_unchecked_and_given_offsets_become_positions() {
    check(
        "have C t#1 0@5 u#2 0@6
         retire u
         unchecked
         unchecked u
         unchecked ^t",
        r#"epoch 1
         t/0 5 unchecked
         epoch 1
         u/0 6 unchecked
         reconciled u#2
         topics "^t": a pattern needs a broker; name the topics"#,
    );
    check(
        r#"policy new_group={"offsets":[{"topic":"t","partition":0,"offset":7},{"topic":"x","partition":0,"offset":1}]}
         unchecked t
         unchecked t"#,
        "epoch 1
         t/0 7 unchecked
         started A
         reconciled t/0 none->7
         epoch 1
         t/0 7 unchecked",
    );
    check(
        "policy new_group=latest
         unchecked t
         policy new_group=fail
         unchecked t
         policy new_group=earliest
         unchecked t",
        r#"new_group "latest": needs a broker
         refused
         found new_group (the group has no position, and new groups are refused (g))
         epoch 1
         started A"#,
    );
}
