//! Cases of names and times.

use crate::script::check;

#[test]
fn c09_names_that_a_separator_or_an_escape_would_confuse_keep_apart() {
    let names =
        ["a/b", "a%2Fb", "100%", "a b", "a+b", "x#y", "\u{2603}", "..", "%FF", "a|b", "a:b", "'", "a\nb", " a", "A/b"];
    let (mut script, mut expected) = ("broker orders id=A 0:0..1000\n".to_owned(), String::new());
    let quoted = |name: &str| serde_json::to_string(name).expect("text");
    for (index, name) in names.iter().enumerate() {
        let name = quoted(name);
        script += &format!("start {name} owner=a topics=orders\ncommit {name} orders/0 0..{}\n", index + 1);
        let seq = 3 * index + 1;
        expected += &format!("started epoch 1 seq {}\norders/0 from 0 new_group\nbatch 1 seq {}\n", seq + 1, seq + 2);
    }
    script += "close\n";
    for (index, name) in names.iter().enumerate() {
        script += &format!("history {0}\nexecute {0} before 1\npositions {0}\n", quoted(name));
        let (end, seq) = (index + 1, 3 * names.len() + index + 1);
        expected += &format!("{} batch 1 orders/0 [0,{end}) (epoch 1)\n", 3 * index + 3);
        expected += &format!("executed seq {seq} epoch 2\norders/0 {end} -> 0 replaying to {end}\n");
        expected += &format!("orders/0 0 replaying to {end}\n");
    }
    script += "reopen\ngroups\n";
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.iter().for_each(|name| expected += &format!("{name:?}\n"));
    check(&script, &expected);
}

#[test]
fn c09_names_that_are_none() {
    let (long, key) = ("x".repeat(256), "k".repeat(255));
    let script = r#"
        broker orders id=A 0:0..10
        start "" owner=a topics=orders
        start "a\u0000b" owner=a topics=orders
        start LONG owner=a topics=orders
        commit "" orders/0 0..10
        start g owner="" topics=orders
        start g owner=a topics=a/b
        start g owner=a topics=..
        groups
        start g owner=a topics=orders
        commit g orders/0 0..10 key=""
        commit g orders/0 0..10 key="a\u0000b"
        mark g "a\u0000b"
        mark g ""
        commit g orders/0 0..10 key=KEY
        "#;
    check(
        &script.replace("LONG", &long).replace("KEY", &key),
        r#"
        refused: group "": 0 bytes; it has 1 to 255
        refused: group "a\\0b": holds a NUL
        refused: group "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...": 256 bytes; it has 1 to 255
        refused: group "": 0 bytes; it has 1 to 255
        refused: owner "": 0 bytes; it has 1 to 255
        refused: topic "a/b": a topic name has only a-z A-Z 0-9 . _ - and is not . or ..
        refused: topic "..": a topic name has only a-z A-Z 0-9 . _ - and is not . or ..
        started epoch 1 seq 2
        orders/0 from 0 new_group
        refused: key "": 0 bytes; it has 1 to 255
        refused: key "a\\0b": holds a NUL
        refused: mark "a\\0b": holds a NUL
        refused: mark "": 0 bytes; it has 1 to 255
        batch 1 seq 3
        "#,
    );
}

