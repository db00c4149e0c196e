//! Lossy channels: the newest per key, on every node, and nobody waits.

use std::time::Duration;

use spine::{Heard, Listener, Lossy};
use store::{LONGEST_NOTE, on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, node_with_own_clock, soon};

const PACE: Duration = Duration::from_millis(100);

/// Listens until a key has this value; all that was heard of it.
async fn until(listener: &mut Listener<i64>, key: &str, value: i64) -> Vec<i64> {
    let mut heard = Vec::new();
    let listening = async {
        while heard.last() != Some(&value) {
            match listener.next().await.unwrap() {
                Heard::Signal(signal) if signal.key == key => heard.push(signal.signal),
                Heard::Signal(_) => {}
                Heard::Missed(count) => panic!("{count} missed"),
            }
        }
    };
    soon("the newest signal", listening).await;
    heard
}

async fn the_newest_of_a_key_is_heard(test: TestDb) {
    let channel = Lossy::open(&test.db, "test", PACE);
    let (mut listener, mut other) = (channel.listen(), channel.listen());
    for value in 0..=10_000 {
        channel.send("a", value);
        channel.send("b", -value);
    }
    let heard = until(&mut listener, "a", 10_000).await;
    assert!(heard.len() < 100 && heard.is_sorted(), "{heard:?}");
    until(&mut other, "b", -10_000).await;
}

async fn other_nodes_hear_it(test: TestDb) {
    let other_db = node_with_own_clock(&test).await;
    let here = Lossy::open(&test.db, "test", PACE);
    let there = if test.db.is_single_node() { here.clone() } else { Lossy::open(&other_db, "test", PACE) };
    let elsewhere = Lossy::<i64>::open(&other_db, "test 2", PACE);
    let (mut listener, mut own, mut deaf) = (there.listen(), here.listen(), elsewhere.listen());
    for key in 0..1_000 {
        here.send(format!("a key that is long enough for many notes {key}"), key);
    }
    here.send("last", 1);
    until(&mut listener, "last", 1).await;
    until(&mut own, "last", 1).await;
    there.send("back", 2);
    // What a node sent does not come back to it from the database.
    assert_eq!(until(&mut own, "back", 2).await, [2]);
    elsewhere.send("own", 3);
    assert_eq!(until(&mut deaf, "own", 3).await, [3], "another channel's signals are not heard");
}

async fn what_no_note_can_carry_is_heard_here_alone(test: TestDb) {
    let other_db = node_with_own_clock(&test).await;
    let (here, there) = (Lossy::open(&test.db, "test", PACE), Lossy::<String>::open(&other_db, "test", PACE));
    let (mut own, mut listener) = (here.listen(), there.listen());
    here.send("large", "x".repeat(LONGEST_NOTE));
    here.send("small", "y".to_owned());
    for key in ["large", "small"] {
        let heard = soon("the signal", own.next()).await.unwrap();
        assert!(matches!(heard, Heard::Signal(signal) if signal.key == key));
    }
    if !test.db.is_single_node() {
        let heard = soon("the signal", listener.next()).await.unwrap();
        assert!(matches!(heard, Heard::Signal(signal) if signal.key == "small"));
    }
}

async fn nobody_waits_for_a_slow_listener(test: TestDb) {
    let channel = Lossy::open(&test.db, "test", Duration::from_millis(1));
    let mut slow = channel.listen();
    let mut quick = channel.listen();
    for round in 0..8 {
        for key in 0..1_000 {
            channel.send(key.to_string(), round);
        }
        until(&mut quick, "999", round).await;
    }
    assert!(matches!(slow.next().await.unwrap(), Heard::Missed(count) if count >= 3_000));
    let mut rest = 0;
    while let Heard::Signal(signal) = soon("the rest", slow.next()).await.unwrap() {
        rest += 1;
        if (signal.key.as_str(), signal.signal) == ("999", 7) {
            break;
        }
    }
    assert!((3_000..=4_096).contains(&rest), "{rest}");
    drop(channel);
    assert_eq!(soon("the end", slow.next()).await, None);
}

on_both_engines!(
    MIGRATIONS: the_newest_of_a_key_is_heard,
    other_nodes_hear_it,
    what_no_note_can_carry_is_heard_here_alone,
    nobody_waits_for_a_slow_listener,
);
