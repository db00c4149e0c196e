//! Every table stands in a room's register, and a deletion leaves no row behind in any of them.

use std::{collections::BTreeSet, time::Duration};

use kernel::{AppId, UserId};
use serde_json::{Value, json};
use spine::purge::{self, Expected};
use store::{
    Arg, ColumnType, Db, Owner, Table, ToArg as _, args,
    testing::{SchemaTable, schema, statement},
};
use tenancy::facts::SessionsEnded;
use testkit::{TestApp, Workspace, on_both_engines};

on_both_engines!(
    every_table_is_registered_once,
    a_table_says_what_its_rows_belong_to,
    nothing_is_left_of_a_deleted_app,
    nothing_is_left_of_a_deleted_workspace_and_its_people,
    nothing_is_left_of_a_removed_person,
    who_belongs_elsewhere_keeps_everything,
    a_large_deletion_goes_on_beside_others_and_survives_being_cut_off,
    two_nodes_purge_together,
    what_is_expected_is_called_off_in_time_or_not_at_all,
    nothing_is_expected_where_something_is_being_deleted,
    what_has_expired_is_swept_and_nothing_else,
    what_has_expired_is_kept_for_as_long_as_its_register_says,
);

fn registered() -> impl Iterator<Item = &'static Table> {
    service::TABLES.iter().flat_map(|(_, tables)| *tables)
}

fn db(app: &TestApp) -> Db {
    app.service().core().db.clone()
}

async fn every_table_is_registered_once(app: TestApp) {
    let mut names: Vec<&str> = registered().map(|table| table.name).collect();
    names.sort_unstable();
    let mut there: Vec<String> = schema(&db(&app)).await.into_iter().map(|table| table.name).collect();
    there.sort_unstable();
    assert_eq!(names, there, "the registers (TABLES of each room) and the schema differ");
}

async fn a_table_says_what_its_rows_belong_to(app: TestApp) {
    for found in schema(&db(&app)).await {
        let table = registered().find(|table| table.name == found.name).expect("registered");
        for owner in [Owner::App, Owner::Workspace, Owner::Person, Owner::Secret] {
            let declared = table.purge_of(owner).is_some() || table.kept.is_some();
            let column = column_of(&found, owner);
            assert!(column.is_none() || declared, "{} has {}: whose is it?", table.name, owner.as_str());
        }
    }
}

/// The column that says which such owner a row belongs to.
fn column_of(table: &SchemaTable, owner: Owner) -> Option<&'static str> {
    let names: &[&'static str] = match owner {
        Owner::App => &["app_id", "app_number"],
        Owner::Workspace => &["tenant_id"],
        Owner::Person => &["user_id"],
        Owner::Secret => &["secret_id"],
    };
    names.iter().copied().find(|name| table.has(name))
}

/// Who is deleted.
#[derive(Clone)]
struct Owners {
    app: AppId,
    tenant: String,
    user: String,
}

impl Owners {
    fn of(app: &TestApp, workspace: &Workspace, member: &Value) -> Self {
        let user = member["userId"].as_str().expect("a person").to_owned();
        Self { app: app.app_id(), tenant: workspace.id.to_string(), user }
    }

    fn value(&self, column: &str) -> Option<Arg<'static>> {
        match column {
            "app_id" => Some(self.app.to_arg().into_owned()),
            "app_number" => Some(self.app.number().to_arg().into_owned()),
            "tenant_id" => Some(self.tenant.to_arg().into_owned()),
            "user_id" => Some(self.user.to_arg().into_owned()),
            _ => None,
        }
    }
}

/// Leaves a row of this owner in each table that can have one, as somebody does who was at work during the deletion.
/// Nobody can leave one in `app_keys`: it refers to its app.
async fn fill(app: &TestApp, owners: &Owners, by: Owner) -> BTreeSet<String> {
    let mut filled = BTreeSet::new();
    for (number, found) in (0..).zip(schema(&db(app)).await) {
        let table = registered().find(|table| table.name == found.name).expect("registered");
        if table.purge_of(by).is_some() && table.name != "app_keys" {
            insert(&db(app), &found, owners, number, FAR).await;
            filled.insert(found.name);
        }
    }
    filled
}

/// Far from any instant that a job looks for.
const FAR: i64 = 4_000_000_000_000_000;

