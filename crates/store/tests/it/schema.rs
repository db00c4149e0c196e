//! The tables of these tests and the few statements that most of them use.

use kernel::Result;
use store::{Db, Migration, Tx, args};

pub(crate) const MIGRATIONS: &[Migration] = &[
    // Entries have no unique key, so that a write made twice would show; totals count them within the same closure, so
    // that half a closure would show.
    Migration::shared(
        1,
        "entries",
        "CREATE TABLE entries (id {int} NOT NULL, shard {int} NOT NULL CHECK (shard >= 0)) {strict};
         CREATE INDEX entries_by_id ON entries (id);
         CREATE TABLE totals (shard {int} PRIMARY KEY, n {int} NOT NULL) {strict};
         CREATE TABLE names (name {key} PRIMARY KEY, n {int} NOT NULL) {strict};",
    ),
    Migration::shared(
        2,
        "things",
        "CREATE TABLE things (id {key} PRIMARY KEY, number {int}, ratio {real}, flag {bool}, body TEXT, data {bytes}) {strict};
         CREATE TABLE notes (id {key} PRIMARY KEY, thing {key} REFERENCES things (id) DEFERRABLE INITIALLY DEFERRED,
                             parent {key} REFERENCES notes (id)) {strict};",
    ),
];

pub(crate) const SHARDS: i64 = 16;

/// Stores an entry and counts it: two statements that belong together.
pub(crate) fn add_entry(tx: &mut Tx<'_>, id: i64) -> Result<()> {
    tx.exec("INSERT INTO entries (id, shard) VALUES ($1, $2)", &args![id, id % SHARDS])?;
    tx.exec(
        "INSERT INTO totals (shard, n) VALUES ($1, 1) ON CONFLICT (shard) DO UPDATE SET n = totals.n + 1",
        &args![id % SHARDS],
    )?;
    Ok(())
}

pub(crate) fn add_name(tx: &mut Tx<'_>, name: &str) -> Result<u64> {
    tx.exec("INSERT INTO names (name, n) VALUES ($1, 0)", &args![name])
}

/// All entries in order, after checking that no closure was stored by half.
pub(crate) async fn entries(db: &Db) -> Vec<i64> {
    let (ids, counted) = db
        .snapshot(|tx| {
            let ids: Vec<(i64,)> = tx.all("SELECT id FROM entries ORDER BY id", &[])?;
            let (counted,): (i64,) = tx.one("SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM totals", &[])?;
            Ok((ids, counted))
        })
        .await
        .expect("entries can be read");
    assert_eq!(ids.len() as i64, counted, "entries and their totals differ: half a closure was stored");
    ids.into_iter().map(|(id,)| id).collect()
}

pub(crate) async fn names(db: &Db) -> Vec<String> {
    let names = db.read(|tx| tx.all::<(String,)>("SELECT name FROM names ORDER BY name", &[])).await;
    names.expect("names can be read").into_iter().map(|(name,)| name).collect()
}
