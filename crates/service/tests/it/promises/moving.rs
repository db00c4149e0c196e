//! From the embedded store to PostgreSQL: everything answers as before, and nobody writes to the old store by mistake.

use std::{collections::BTreeMap, sync::Arc};

use kernel::{Code, Entropy, Error, Result};
use service::{
    MIGRATIONS, Options,
    installation::{estimate_move, migrate_to},
};
use store::{
    Db, Moved, args,
    testing::{Template, TestStore},
};
use testkit::{EngineName, Site, TestApp, on_one_engine};
use vault::MasterKey;

use super::filled::{self, Filled};

on_one_engine!(
    a_moved_installation_answers_as_before,
    the_old_store_is_marked,
    a_run_that_was_cut_off_starts_over,
    a_move_is_refused_where_it_would_do_harm,
);

async fn move_to(options: Options, target: &Site) -> Result<Moved> {
    migrate_to(options, target.database().clone(), Arc::new(|_| ())).await
}

async fn a_moved_installation_answers_as_before(app: TestApp) {
    let mut filled = Filled::new(app.clone()).await;
    let before = filled.told_and_complete().await;
    let counts = counts(&app).await;

    app.expect_failures();
    app.service().close().await;
    let target = Site::empty(EngineName::Postgres);
    let estimate = estimate_move(app.site().options(), target.database().clone()).await.expect("estimated");
    let moved = move_to(app.site().options(), &target).await.expect("moved");
    assert_eq!((estimate.rows, estimate.tables), (moved.rows, moved.tables));
    app.restart_with(|options| {
        options.database = target.database().clone();
        filled.around.known_to(options);
    })
    .await;
    assert_eq!(self::counts(&app).await, counts);
    let after = filled.answers(&filled.user(&filled.held)).await;
    filled::assert_same(&before, &after);
    // Whoever was signing in goes on, and so does whatever was begun.
    filled.ada.exchange(&filled.under_way).await.expect(200);
    testkit::tokens::refresh(&app, &filled.held.refresh).await.expect(200);
    filled.everybody_goes_on().await;
    app.workspace("after").await;
    app.drain().await;
    app.restart_with(|options| {
        options.after_move = true;
        filled.around.known_to(options);
    })
    .await;
}

/// Rows by table, but for leases, which a service gives back when it stops.
async fn counts(app: &TestApp) -> BTreeMap<String, u64> {
    let db = app.service().core().db.clone();
    let mut counts = BTreeMap::new();
    for (_, tables) in service::TABLES {
        for table in tables.iter().filter(|table| table.name != "leases") {
            let sql: &'static str = format!("SELECT count(*) FROM {}", table.name).leak();
            let (count,): (i64,) = db.read(move |tx| tx.one(sql, &[])).await.expect("a count");
            counts.insert(table.name.to_owned(), count.unsigned_abs());
        }
    }
    counts
}

async fn the_old_store_is_marked(app: TestApp) {
    app.expect_failures();
    app.service().close().await;
    let target = Site::empty(EngineName::Postgres);
    move_to(app.site().options(), &target).await.expect("moved");
    let refused = app.site().open(|_| {}).await.err().expect("refused");
    assert!(refused.public().starts_with(&format!("This store was moved to {}", target.database())), "{refused:?}");
    let again = Site::empty(EngineName::Postgres);
    assert!(refusal(move_to(app.site().options(), &again).await).public().contains("already"));
    app.restart_with(|options| options.after_move = true).await;
    app.key().get("/account/app").await.expect(200);
    app.restart().await;
    app.key().get("/account/app").await.expect(200);
}

async fn a_run_that_was_cut_off_starts_over(app: TestApp) {
    app.expect_failures();
    app.service().close().await;
    let target = Site::empty(EngineName::Postgres);
    move_to(app.site().options(), &target).await.expect("moved");
    // As if it had been killed before it took its own mark away.
    const PUT: &str = "INSERT INTO installation (name, value, created_at) VALUES ($1, $2, $3) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    let Options { database, clock, entropy, store_limits: limits, .. } = target.options();
    let db = Db::open(store::Options { url: database, clock, entropy, limits }).await.expect("opens");
    db.write(|tx| tx.run(PUT, &args!["move_unfinished", "", tx.now()])).await.expect("marked");
    db.close().await;
    move_to(app.site().options(), &target).await.expect("moved again");
    refusal(move_to(app.site().options(), &target).await);
    app.restart_with(|options| options.database = target.database().clone()).await;
    app.key().get("/account/app").await.expect(200);
    app.restart_with(|options| options.after_move = true).await;
}

#[track_caller]
fn refusal(outcome: Result<Moved>) -> Error {
    let refused = outcome.expect_err("refused");
    assert_ne!(refused.code(), Code::Internal, "{refused:?}");
    refused
}

async fn a_move_is_refused_where_it_would_do_harm(app: TestApp) {
    let target = Site::empty(EngineName::Postgres);
    let told = async |options: Options, target: &Site| refusal(move_to(options, target).await).public().to_owned();
    let running = told(app.site().options(), &target).await;
    assert!(running.contains("Stop it first"), "{running}");
    app.expect_failures();
    app.service().close().await;
    let mut options = app.site().options();
    options.keys.master = Some(MasterKey::generate(&Entropy::os()).to_text());
    assert!(told(options, &target).await.contains("The master key is not the one"));
    assert!(told(app.site().options(), &Site::migrated(EngineName::Postgres)).await.contains("not empty"));
    assert!(told(app.site().options(), &Site::empty(EngineName::Sqlite)).await.contains("postgres://"));
    assert!(told(target.options(), &target).await.contains("on PostgreSQL already"));
    let older = Template { migrations: &MIGRATIONS[..MIGRATIONS.len() - 1], content: None };
    let older = TestStore::create(EngineName::Sqlite, older);
    let mut options = app.site().options();
    options.database = older.url.clone();
    assert!(told(options, &target).await.contains("older release"));
    app.restart().await;
    app.key().get("/account/app").await.expect(200);
}