async fn insert(db: &Db, table: &SchemaTable, owners: &Owners, number: i64, at: i64) {
    let names: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
    let places: Vec<String> = (1..=names.len()).map(|place| format!("${place}")).collect();
    let sql = format!("INSERT INTO {} ({}) VALUES ({})", table.name, names.join(", "), places.join(", "));
    let value = |(name, kind): &(String, ColumnType)| match (owners.value(name), kind) {
        (Some(owner), _) => owner,
        (None, ColumnType::Text) => Arg::Text(format!("row-{number}").into()),
        (None, ColumnType::Int) => Arg::Int(at),
        (None, ColumnType::Real) => Arg::Real(1.0),
        (None, ColumnType::Bool) => Arg::Bool(false),
        (None, ColumnType::Bytes) => Arg::Bytes(vec![1].into()),
    };
    let (sql, values): (_, Vec<_>) = (statement(sql), table.columns.iter().map(value).collect());
    db.write(move |tx| tx.run(sql, &values)).await.expect("a row can be left");
}

async fn count(db: &Db, table: &str, column: &str, owner: Arg<'static>) -> i64 {
    let sql = statement(format!("SELECT count(*) FROM {table} WHERE {column} = $1"));
    db.get_one::<(i64,)>(sql, &[owner]).await.expect("counted").expect("a count").0
}

/// Tables that still have a row of this owner.
async fn left(app: &TestApp, owners: &Owners, by: Owner) -> BTreeSet<String> {
    let mut left = BTreeSet::new();
    for table in schema(&db(app)).await {
        let goes = |known: &Table| known.kept.is_none() || known.purge_of(by).is_some();
        let kept = registered().any(|known| known.name == table.name && !goes(known));
        let Some(column) = column_of(&table, by).filter(|_| !kept) else { continue };
        let owner = owners.value(column).expect("an owner");
        if count(&db(app), &table.name, column, owner).await > 0 {
            left.insert(table.name);
        }
    }
    left
}

/// Until the deletions are forgotten.
async fn purged(app: &TestApp) {
    app.drain().await;
    app.advance(Duration::from_secs(61)).await;
    app.drain().await;
    let (open,) = db(app).get_one::<(i64,)>("SELECT count(*) FROM purges", &[]).await.expect("read").expect("a count");
    assert_eq!(open, 0, "deletions that are not forgotten");
}

async fn nothing_is_left_of_a_deleted_app(app: TestApp) {
    let acme = app.workspace("acme").await;
    let owners = Owners::of(&app, &acme, &acme.owner);
    app.operator().delete(&format!("/admin/apps/{}", owners.app)).await.expect(200);
    assert!(left(&app, &owners, Owner::App).await.contains("members"), "deleting is one small step");
    app.drain().await;
    assert_eq!(left(&app, &owners, Owner::App).await, BTreeSet::new());
    // What is written at the last moment goes too.
    let filled = fill(&app, &owners, Owner::App).await;
    assert!(filled.contains("flag_call_sites"), "{filled:?}");
    assert_eq!(left(&app, &owners, Owner::App).await, filled);
    purged(&app).await;
    assert_eq!(left(&app, &owners, Owner::App).await, BTreeSet::new());
}

async fn nothing_is_left_of_a_deleted_workspace_and_its_people(app: TestApp) {
    let acme = app.workspace("acme").await;
    let owners = Owners::of(&app, &acme, &acme.owner);
    let path = format!("/account/tenant/{}", acme.id);
    app.key_with(&["TENANT_DELETE"]).await.delete(&path).await.expect(200);
    assert_eq!(fill(&app, &owners, Owner::Person).await, left(&app, &owners, Owner::Person).await);
    // A member belongs to both, and is left once.
    db(&app).write(|tx| tx.run("DELETE FROM members", &[])).await.expect("deleted");
    assert_eq!(fill(&app, &owners, Owner::Workspace).await, left(&app, &owners, Owner::Workspace).await);
    purged(&app).await;
    assert_eq!(left(&app, &owners, Owner::Person).await, BTreeSet::new());
    assert_eq!(left(&app, &owners, Owner::Workspace).await, BTreeSet::new());
}

/// Somebody who was removed from one workspace.
async fn removed(app: &TestApp, acme: &Workspace) -> Owners {
    let bob = acme.add("bob@example.com", "MEMBER").await;
    acme.key().delete(&acme.path_of(&bob)).await.expect(200);
    Owners::of(app, acme, &bob)
}

