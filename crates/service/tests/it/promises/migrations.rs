//! A release is rolled out node by node: the one before still runs while the new one has migrated already.

use store::testing::unprepared;
use testkit::{TestApp, on_both_engines};

on_both_engines!(the_last_releases_statements_suit_this_schema);

/// `migrations/README.md` says what to do when this fails, and when the file is written again.
const RELEASED: &str = include_str!("../../../migrations/released.jsonl");

async fn the_last_releases_statements_suit_this_schema(app: TestApp) {
    let statements: Vec<String> =
        RELEASED.lines().map(|line| serde_json::from_str(line).expect("a JSON string")).collect();
    assert!(statements.len() > 200, "the record has {} statements", statements.len());
    let broken = unprepared(&app.site().options().database, &statements);
    assert!(broken.is_empty(), "the release that still runs would fail on:\n{}", broken.join("\n"));
}
