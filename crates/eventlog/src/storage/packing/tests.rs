use store::{Migration, on_both_engines, testing::TestDb};

use super::*;
use crate::LoggedEventId;

const MIGRATIONS: &[Migration] = &[
    Migration::shared(1, "events", include_str!("../../../../service/migrations/0026_eventlog.sql")),
    Migration::shared(2, "keeping", include_str!("../../../../service/migrations/0039_event_keeping.sql")),
    Migration::shared(3, "chain", include_str!("../../../../service/migrations/0040_event_chain.sql")),
    Migration::shared(4, "sinks", include_str!("../../../../service/migrations/0042_event_sinks.sql")),
    Migration::shared(5, "blocks", include_str!("../../../../service/migrations/0043_event_blocks.sql")),
];

on_both_engines!(MIGRATIONS: rows_that_were_changed_meanwhile_are_not_packed, only_one_of_two_packs);

const APP: AppId = AppId::from_u128(7);
const SERIES: Series = Series { app: APP, name: 1 };

/// Rows that are old enough.
async fn store_rows(db: &Db) {
    db.write(|tx| {
        for number in 0..300_u128 {
            let insert = "INSERT INTO event_rows (id, app_id, name_id, happened_at, ingested_at, audited, parameters) \
                          VALUES ($1, $2, 1, 5, 5, FALSE, '{}')";
            tx.run(insert, &args![LoggedEventId::from_u128(number), APP])?;
        }
        count_rows(tx, APP, &HashMap::from([(1, 300)]))
    })
    .await
    .expect("stored");
}

async fn rows_and_blocks(db: &Db) -> (i64, i64) {
    let count = |tx: &mut Tx<'_>| {
        let (rows,) = tx.one::<(i64,)>("SELECT count(*) FROM event_rows", &[])?;
        Ok((rows, tx.one::<(i64,)>("SELECT count(*) FROM event_blocks", &[])?.0))
    };
    db.read(count).await.expect("counted")
}

async fn worked_out(db: &Db, now: Timestamp) -> Packed {
    db.scan(move |tx| work_out(tx, now)).await.expect("worked out").expect("something is due")
}

async fn rows_that_were_changed_meanwhile_are_not_packed(test: TestDb) {
    let db = test.db;
    store_rows(&db).await;
    let later = db.clock().now().plus(OLD);
    let packed = worked_out(&db, later).await;
    db.write(|tx| rows_rewritten(tx, SERIES)).await.expect("changed");
    db.write(move |tx| write(tx, &packed, later)).await.expect("written");
    assert_eq!(rows_and_blocks(&db).await, (300, 0));
    let packed = worked_out(&db, later).await;
    db.write(move |tx| write(tx, &packed, later)).await.expect("written");
    assert_eq!(rows_and_blocks(&db).await, (0, 1));
    assert!(db.scan(move |tx| work_out(tx, later)).await.expect("worked out").is_none());
}

async fn only_one_of_two_packs(test: TestDb) {
    let (db, other) = (test.db.clone(), test.another_node().await);
    store_rows(&db).await;
    let later = db.clock().now().plus(OLD);
    let (one, two) = (worked_out(&db, later).await, worked_out(&other, later).await);
    let (first, second) =
        tokio::join!(db.write(move |tx| write(tx, &one, later)), other.write(move |tx| write(tx, &two, later)));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(rows_and_blocks(&db).await, (0, 1));
}
