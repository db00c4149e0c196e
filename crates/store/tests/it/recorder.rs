//! Test builds write down each distinct statement with the engine it ran on.

use std::fs;

use store::{on_both_engines, testing::TestDb};

use crate::{
    child,
    schema::{MIGRATIONS, entries},
};

on_both_engines!(MIGRATIONS: statements_are_written_down_once);

async fn statements_are_written_down_once(mut test: TestDb) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("a temporary folder's path is text");
    test.db.close().await;
    let mut child = child::start("write once", &test.url, 1, &[("TENANTRY_RECORD_STATEMENTS", path)]);
    let pid = child.id();
    assert!(child.wait().expect("the child ends").success());
    let sheet = folder.path().join(format!("{}-{pid}.txt", test.db.engine()));
    let lines = fs::read_to_string(sheet).expect("statements were written down");
    let inserts = lines.lines().filter(|line| line.starts_with("\"INSERT INTO entries (id, shard) VALUES")).count();
    assert_eq!(inserts, 1, "{lines}");
    test.reopen().await;
    assert_eq!(entries(&test.db).await, [1]);
}
