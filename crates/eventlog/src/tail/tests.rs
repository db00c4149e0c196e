use store::{
    DatabaseUrl, Migration, on_both_engines,
    testing::{TestDb, sqlite_plans},
};

use super::*;

const MIGRATIONS: &[Migration] = &[
    Migration::shared(1, "events", include_str!("../../../service/migrations/0026_eventlog.sql")),
    Migration::shared(2, "sinks", include_str!("../../../service/migrations/0042_event_sinks.sql")),
];

on_both_engines!(MIGRATIONS: a_look_reads_rows_only_after_a_fold, a_look_walks_over_the_last_seconds_only);

const APP: AppId = AppId::from_u128(7);
const OTHER: AppId = AppId::from_u128(8);

/// A fold of one event.
fn folded(tx: &mut Tx<'_>, app: AppId, id: u128) -> Result<()> {
    let insert = "INSERT INTO event_rows (id, app_id, name_id, happened_at, ingested_at, audited, parameters) \
                  VALUES ($1, $2, 1, 5, 5, FALSE, '{}')";
    tx.run(insert, &args![LoggedEventId::from_u128(id), app])?;
    let fold = "INSERT INTO event_folds (app_id, revision) VALUES ($1, 1) \
                ON CONFLICT (app_id) DO UPDATE SET revision = event_folds.revision + 1";
    tx.run(fold, &args![app])
}

async fn looked(db: &Db, known: Option<i64>) -> Option<(i64, Vec<u128>)> {
    let found = db.scan(move |tx| recent(tx, APP, LoggedEventId::from_u128(10), known)).await.expect("looked");
    found.map(|(fold, events)| (fold, events.iter().map(|event| event.id().as_u128()).collect()))
}

async fn a_look_reads_rows_only_after_a_fold(test: TestDb) {
    let db = test.db;
    assert_eq!(looked(&db, None).await, Some((0, vec![])));
    db.write(|tx| [5, 11, 12].into_iter().try_for_each(|id| folded(tx, APP, id))).await.expect("folded");
    assert_eq!(looked(&db, Some(0)).await, Some((3, vec![12, 11])));
    db.write(|tx| folded(tx, OTHER, 13)).await.expect("folded");
    assert_eq!(looked(&db, Some(3)).await, None, "another app's fold");
    db.write(|tx| folded(tx, APP, 14)).await.expect("folded");
    assert_eq!(looked(&db, Some(3)).await, Some((4, vec![14, 12, 11])));
}

async fn a_look_walks_over_the_last_seconds_only(test: TestDb) {
    // PostgreSQL goes by what it measured.
    let DatabaseUrl::Sqlite(path) = &test.url else { return };
    let plan = sqlite_plans(path, &[RECENT.to_owned()]).concat();
    assert!(plan.contains("(id>?)") && !plan.contains("TEMP B-TREE"), "{plan}");
}