async fn nothing_is_left_of_a_removed_person(app: TestApp) {
    let owners = removed(&app, &app.workspace("acme").await).await;
    let filled = fill(&app, &owners, Owner::Person).await;
    assert!(filled.contains("passkeys") && filled.contains("mfa_factors"), "{filled:?}");
    assert_eq!(left(&app, &owners, Owner::Person).await, filled);
    purged(&app).await;
    assert_eq!(left(&app, &owners, Owner::Person).await, BTreeSet::new());
}

async fn who_belongs_elsewhere_keeps_everything(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    other.add("bob@example.com", "MEMBER").await;
    let owners = removed(&app, &acme).await;
    let filled = fill(&app, &owners, Owner::Person).await;
    purged(&app).await;
    assert_eq!(left(&app, &owners, Owner::Person).await, filled);
}

const LINKS: i64 = 20_000;

/// Many links of the first app, which is then deleted.
async fn large_deletion(app: &TestApp) {
    let id = app.app_id();
    let rows: Vec<_> = (0..LINKS).map(|number| (format!("link-{number:06}"), id, number)).collect();
    let filled = db(app).write(move |tx| {
        tx.insert_all(
            "INSERT INTO one_time_links (id, app_id, purpose, digest, payload, expires_at, created_at) \
             SELECT id, app_id, 'invitation', id, '{}', 4000000000000000, number FROM {rows} WHERE true",
            ["id", "app_id", "number"],
            &rows,
        )
    });
    filled.await.expect("links are there");
    app.operator().delete(&format!("/admin/apps/{id}")).await.expect(200);
}

async fn links(app: &TestApp) -> i64 {
    count(&db(app), "one_time_links", "app_id", app.app_id().to_arg().into_owned()).await
}

async fn a_large_deletion_goes_on_beside_others_and_survives_being_cut_off(app: TestApp) {
    let other = app.other_app().await;
    large_deletion(&app).await;
    // Cut off again and again, as by a kill: what was deleted stays deleted, and what is left is found again.
    let mut cuts = 0;
    while links(&app).await > LINKS / 2 {
        let service = app.service();
        let _cut_off = tokio::time::timeout(Duration::from_millis(20), service.drain()).await;
        cuts += 1;
    }
    assert!(cuts > 1, "the work is done in small steps");
    let draining = app.clone();
    let purge = tokio::spawn(async move { draining.drain().await });
    let mut written = 0;
    // Until the purge is through: whatever is written gives other jobs something to do, so that these are never at an end.
    while links(&app).await > 0 {
        let owner = json!({ "email": format!("a{written}@example.com"), "firstName": "A", "lastName": "A" });
        other.post("/account/tenant", json!({ "owner": owner, "muteNotifications": true })).await.expect(200);
        written += 1;
    }
    purge.await.expect("purged");
    assert!(written > 5, "others were answered {written} times meanwhile");
    assert_eq!(links(&app).await, 0);
}

async fn two_nodes_purge_together(app: TestApp) {
    let node = app.another_node().await;
    large_deletion(&app).await;
    TestApp::drain_all(&[app.clone(), node]).await;
    assert_eq!(links(&app).await, 0);
}

/// What a deletion left behind goes before rows of the same app are put in.
async fn nothing_is_expected_where_something_is_being_deleted(app: TestApp) {
    let (db, id) = (db(&app), app.service().core().db.ids().next());
    let expect = || {
        db.write(move |tx| {
            let at = tx.now().plus(Duration::from_mins(10));
            purge::expect(tx, id, at)
        })
    };
    let person: UserId = db.ids().next();
    db.write(move |tx| purge::remember(tx, id, Owner::Person, &[person])).await.expect("remembered");
    assert_eq!(expect().await.expect("asked"), Expected::AfterDeletion);
    app.drain().await;
    // It would be looked at once more, within a minute; not when that time is near.
    db.clock().advance_to(db.clock().now().plus(Duration::from_secs(55)));
    assert_eq!(expect().await.expect("asked"), Expected::AfterDeletion);
    db.clock().advance_to(db.clock().now().plus(Duration::from_secs(6)));
    app.drain().await;
    // Nor before everybody has read what was told of it.
    db.write(move |tx| spine::emit(tx, id, &SessionsEnded { user_id: person })).await.expect("told");
    assert_eq!(expect().await.expect("asked"), Expected::AfterDeletion);
    app.drain().await;
    assert_eq!(expect().await.expect("asked"), Expected::Yes);
}

