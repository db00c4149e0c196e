//! From the embedded store to PostgreSQL: everything answers as before, and nobody writes to the old store by mistake.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use kernel::{Code, Entropy, Error, Result};
use serde_json::{Value, json};
use service::{
    MIGRATIONS, Options,
    installation::{estimate_move, migrate_to},
};
use store::{
    Db, Moved, args,
    testing::{Template, TestStore},
};
use testkit::{Caller, EngineName, Site, TestApp, Workspace, on_one_engine};
use vault::MasterKey;
use web::Access;

on_one_engine!(
    a_moved_installation_answers_as_before,
    the_old_store_is_marked,
    a_run_that_was_cut_off_starts_over,
    a_move_is_refused_where_it_would_do_harm,
);

/// Answers that differ from one call to the next.
const VARYING: [&str; 3] = ["/metrics", "/admin/doctor", "/webhooks/event-types"];

async fn move_to(options: Options, target: &Site) -> Result<Moved> {
    migrate_to(options, target.database().clone(), Arc::new(|_| ())).await
}

/// Something in every room.
pub(super) async fn fill(app: &TestApp, acme: &Workspace) {
    let (id, key, owner) = (app.app_id(), acme.key(), acme.owner());
    let operator = async |path: &str, body: Value| {
        let answer = app.operator().post(&format!("/admin/apps/{id}/{path}"), body).await;
        assert!(answer.status() < 300, "{path}: {answer:?}");
    };
    acme.add("bob@example.com", "MEMBER").await;
    acme.token(&["USER_READ"]).await;
    operator("flags", json!({ "key": "new-look" })).await;
    operator("flag-groups", json!({ "key": "beta", "name": "Beta \\ ä 😀" })).await;
    operator("webhook/endpoints", json!({ "url": "https://hooks.example" })).await;
    app.key().post("/account/federation/connection", json!({ "name": "Acme", "loginUrl": "https://idp.example", "certificate": testkit::IdentityProvider::valid_for("https://idp.example/", 90).certificate })).await.expect(201);
    owner.post("/billing/subscriptions", json!({})).await.expect(201);
    key.post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    let event = json!({ "appId": id, "eventName": "seen", "timestamp": "2026-01-01T00:00:00Z", "parameters": {} });
    app.key().header("prefer", "wait").post("/event-log", event).await.expect(201);
    let batch = json!([{ "tenant": { "owner": { "username": "eve@example.com" }, "name": "Bolt" }, "users": [] }]);
    app.key().post("/account/import/tenants", batch).await.expect(200);
    let form = testkit::files::prepare(&key, "plan.txt", "text/plain").await;
    testkit::files::post(app, &form, b"bytes").await.expect(204);
    let finish = json!({ "key": form["key"], "persist": true, "publicFile": true });
    key.post("/account/tenant/upload/finish", finish).await.expect(200);
    app.drain().await;
}

fn compared(access: Access, path: &str) -> bool {
    access != Access::Public && !VARYING.contains(&path) && !super::conventions::ENDLESS.contains(&path)
}

/// What every route that reads answers to those who may read.
pub(super) async fn answers(app: &TestApp, acme: &Workspace, user: &Caller) -> BTreeMap<String, (u16, String)> {
    let mut answers = BTreeMap::new();
    let reading = service::route_table().into_iter().filter(|route| route.method == Method::GET);
    for route in reading.filter(|route| compared(route.access, route.path)) {
        let filled =
            route.path.replace("{tenant_id}", &acme.id.to_string()).replace("{workspace_id}", &acme.id.to_string());
        let path = testkit::routes::path(app, &filled);
        for (name, caller) in [("operator", app.operator()), ("key", acme.key()), ("user", user.clone())] {
            let answer = caller.get(&path).await;
            let is_json = answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
            let body = if is_json { testkit::redacted(&answer.json()) } else { String::new() };
            answers.insert(format!("{name} {path}"), (answer.status(), body));
        }
    }
    answers
}

async fn a_moved_installation_answers_as_before(app: TestApp) {
    let acme = app.workspace("acme").await;
    fill(&app, &acme).await;
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    let user = |app: &TestApp| app.anon().with_access_token(app.app_id(), &tokens.access);
    app.drain().await;
    let mut before = answers(&app, &acme, &user(&app)).await;
    let again = answers(&app, &acme, &user(&app)).await;
    let all = before.len();
    // A link that is made for each call cannot be compared.
    before.retain(|route, answer| again[route] == *answer);
    assert!(all - before.len() < 8, "{} answers vary", all - before.len());
    let read = before.values().filter(|(status, _)| *status == 200).count();
    assert!(read > 40, "{read} answers with something in them");
    let counts = counts(&app).await;

    app.expect_failures();
    app.service().close().await;
    let target = Site::empty(EngineName::Postgres);
    let estimate = estimate_move(app.site().options(), target.database().clone()).await.expect("estimated");
    let moved = move_to(app.site().options(), &target).await.expect("moved");
    assert_eq!((estimate.rows, estimate.tables), (moved.rows, moved.tables));
    app.restart_with(|options| options.database = target.database().clone()).await;
    assert_eq!(self::counts(&app).await, counts);
    let after = answers(&app, &acme, &user(&app)).await;
    for (route, before) in &before {
        assert_eq!(&after[route], before, "{route}");
    }
    testkit::tokens::refresh(&app, &tokens.refresh).await.expect(200);
    ada.log_in().await.expect(200);
    app.workspace("after").await;
    app.drain().await;
    app.restart_with(|options| options.after_move = true).await;
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