#[test]
fn c10_times_are_read_with_a_zone_and_told_in_utc() {
    check(
        r#"
        read-time 2020-11-01T00:00:00+05:30
        read-time "2020-11-01T00:00:00 05:30"
        read-time 2020-11-01T00:00:00
        read-time 2020-11-01T00:00:00Z
        read-time 2020-11-01
        read-time 1604169000000
        read-time 2020-11-01T00:00:00.1234567Z
        read-time 1969-12-31T23:59:59Z
        read-time 9999-12-30T22:00:00Z
        read-time 9999-12-30T22:00:00.001Z
        read-time 9999-12-31T23:59:59.999Z
        read-time 9999-12-31T23:59:59-01:00
        read-time 2020-02-30T00:00:00Z
        read-time 2016-12-31T23:59:60Z
        read-time 2020-11-01T24:00:00Z
        read-time ""
        read-time "2020-11-01 00:00:00Z"
        read-time 2020-11-01t00:00:00z
        "#,
        r#"
        1604169000000 2020-10-31T18:30:00Z
        refused: time "2020-11-01T00:00:00 05:30": not RFC 3339 with a zone, such as 2026-11-30T10:00:00Z
        refused: time "2020-11-01T00:00:00": no zone; write 2026-11-30T10:00:00Z or 2026-11-30T10:00:00+01:00
        1604188800000 2020-11-01T00:00:00Z
        refused: time "2020-11-01": no zone; write 2026-11-30T10:00:00Z or 2026-11-30T10:00:00+01:00
        refused: time "1604169000000": not RFC 3339 with a zone, such as 2026-11-30T10:00:00Z
        1604188800123 2020-11-01T00:00:00.123Z
        refused: time "1969-12-31T23:59:59Z": before 1970, or past 9999-12-30T22:00:00Z
        253402207200000 9999-12-30T22:00:00Z
        refused: time "9999-12-30T22:00:00.001Z": before 1970, or past 9999-12-30T22:00:00Z
        refused: time "9999-12-31T23:59:59.999Z": before 1970, or past 9999-12-30T22:00:00Z
        refused: time "9999-12-31T23:59:59-01:00": before 1970, or past 9999-12-30T22:00:00Z
        refused: time "2020-02-30T00:00:00Z": not RFC 3339 with a zone, such as 2026-11-30T10:00:00Z
        1483228799000 2016-12-31T23:59:59Z
        refused: time "2020-11-01T24:00:00Z": not RFC 3339 with a zone, such as 2026-11-30T10:00:00Z
        refused: time "": not RFC 3339 with a zone, such as 2026-11-30T10:00:00Z
        1604188800000 2020-11-01T00:00:00Z
        1604188800000 2020-11-01T00:00:00Z
        "#,
    );
}

#[test]
fn marks_of_any_characters_are_targets() {
    check(
        r#"
        broker orders id=A 0:0..100
        start g owner=a topics=orders
        mark g "before\ndeploy \"42\" ☃ /%2F"
        commit g orders/0 0..10
        mark g " "
        mark g same
        commit g orders/0 10..20
        mark g same
        commit g orders/0 20..30
        close
        plan g mark same
        plan g mark " "
        plan g mark Same
        plan g mark "before\ndeploy \"42\" ☃ /%2F"
        execute last
        entries g
        "#,
        r#"
        started epoch 1 seq 2
        orders/0 from 0 new_group
        3 mark "before\ndeploy \"42\" ☃ /%2F" by ann (epoch 1)
        batch 1 seq 4
        5 mark " " by ann (epoch 1)
        6 mark "same" by ann (epoch 1)
        batch 2 seq 7
        8 mark "same" by ann (epoch 1)
        batch 3 seq 9
        to seq 8 batch 2 of 2026-11-30T09:00:00Z
        orders/0 30 -> 20 exact replayed 10
        to seq 5 batch 1 of 2026-11-30T09:00:00Z
        orders/0 30 -> 10 exact replayed 20
        refused: group g has no mark "Same"
        to seq 3 batch 0 of 2026-11-30T09:00:00Z
        orders/0 30 -> 0 exact replayed 30
        executed seq 10 epoch 2
        orders/0 30 -> 0 replaying to 30
        1 started by a (epoch 1)
        2 reconciled, orders/0 - -> 0 (epoch 1)
        3 mark "before\ndeploy \"42\" ☃ /%2F" by ann (epoch 1)
        4 batch 1 orders/0 [0,10) (epoch 1)
        5 mark " " by ann (epoch 1)
        6 mark "same" by ann (epoch 1)
        7 batch 2 orders/0 [10,20) (epoch 1)
        8 mark "same" by ann (epoch 1)
        9 batch 3 orders/0 [20,30) (epoch 1)
        10 rolled_back mark "before\ndeploy \"42\" ☃ /%2F", orders/0 30 -> 0 replaying to 30 (epoch 2)
        "#,
    );
}
