//! What an older release has written is read by this one: archives of apps, and backups.
//!
//! The older state is made of a present one: the migrations stop early, and of every row there is what the tables had then.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::Method;
use kernel::AppId;
use serde_json::{Value, json};
use service::{MIGRATIONS, installation::restore};
use store::{
    ColumnType, DatabaseUrl, Db, Limits, RawCell,
    testing::{SchemaTable, schema},
};
use testkit::{Caller, OPERATOR_KEY, Person, Site, TestApp, on_both_engines};
use vault::{Keyring, Place};

use super::archives::{self, KEY, rewritten};

on_both_engines!(an_older_releases_archive_is_imported, an_older_releases_backup_is_restored);

/// Releases by the first migration that they did not have: before subscriptions were kept, before imports and files, and the
/// one before this.
fn releases() -> [usize; 3] {
    let before = |name: &str| MIGRATIONS.iter().position(|migration| migration.name == name).expect("it is known");
    [before("subscriptions"), before("imports"), MIGRATIONS.len() - 1]
}

/// A table as it was, with the rows of the app. Sealed values stand open in them, as they do in archives.
struct OlderTable {
    table: SchemaTable,
    sealed: Vec<Value>,
    rows: Vec<Vec<Value>>,
}

/// A store with the schema of then.
async fn older_store(site: &Site, steps: usize) -> Db {
    let options = site.options();
    let url = DatabaseUrl::Sqlite(site.folder().join(format!("older-{steps}.db")));
    let (clock, entropy) = (options.clock, options.entropy);
    let db = Db::open(store::Options { url, clock, entropy, limits: Limits::default() }).await.expect("opens");
    db.migrate(&MIGRATIONS[..steps]).await.expect("the schema of then");
    db
}

/// What a column held that there is no more.
fn unknown(kind: ColumnType) -> Value {
    match kind {
        ColumnType::Text => json!(""),
        ColumnType::Int | ColumnType::Bool => json!(0),
        ColumnType::Real => json!({ "real": "0e0" }),
        ColumnType::Bytes => json!({ "bytes": "" }),
    }
}

fn older_tables(app: AppId, archive: &[u8], schema: &[SchemaTable]) -> Vec<OlderTable> {
    let mut older = Vec::new();
    for (part, rows) in archives::tables(archive) {
        let Some(table) = schema.iter().find(|table| part["name"] == table.name.as_str()) else { continue };
        let columns = part["columns"].as_array().expect("columns");
        let place = |name: &str| columns.iter().position(|column| column == name);
        let then = |row: &Vec<Value>| {
            let cell = |(name, kind): &(String, ColumnType)| match (table.name.as_str(), name.as_str()) {
                // What the workspace had bought stood here then.
                ("tenants", "plan_key") => json!("pro"),
                // A number stands for it today, and the last time is not written where it is the first.
                ("event_firsts" | "event_ingest_ids", "app_id") => json!(app),
                ("event_firsts", "last_at") => {
                    let at = |name: &str| row[place(name).expect("a time")].clone();
                    if at("last_at").is_null() { at("first_at") } else { at("last_at") }
                }
                _ => place(name).map_or_else(|| unknown(*kind), |place| row[place].clone()),
            };
            table.columns.iter().map(cell).collect()
        };
        let sealed = part["sealed"].as_array().into_iter().flatten();
        let sealed = sealed.filter(|sealed| sealed["column"].as_str().is_some_and(|name| table.has(name)));
        older.push(OlderTable {
            table: SchemaTable { name: table.name.clone(), columns: table.columns.clone() },
            sealed: sealed.cloned().collect(),
            rows: rows.iter().map(then).collect(),
        });
    }
    older
}

