//! A process killed under load loses no write that it acknowledged, and stores none twice or by half.

use std::{
    collections::HashSet,
    io::{BufRead as _, BufReader, Read},
};

use kernel::Entropy;
use store::{on_both_engines, testing::TestDb};

use crate::{
    child,
    schema::{MIGRATIONS, entries},
};

on_both_engines!(MIGRATIONS: acknowledged_writes_survive_sigkill);

const ROUNDS: i64 = 5;

async fn acknowledged_writes_survive_sigkill(mut test: TestDb) {
    let mut acknowledged = HashSet::new();
    for round in 0..ROUNDS {
        test.db.close().await;
        let mut child = child::start("write until killed", &test.url, round * 10_000_000, &[]);
        let output = child.stdout.take().expect("the output is piped");
        let kill_after = 200 + usize::from(u16::from_be_bytes(Entropy::os().bytes())) % 2_000;
        let acks = read_acks(output, kill_after, || child.kill().expect("SIGKILL can be sent"));
        child.wait().expect("the child ends");
        assert!(acks.len() >= kill_after, "the child ended by itself after {} acknowledgements", acks.len());
        acknowledged.extend(acks);

        test.reopen().await;
        let stored = entries(&test.db).await;
        let distinct: HashSet<i64> = stored.iter().copied().collect();
        assert_eq!(stored.len(), distinct.len(), "a write was stored twice");
        let missing: Vec<_> = acknowledged.difference(&distinct).collect();
        assert!(missing.is_empty(), "round {round}: acknowledged but missing: {missing:?}");
        println!("{round}: killed after {kill_after}, {} acknowledged, {} stored", acknowledged.len(), stored.len());
    }
}

/// Everything the child managed to say, with the blow in between.
fn read_acks(output: impl Read, kill_after: usize, kill: impl FnOnce()) -> Vec<i64> {
    let mut kill = Some(kill);
    let mut acks = Vec::new();
    for line in BufReader::new(output).lines() {
        // The test harness of the child says a few words of its own, the first of them on the same line as an ack.
        let line = line.expect("the pipe can be read");
        let Some((_, id)) = line.split_once("ack ") else { continue };
        acks.push(id.parse().expect("acknowledgements are numbers"));
        if acks.len() == kill_after
            && let Some(kill) = kill.take()
        {
            kill();
        }
    }
    acks
}