/// Whoever puts an app in and is too late must not take it for whole: its rows may be going already.
async fn what_is_expected_is_called_off_in_time_or_not_at_all(app: TestApp) {
    const HOUR: Duration = Duration::from_secs(3600);
    let (db, id) = (db(&app), app.service().core().db.ids().next());
    let in_time = db.write(move |tx| {
        let at = tx.now().plus(HOUR);
        assert_eq!(purge::expect(tx, id, at)?, Expected::Yes);
        assert_eq!(purge::expect(tx, id, at)?, Expected::Elsewhere, "one at a time");
        assert!(purge::postpone(tx, id, at)? && purge::call_off(tx, id)?);
        assert!(!purge::call_off(tx, id)?, "it was");
        purge::expect(tx, id, at)
    });
    assert_eq!(in_time.await.expect("expected"), Expected::Yes);
    db.clock().advance_to(db.clock().now().plus(HOUR));
    let late = db.write(move |tx| {
        let at = tx.now().plus(HOUR);
        Ok((purge::postpone(tx, id, at)?, purge::call_off(tx, id)?))
    });
    assert_eq!(late.await.expect("asked"), (false, false));
}

async fn expiring(app: &TestApp, table: &SchemaTable, at: i64) -> i64 {
    let column = if table.has("expires_at") { "expires_at" } else { "created_at" };
    let sql = statement(format!("SELECT count(*) FROM {} WHERE {column} = $1", table.name));
    db(app).get_one::<(i64,)>(sql, &args![at]).await.expect("counted").expect("a count").0
}

async fn what_has_expired_is_swept_and_nothing_else(app: TestApp) {
    let acme = app.workspace("acme").await;
    let owners = Owners::of(&app, &acme, &acme.owner);
    let expires = |found: &SchemaTable| registered().any(|table| table.name == found.name && table.expiry.is_some());
    let tables: Vec<SchemaTable> = schema(&db(&app)).await.into_iter().filter(expires).collect();
    assert!(tables.len() > 7, "{tables:?}");
    for (number, table) in (0..).zip(&tables) {
        insert(&db(&app), table, &owners, number, 1).await;
        insert(&db(&app), table, &owners, number + 100, FAR).await;
    }
    // A login whose end has passed is needed by the token that it was refreshed to.
    let refreshed = "UPDATE refresh_tokens SET family_id = (SELECT id FROM refresh_families WHERE expires_at = 1)";
    db(&app).write(move |tx| tx.run(refreshed, &[])).await.expect("refreshed");
    app.drain().await;
    for table in &tables {
        let kept = i64::from(table.name == "refresh_families");
        assert_eq!((expiring(&app, table, 1).await, expiring(&app, table, FAR).await), (kept, 1), "{}", table.name);
    }
    db(&app).write(|tx| tx.run("DELETE FROM refresh_tokens", &[])).await.expect("deleted");
    app.drain().await;
    let logins = tables.iter().find(|table| table.name == "refresh_families").expect("logins expire");
    assert_eq!(expiring(&app, logins, 1).await, 0);
}

async fn what_has_expired_is_kept_for_as_long_as_its_register_says(app: TestApp) {
    let acme = app.workspace("acme").await;
    let owners = Owners::of(&app, &acme, &acme.owner);
    let (minute, now) = (Duration::from_secs(60), db(&app).clock().now());
    let mut ended: Vec<(SchemaTable, i64)> = Vec::new();
    for (number, table) in (0..).zip(schema(&db(&app)).await) {
        let expiry = registered().find(|known| known.name == table.name).and_then(|known| known.expiry.as_ref());
        if let Some(expiry) = expiry.filter(|expiry| !expiry.kept_for.is_zero()) {
            let at = now.minus(expiry.kept_for).plus(minute).as_micros();
            insert(&db(&app), &table, &owners, number, at).await;
            ended.push((table, at));
        }
    }
    assert!(ended.len() > 3, "{ended:?}");
    for (wait, left) in [(Duration::ZERO, 1), (2 * minute, 0)] {
        app.advance(wait).await;
        app.drain().await;
        for (table, at) in &ended {
            assert_eq!(expiring(&app, table, *at).await, left, "{}", table.name);
        }
    }
}