/// The archive that a release of then would have made.
async fn older_archive(app: &TestApp, archive: &[u8], steps: usize) -> Vec<u8> {
    let db = older_store(app.site(), steps).await;
    let tables = older_tables(app.app_id(), archive, &schema(&db).await);
    db.close().await;
    rewritten(archive, |manifest, parts| {
        parts.clear();
        manifest["schema"] = json!(MIGRATIONS[steps - 1].number);
        let mut described = Vec::new();
        for OlderTable { table, sealed, rows } in tables {
            let lines: String = rows.iter().map(|row| Value::from(row.clone()).to_string() + "\n").collect();
            let columns: Vec<&String> = table.columns.iter().map(|(name, _)| name).collect();
            described.push(json!({
                "name": table.name, "columns": columns, "sealed": sealed, "rows": rows.len(), "bytes": lines.len(),
                "sha256": vault::sha256_hex(lines.as_bytes()),
            }));
            parts.extend_from_slice(lines.as_bytes());
        }
        manifest["tables"] = Value::Array(described);
    })
}

/// An app with people, keys and rows whose meaning later migrations changed.
async fn app_of_then(app: &TestApp) -> Person {
    let ada = app.owner("ada@example.com").await;
    app.member("bob@example.com", ada.tenant, "MEMBER").await;
    let connection = json!({
        "type": "oidc", "name": "Directory", "issuer": "https://idp.example", "clientId": "c", "clientSecret": "s",
    });
    app.key().post("/account/federation/connection", connection).await.expect(201);
    app.operator().post(&format!("/admin/apps/{}/flags", app.app_id()), json!({ "key": "new-look" })).await.expect(201);
    app.drain().await;
    ada
}

/// What is the same whichever release it came from; plans have a test of their own.
async fn answers(app: AppId, ada: &Person, operator: &Caller, key: &Caller) -> BTreeMap<String, Value> {
    let there = key.header("x-tenant-id", &ada.tenant.to_string());
    let mut answers = BTreeMap::new();
    for (caller, path) in [
        (operator, format!("/admin/apps/{app}/keys")),
        (operator, format!("/admin/apps/{app}/flags")),
        (key, "/account/app".to_owned()),
        (key, "/account/role".to_owned()),
        (key, "/account/payments/plan".to_owned()),
        (&there, "/account/tenant/user".to_owned()),
    ] {
        let mut answer = caller.get(&path).await.expect(200).json();
        for member in answer.as_array_mut().into_iter().flatten().filter(|entry| entry.get("tenant").is_some()) {
            member["tenant"]["plan"] = Value::Null;
        }
        answers.insert(path, answer);
    }
    answers
}

/// Signed in, with the subscription that a migration made of the plan.
async fn goes_on(service: &service::Service, app: &TestApp, ada: &Person, key: &Caller) {
    let paid = key.get(&format!("/account/tenant/{}/paymentDetails", ada.tenant)).await.expect(200);
    assert_eq!(paid.text("/planKey"), "pro", "{}", paid.body());
    let body = json!({ "username": ada.email, "password": ada.password, "appId": app.app_id(), "mode": "sdk" });
    let page = Caller::new(service.app()).header("origin", testkit::PAGE);
    page.post("/auth/auth/authenticate", body).await.expect(200);
    service.drain().await.expect("drained");
}

async fn an_older_releases_archive_is_imported(app: TestApp) {
    let ada = app_of_then(&app).await;
    let path = format!("/admin/apps/{}/export", app.app_id());
    let archive = app.operator().post(&path, json!({ "key": KEY })).await.expect(200).bytes().to_vec();
    let before = answers(app.app_id(), &ada, &app.operator(), &app.key()).await;
    for steps in releases() {
        let older = older_archive(&app, &archive, steps).await;
        let site = Site::empty(app.site().engine());
        let service = site.open(|_| {}).await.expect("opens");
        let operator = Caller::new(service.app()).with_operator_key(OPERATOR_KEY);
        let import = operator.header("x-archive-key", KEY).send(Method::POST, "/admin/apps/import", older).await;
        assert_eq!(import.expect(200).at("/imported"), json!(true), "{steps}");
        let key = Caller::new(service.app()).with_api_key(app.app_id(), &app.key().header_sent("x-api-key"));
        assert_eq!(answers(app.app_id(), &ada, &operator, &key).await, before, "{steps}");
        if MIGRATIONS[steps].name == "subscriptions" {
            goes_on(&service, &app, &ada, &key).await;
        }
        service.close().await;
    }
}

