//! Brokers lag, flap and time out: nothing is corrected on what was seen once, or not at all.

use crate::reconcile::tests::script::check;

#[test]
fn c13_a_first_answer_that_is_short_corrects_nothing() {
    for first in ["0..480", "0..0", "?"] {
        check(
            &format!(
                "have C t#1 0@500
                 look C t#1 0={first}
                 look C t#1 0=0..520
                 start A t"
            ),
            "epoch 1
             t/0 500 in_range",
        );
        check(
            &format!(
                "have C t#1 0@500
                 look C t#1 0=0..520
                 look C t#1 0={first}
                 start A t"
            ),
            if first == "?" {
                "again t/0: earliest: timed out"
            } else {
                "again t/0: truncated, seen once; a second look must agree"
            },
        );
    }
}

#[test]
fn c13_fewer_partitions_under_the_same_id_are_unknown_however_often() {
    check(
        "have C t#1 0@500 1@5 2@5 3@5
         look C t#1 0=0..520 1=0..9
         look C t#1 0=0..520 1=0..9
         start A t",
        "again t/2: the journal has partition 2, but b:9092 lists 2 partitions under the same topic id; if that \
         stays so, a commit named it by mistake: once the topic has 3 partitions, the group can start
         again t/3: the journal has partition 3, but b:9092 lists 2 partitions under the same topic id; if that \
         stays so, a commit named it by mistake: once the topic has 4 partitions, the group can start",
    );
    check(
        "have C t 0@500 1@5 2@5 3@5
         look C t 0=0..520 1=0..9
         look C t 0=0..520 1=0..9 2=0..9
         start A t",
        "again t: topic_recreated, seen once; a second look must agree",
    );
}

#[test]
fn errors_and_time_outs_are_unknown_value_by_value() {
    check(
        "have C t#1 0@500 1@5 2@5 u#2 0@1 v#3 0@1
         look C t#1 0=?..9 1=0..? 2=9..3 u ? v#? 0=0..1 nolist
         look C t#1 0=?..9 1=0..? 2=9..3 u ? v#? 0=0..1 nolist
         start A ^.*",
        "again the list of topics: timed out
         again t/0: earliest: timed out
         again t/1: latest: timed out
         again t/2: earliest 9 above latest 3: answers of different moments
         again u: timed out
         again v: its id: timed out",
    );
    check("have C t#1 0@5\nlook ? t#1 0=0..9\nstart A t", "again the cluster's id: timed out");
    check("have C t#1 0@5 u#2 0@1\nlook C t#1 0=0..9\nstart A", "again u: the look did not ask for it");
    check("have C t#1 0@5\nlook C t#1\nstart A", "again t: no partition in the answer");
}

#[test]
fn a_latest_that_still_falls_and_an_id_that_still_changes_are_not_agreement() {
    check(
        "have C t#1 0@500
         look C t#1 0=0..480
         look C t#1 0=0..0
         start A t",
        "again t/0: truncated, seen once; a second look must agree",
    );
    check(
        "have C t#1 0@500
         look C t#2 0=0..5
         look C t#1 0=0..480
         start A t",
        "again t/0: truncated, seen once; a second look must agree",
    );
    check(
        "have C t#1 0@500
         look C t#2 0=0..480
         look C t#3 0=0..480
         start A t",
        "again t: topic_recreated, seen once; a second look must agree",
    );
    check(
        "have C t#1 0@500
         look C t missing
         look C t#3 0=0..480
         start A t",
        "again t: topic_recreated, seen once; a second look must agree",
    );
    check(
        "have C t#1 0@500
         look C t ?
         look C t missing
         start A t",
        "again t: topic_missing, seen once; a second look must agree",
    );
}

#[test]
fn c26_a_commit_between_look_and_decision_is_in_range() {
    check(
        "have C t#1 0@490
         look C t#1 0=0..500
         look C t#1 0=0..500
         commit t/0 490..505
         start A t",
        "epoch 1
         t/0 505 in_range",
    );
    // A position that was above latest before the look and moves on is in range for now; the next start sees.
    check(
        "have C t#1 0@600
         look C t#1 0=0..500
         look C t#1 0=0..500
         commit t/0 600..605
         start A t",
        "epoch 1
         t/0 605 in_range",
    );
    // The first look was taken before the commits: it is no second witness.
    check(
        "have C t#1 0@490
         look C t#1 0=0..500
         commit t/0 490..505
         look C t#1 0=0..504
         start A t",
        "again t/0: truncated, seen once; a second look must agree",
    );
    // Expiry is no guess: earliest never falls.
    check(
        "have C t#1 0@100
         look C t#1 0=250..500
         commit t/0 100..105
         start A t",
        "epoch 1
         t/0 250 head_out_of_range
         found head_out_of_range t/0 at 105 start 250 loss [105,250)
         reconciled t/0 105->250 expired t/0[105,250)",
    );
}

#[test]
fn c11_c12_a_refusal_repeats_and_a_correction_happens_once() {
    check(
        "have C t 0@1000
         look C t 0=0..5
         look C t 0=0..5
         policy tail=fail
         start A t
         start A t
         start A t
         policy tail=earliest
         start A t
         start A t
         start A t",
        &[
            "refused\nfound tail_out_of_range t/0 at 1000 (the log ends below the position)\n".repeat(3),
            "epoch 2
             t/0 0 tail_out_of_range
             found tail_out_of_range t/0 at 1000 start 0 \
             (the log ends below the position, and no topic id tells whether it is the same)
             reconciled t/0 1000->0\n"
                .to_owned(),
            "epoch 2\nt/0 0 in_range\n".repeat(2),
        ]
        .concat(),
    );
}

#[test]
fn a_partition_that_a_stray_commit_named_is_said_and_found_cut_once_the_topic_has_it() {
    check(
        "have C t#1 0@5 1@0 2@0
         commit t/7 0..100
         look C t#1 0=0..10 1=0..0 2=0..0
         start A t
         look C t#1 0=0..10 1=0..0 2=0..0
         start A t
         look C t#1 0=0..10 1=0..0 2=0..0 3=0..0 4=0..0 5=0..0 6=0..0 7=0..0
         start A t
         look C t#1 0=0..10 1=0..0 2=0..0 3=0..0 4=0..0 5=0..0 6=0..0 7=0..0
         start A t",
        "again t/7: the journal has partition 7 (batch 1), but b:9092 lists 3 partitions under the same topic id; if that \
         stays so, a commit named it by mistake: once the topic has 8 partitions, the group can start
         again t/7: the journal has partition 7 (batch 1), but b:9092 lists 3 partitions under the same topic id; if that \
         stays so, a commit named it by mistake: once the topic has 8 partitions, the group can start
         again t/7: truncated, seen once; a second look must agree
         epoch 2
         t/0 5 in_range
         t/1 0 in_range
         t/2 0 in_range
         t/3 0 partition_added
         t/4 0 partition_added
         t/5 0 partition_added
         t/6 0 partition_added
         t/7 0 truncated
         found partition_added t/3 start 0
         found partition_added t/4 start 0
         found partition_added t/5 start 0
         found partition_added t/6 start 0
         found truncated t/7 at 100 start 0 ([0, 100) was read, but is gone from the log)
         reconciled t/7 100->0
         partitions_added t/3 none->0 t/4 none->0 t/5 none->0 t/6 none->0",
    );
}