/// A cell as it is stored, and sealed where it has to be.
fn stored(keyring: &Keyring, app: AppId, table: &OlderTable, row: &[Value], at: usize) -> RawCell {
    let name = &table.table.columns[at].0;
    let text = |member: &str| row[at][member].as_str().map(str::to_owned);
    let bytes = |text: String| BASE64_STANDARD.decode(text).expect("base64");
    if let Some(secret) = text("secret") {
        let sealed = table.sealed.iter().find(|sealed| sealed["column"] == name.as_str()).expect("it is sealed");
        let place = table.table.columns.iter().position(|(column, _)| sealed["row"] == column.as_str());
        let owner = row[place.expect("a row's name")].as_str().expect("a name");
        let place = Place { table: &table.table.name, column: name, row: owner, app: Some(app) };
        return RawCell::Text(keyring.seal(&place, &bytes(secret)));
    }
    match &row[at] {
        Value::Null => RawCell::Null,
        Value::Number(number) => RawCell::Int(number.as_i64().expect("a whole number")),
        Value::String(text) => RawCell::Text(text.clone()),
        _ => match text("real") {
            Some(number) => RawCell::Real(number.parse().expect("a number")),
            None => RawCell::Bytes(bytes(text("bytes").expect("bytes"))),
        },
    }
}

async fn put(db: &Db, table: &str, columns: &[String], rows: Vec<Vec<RawCell>>) {
    let tables = db.read(|tx| tx.raw_tables()).await.expect("the tables");
    let raw =
        tables.into_iter().find(|raw| raw.name() == table).and_then(|raw| raw.in_order(columns)).expect("a table");
    db.write(move |tx| tx.insert_raw(&raw, &rows)).await.expect("rows of then");
}

/// A store of then, with the app and with what the installation says of itself.
async fn older_installation(app: &TestApp, archive: &[u8], steps: usize) -> Db {
    let (db, core) = (older_store(app.site(), steps).await, app.service());
    let keyring = &core.core().keyring;
    for older in older_tables(app.app_id(), archive, &schema(&db).await) {
        let columns: Vec<String> = older.table.columns.iter().map(|(name, _)| name.clone()).collect();
        let cells =
            |row: &Vec<Value>| (0..row.len()).map(|at| stored(keyring, app.app_id(), &older, row, at)).collect();
        put(&db, &older.table.name, &columns, older.rows.iter().map(cells).collect()).await;
    }
    let query = "SELECT name, value, created_at FROM installation ORDER BY name";
    let own = core.core().db.read(move |tx| tx.all::<(String, String, i64)>(query, &[])).await.expect("its own rows");
    let own =
        own.into_iter().map(|(name, value, at)| vec![RawCell::Text(name), RawCell::Text(value), RawCell::Int(at)]);
    put(&db, "installation", &["name", "value", "created_at"].map(str::to_owned), own.collect()).await;
    db
}

async fn an_older_releases_backup_is_restored(app: TestApp) {
    let ada = app_of_then(&app).await;
    let path = format!("/admin/apps/{}/export", app.app_id());
    let archive = app.operator().post(&path, json!({ "key": KEY })).await.expect(200).bytes().to_vec();
    let before = answers(app.app_id(), &ada, &app.operator(), &app.key()).await;
    let keyring = app.service().core().keyring.clone();
    for steps in releases() {
        let db = older_installation(&app, &archive, steps).await;
        let file = app.site().folder().join(format!("older-{steps}.sqlite"));
        let check = [("master_key_check", keyring.check_value())];
        db.backup_to(&file, &check, None, keyring.backup_key(), &MIGRATIONS[..steps]).await.expect("a backup of then");
        db.close().await;

        let site = Site::empty(app.site().engine());
        restore(site.options(), &file).await.expect("restored");
        let service = site.open(|_| {}).await.expect("opens");
        let operator = Caller::new(service.app()).with_operator_key(OPERATOR_KEY);
        let key = Caller::new(service.app()).with_api_key(app.app_id(), &app.key().header_sent("x-api-key"));
        assert_eq!(answers(app.app_id(), &ada, &operator, &key).await, before, "{steps}");
        if MIGRATIONS[steps].name == "subscriptions" {
            goes_on(&service, &app, &ada, &key).await;
        }
        service.close().await;
    }
}
