//! `POST /admin/apps/{app_id}/export` and `POST /admin/apps/import`: an app leaves whole, and arrives whole or not at all.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use http::Method;
use kernel::{AppId, Entropy};
use serde_json::{Value, json};
use service::{Options, Service};
use store::{Owner, ToArg as _, args};
use testkit::{Answer, Caller, EngineName, OPERATOR_KEY, Site, TestApp, files, on_both_engines, tokens};
use vault::{ArchiveKey, ArchiveReader, ArchiveWriter, MasterKey};

use super::filled::{self, Filled};

on_both_engines!(
    an_app_answers_as_before_in_another_installation,
    an_archive_that_is_not_as_it_was_written_brings_nothing,
    rows_that_do_not_belong_there_are_refused,
    what_exists_is_refused,
    a_dry_run_stores_nothing,
    an_import_that_failed_leaves_nothing,
    an_import_that_was_killed_leaves_nothing,
    an_archive_needs_one_key,
    an_app_comes_back_where_it_was_deleted,
);

const PASSPHRASE: &str = "correct horse battery";
pub(super) const KEY: &str = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";

/// Another installation, on the other engine and under another master key.
struct Target {
    site: Site,
    service: Service,
}

impl Target {
    async fn open(app: &TestApp) -> Self {
        let engine = match app.site().engine() {
            EngineName::Sqlite => EngineName::Postgres,
            EngineName::Postgres => EngineName::Sqlite,
        };
        let site = Site::empty(engine);
        let service = site.open(Self::change).await.expect("opens");
        Self { site, service }
    }

    fn change(options: &mut Options) {
        let master = MasterKey::generate(&Entropy::seeded_for_tests(99)).to_text();
        options.keys.master = Some(master);
    }

    fn operator(&self) -> Caller {
        Caller::new(self.service.app()).with_operator_key(OPERATOR_KEY)
    }

    /// How many rows of the app there are.
    async fn rows(&self, app: AppId) -> i64 {
        rows(&self.service, app).await
    }

    async fn advance(&self, duration: Duration) {
        let body = json!({ "advanceSeconds": duration.as_secs() });
        self.operator().post("/admin/test-clock", body).await.expect(200);
        self.service.drain().await.expect("drained");
    }
}

async fn rows(service: &Service, app: AppId) -> i64 {
    let mut all = 0;
    for table in service::TABLES.iter().flat_map(|(_, tables)| *tables) {
        let (column, value) = match table.purge_of(Owner::App) {
            Some(owned) => (owned.app.as_str(), owned.app.of(app)),
            None if table.name == "apps" => ("id", app.to_arg().into_owned()),
            None => continue,
        };
        let sql: &'static str = format!("SELECT count(*) FROM {} WHERE {column} = $1", table.name).leak();
        let (count,): (i64,) =
            service.core().db.read(move |tx| tx.one(sql, std::slice::from_ref(&value))).await.expect("a count");
        all += count;
    }
    all
}

/// With the key of a key file, which costs less time than a passphrase.
async fn export(app: &TestApp) -> Vec<u8> {
    let path = format!("/admin/apps/{}/export", app.app_id());
    app.operator().post(&path, json!({ "key": KEY })).await.expect(200).bytes().to_vec()
}

async fn import(operator: &Caller, archive: &[u8]) -> Answer {
    operator.header("x-archive-key", KEY).send(Method::POST, "/admin/apps/import", archive.to_vec()).await
}

async fn upload(app: &TestApp, caller: &Caller, bytes: &[u8]) -> String {
    let form = files::prepare(caller, "a.bin", "application/octet-stream").await;
    files::post(app, &form, bytes).await.expect(204);
    let finish = json!({ "key": form["key"], "persist": true, "publicFile": true });
    caller.post("/account/tenant/upload/finish", finish).await.expect(200).text("")
}

/// What differs by right: the installation's own keys, logins made since, and who is told of what.
fn compared(route: &str) -> bool {
    !["/admin/signing-keys", "/admin/saml-keys", "/saml/{connection_id}/metadata", "/account/me/sessions"]
        .iter()
        .any(|own| route.contains(own))
}

/// What an archive says about each part: its rows, and a digest of them with their secrets open.
fn parts(archive: &[u8]) -> Value {
    let (manifest, _) = opened(archive);
    json!([manifest["tables"], manifest["files"]])
}

async fn an_app_answers_as_before_in_another_installation(app: TestApp) {
    let mut filled = Filled::new(app.clone()).await;
    let mut before = filled.told_and_complete().await;
    before.retain(|route, _| compared(route));

    let (operator, path) = (app.operator(), format!("/admin/apps/{}/export", app.app_id()));
    let archive = operator.post(&path, json!({ "passphrase": PASSPHRASE })).await.expect(200).bytes().to_vec();
    assert!(!archive.windows(8).any(|bytes| bytes == b"ada@exam"), "nothing is readable");
    let left = app.site().folder().join("archives").read_dir().map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left behind");

    let target = Target::open(&app).await;
    target.advance(app.now().since(target.service.core().db.clock().now())).await;
    let opening = target.operator().header("x-archive-passphrase", PASSPHRASE);
    let imported = opening.send(Method::POST, "/admin/apps/import", archive).await.expect(200);
    assert_eq!(imported.text("/appId"), app.app_id().to_string());
    assert_eq!((imported.at("/imported"), imported.at("/files")), (json!(true), json!(1)));
    let flags = target.operator().get(&format!("/admin/apps/{}/flags", app.app_id())).await.expect(200);
    assert!(flags.body().contains("new-look"), "it is there at once");
    let again = target.operator().post(&path, json!({ "key": KEY })).await.expect(200).bytes().to_vec();
    assert_eq!(parts(&again), parts(&export(&app).await), "every row is as it was, secrets included");
    target.service.close().await;

    app.restart_with(|options| {
        let there = target.site.options();
        (options.database, options.keys, options.files) = (there.database.clone(), there.keys, there.files);
        Target::change(options);
        filled.around.known_to(options);
    })
    .await;
    user_is_out(&app, &filled.held).await;
    assert_ne!(filled.ada.exchange(&filled.under_way).await.status(), 200, "a login under way begins anew");
    let after = filled.answers(&filled.user(&filled.ada.sign_in().await)).await;
    filled::assert_same(&before, &after);
    filled.everybody_goes_on().await;
    app.drain().await;
    app.restart_with(|options| filled.around.known_to(options)).await;
}

/// Tokens that were signed elsewhere are worth nothing.
async fn user_is_out(app: &TestApp, held: &testkit::Tokens) {
    assert!(!tokens::is_signed_in(app, &held.access).await);
    assert_eq!(tokens::refresh(app, &held.refresh).await.status(), 400);
}

/// Where each frame begins, and the end.
fn frames(archive: &[u8]) -> Vec<usize> {
    let mut places = vec![46];
    while let Some(&at) = places.last().filter(|at| **at < archive.len()) {
        let length = u32::from_be_bytes(archive[at..at + 4].try_into().expect("four bytes")) & !(1 << 31);
        places.push(at + 4 + length as usize);
    }
    places
}

async fn an_archive_that_is_not_as_it_was_written_brings_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    for n in 0..2 {
        upload(&app, &acme.key(), &vec![n; 1_000_000]).await;
    }
    let (archive, target) = (export(&app).await, Target::open(&app).await);
    let places = frames(&archive);
    let count = places.len() - 1;
    assert!(count >= 2, "{count} frames");
    let of = |order: Vec<usize>| -> Vec<u8> {
        let body = order.into_iter().flat_map(|n| archive[places[n]..places[n + 1]].iter().copied());
        archive[..46].iter().copied().chain(body).collect()
    };
    let mut unfit = Vec::new();
    for n in 0..count {
        unfit.push(of((0..count).filter(|other| *other != n).collect()));
        unfit.push(of((0..count).flat_map(|other| vec![other; if other == n { 2 } else { 1 }]).collect()));
        let mut swapped: Vec<usize> = (0..count).collect();
        swapped.swap(n, (n + 1) % count);
        unfit.push(of(swapped));
    }
    for at in (0..archive.len()).step_by(archive.len() / 12) {
        let mut altered = archive.clone();
        altered[at] ^= 0x10;
        unfit.extend([altered, archive[..at].to_vec()]);
    }
    for unfit in unfit {
        import(&target.operator(), &unfit).await.error(400, "VALIDATION_FAILED");
    }
    let wrong = target.operator().header("x-archive-passphrase", "correct horse");
    wrong.send(Method::POST, "/admin/apps/import", archive.clone()).await.error(400, "VALIDATION_FAILED");
    assert_eq!(target.rows(app.app_id()).await, 0);
    let mut newer = archive.clone();
    newer[16] = 2;
    assert!(import(&target.operator(), &newer).await.expect(400).body().contains("newer release"));
    import(&target.operator(), &archive).await.expect(200);
    assert_eq!(target.site.folder().join("archives").read_dir().map_or(0, Iterator::count), 0);
    target.service.close().await;
}

/// What an archive says about itself, and its parts.
fn opened(archive: &[u8]) -> (Value, Vec<u8>) {
    let key = ArchiveKey::Key(KEY.parse().expect("a key"));
    let mut content = Vec::new();
    ArchiveReader::new(archive, &key).expect("opens").read_to_end(&mut content).expect("read");
    let length = u32::from_be_bytes(content[..4].try_into().expect("four bytes")) as usize;
    let manifest: Value = serde_json::from_slice(&content[4..4 + length]).expect("a manifest");
    (manifest, content.split_off(4 + length))
}

/// Each table of an archive as its manifest describes it, with its rows.
pub(super) fn tables(archive: &[u8]) -> Vec<(Value, Vec<Vec<Value>>)> {
    let (manifest, parts) = opened(archive);
    let (mut tables, mut rest) = (Vec::new(), &parts[..]);
    for table in manifest["tables"].as_array().expect("tables") {
        let length = usize::try_from(table["bytes"].as_u64().expect("bytes")).expect("short");
        let (lines, behind) = rest.split_at(length);
        let lines = std::str::from_utf8(lines).expect("text").lines();
        tables.push((table.clone(), lines.map(|line| serde_json::from_str(line).expect("a row")).collect()));
        rest = behind;
    }
    tables
}

/// The archive with another content, under the same key.
pub(super) fn rewritten(archive: &[u8], change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let key = ArchiveKey::Key(KEY.parse().expect("a key"));
    let (mut manifest, mut parts) = opened(archive);
    change(&mut manifest, &mut parts);
    let manifest = manifest.to_string().into_bytes();
    let mut writer = ArchiveWriter::new(Vec::new(), &key, &Entropy::os()).expect("a writer");
    writer.write_all(&u32::try_from(manifest.len()).expect("short").to_be_bytes()).expect("written");
    writer.write_all(&manifest).and_then(|()| writer.write_all(&parts)).expect("written");
    writer.finish().expect("finished")
}

/// Puts another text of the same length in place of the first one, and says what the part's digest is now.
fn replaced(archive: &[u8], table: &str, old: &str, new: &str) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    rewritten(archive, |manifest, parts| {
        let tables = manifest["tables"].as_array_mut().expect("tables");
        let mut from = 0;
        for part in tables {
            let end = from + usize::try_from(part["bytes"].as_u64().expect("bytes")).expect("short");
            if part["name"] == table {
                let text = String::from_utf8(parts[from..end].to_vec()).expect("text");
                assert!(text.contains(old), "{old} in {text}");
                let text = text.replacen(old, new, 1);
                parts[from..end].copy_from_slice(text.as_bytes());
                part["sha256"] = vault::sha256_hex(text.as_bytes()).into();
            }
            from = end;
        }
    })
}

/// Whoever has the key of an archive can write anything into it.
async fn rows_that_do_not_belong_there_are_refused(app: TestApp) {
    let acme = app.workspace("acme").await;
    upload(&app, &acme.key(), b"some bytes").await;
    app.drain().await;
    let (archive, target, id) = (export(&app).await, Target::open(&app).await, app.app_id().to_string());
    let foreign = AppId::from_u128(7).to_string();
    let number = app.app_id().number().as_i64();
    let newer = rewritten(&archive, |manifest, _| manifest["schema"] = json!(9_999));
    assert!(import(&target.operator(), &newer).await.expect(400).body().contains("newer release"));
    let newer = rewritten(&archive, |manifest, _| manifest["version"] = json!(2));
    assert!(import(&target.operator(), &newer).await.expect(400).body().contains("newer release"));
    let name = |manifest: &Value| manifest["files"][0]["object"].as_str().expect("a name").to_owned();
    let mut object = String::new();
    rewritten(&archive, |manifest, _| object = name(manifest));
    let leading_out = format!("../{}", &object[3..]);
    let unfit = [
        replaced(&archive, "users", &id, &foreign),
        replaced(&archive, "event_firsts", &number.to_string(), &(number ^ 1).to_string()),
        replaced(&archive, "apps", &id, &foreign),
        replaced(&archive, "apps", "\"{\\\"", "\"[\\\""),
        replaced(&archive, "apps", "\\\"localhost\\\"", "\\\"elsewhere\\\""),
        rewritten(&archive, |manifest, _| manifest["tables"][1]["name"] = json!("installation")),
        rewritten(&archive, |manifest, _| manifest["tables"][1]["name"] = json!("no_such_table")),
        rewritten(&archive, |manifest, _| manifest["tables"][1]["rows"] = json!(1_000)),
        rewritten(&archive, |manifest, _| manifest["appId"] = json!(foreign)),
        rewritten(&archive, |manifest, _| manifest["files"][0]["object"] = json!("someoneelses")),
        rewritten(&archive, |_, parts| parts.push(b'x')),
        rewritten(&replaced(&archive, "files", &object, &leading_out), |manifest, _| {
            manifest["files"][0]["object"] = json!(leading_out);
        }),
    ];
    for (n, unfit) in unfit.into_iter().enumerate() {
        let refused = import(&target.operator(), &unfit).await;
        assert_eq!(refused.status(), 400, "{n}: {}", refused.body());
        assert_eq!(target.operator().get("/admin/apps").await.json(), json!([]), "{n}");
    }
    target.advance(Duration::from_mins(2)).await;
    assert_eq!(target.rows(app.app_id()).await, 0);
    target.service.close().await;
}

async fn what_exists_is_refused(app: TestApp) {
    let (archive, target) = (export(&app).await, Target::open(&app).await);
    let before = rows(&app.service(), app.app_id()).await;
    import(&app.operator(), &archive).await.error(409, "CONFLICT");
    assert_eq!(rows(&app.service(), app.app_id()).await, before);
    let domain = app.key().get("/account/app").await.expect(200).text("/domain");
    target.operator().post("/admin/apps", json!({ "name": "Other", "domain": domain })).await.expect(201);
    import(&target.operator(), &archive).await.error(409, "DOMAIN_TAKEN");
    let dry = target.operator().header("x-archive-key", KEY);
    dry.send(Method::POST, "/admin/apps/import?dryRun=true", archive.clone()).await.error(409, "DOMAIN_TAKEN");
    // Nobody else has its number, which stands for it where many rows do.
    let alike = "INSERT INTO apps (id, domain, profile, version, created_at) \
                 SELECT CAST($1 AS TEXT), 'alike.example', profile, version, created_at FROM apps WHERE domain = $2";
    let (id, domain) = (AppId::from_u128(app.app_id().as_u128() ^ 1 << 100), domain.clone());
    let made = target.service.core().db.write(move |tx| {
        tx.run(alike, &args![id, domain])?;
        tx.run("UPDATE apps SET domain = 'another.example' WHERE domain = $1", &args![domain])
    });
    made.await.expect("made");
    let refused = import(&target.operator(), &archive).await;
    refused.error(409, "CONFLICT");
    assert_eq!(target.rows(app.app_id()).await, 0);
    target.service.close().await;
    let unknown = format!("/admin/apps/{}/export", AppId::from_u128(7));
    app.operator().post(&unknown, json!({ "key": KEY })).await.expect(404);
}

async fn a_dry_run_stores_nothing(app: TestApp) {
    app.workspace("acme").await;
    let (archive, target) = (export(&app).await, Target::open(&app).await);
    let dry = target.operator().header("x-archive-key", KEY);
    let told = dry.send(Method::POST, "/admin/apps/import?dryRun=true", archive.clone()).await.expect(200);
    assert_eq!((told.at("/imported"), told.at("/tables/0")), (json!(false), json!({ "name": "apps", "rows": 1 })));
    assert_eq!(target.rows(app.app_id()).await, 0);
    let imported = import(&target.operator(), &archive).await.expect(200);
    assert_eq!(imported.at("/rows"), told.at("/rows"));
    assert_eq!(imported.at("/rows"), json!(target.rows(app.app_id()).await));
    target.service.close().await;
}

async fn an_import_that_failed_leaves_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    upload(&app, &acme.key(), b"some bytes").await;
    let (archive, target) = (export(&app).await, Target::open(&app).await);
    let folder = target.site.folder().join("files");
    std::fs::write(&folder, b"in the way").expect("a file where the folder belongs");
    import(&target.operator(), &archive).await.error(503, "STORAGE_UNAVAILABLE");
    assert_eq!(target.operator().get("/admin/apps").await.json(), json!([]));
    target.service.drain().await.expect("purged");
    assert_eq!(target.rows(app.app_id()).await, 0);
    std::fs::remove_file(&folder).expect("out of the way");
    import(&target.operator(), &archive).await.expect(200);
    target.advance(Duration::from_hours(1)).await;
    assert!(target.rows(app.app_id()).await > 10, "what has arrived stays");
    target.service.close().await;
}

/// As far as a node got that was killed: its claim, and some rows.
async fn an_import_that_was_killed_leaves_nothing(app: TestApp) {
    let (archive, target, id) = (export(&app).await, Target::open(&app).await, app.app_id());
    let begun = target.service.core().db.write(move |tx| {
        spine::purge::expect(tx, id, tx.now().plus(Duration::from_mins(10)))?;
        tx.run("INSERT INTO event_folds (app_id, revision) VALUES ($1, 1)", &args![id])
    });
    begun.await.expect("begun");
    import(&target.operator(), &archive).await.error(409, "CONFLICT");
    target.advance(Duration::from_mins(9)).await;
    assert_eq!(target.rows(id).await, 1, "it may still be at work");
    target.advance(Duration::from_mins(3)).await;
    assert_eq!(target.rows(id).await, 0);
    import(&target.operator(), &archive).await.expect(200);
    target.service.close().await;
}

async fn an_app_comes_back_where_it_was_deleted(app: TestApp) {
    let (id, acme) = (app.app_id(), app.workspace("acme").await);
    let archive = export(&app).await;
    app.operator().delete(&format!("/admin/apps/{id}")).await.expect(200);
    app.key().get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
    app.drain().await;
    import(&app.operator(), &archive).await.expect(200);
    let tenants = app.key().get("/account/tenant").await.expect(200);
    assert_eq!(tenants.at("/0/id"), json!(acme.id));
    // Nobody deletes it once more.
    app.advance(Duration::from_hours(1)).await;
    app.key().get(&format!("/account/tenant/byId/{}", acme.id)).await.expect(200);
}

async fn an_archive_needs_one_key(app: TestApp) {
    let path = format!("/admin/apps/{}/export", app.app_id());
    let operator = app.operator();
    operator.post(&path, json!({})).await.refuses(&["passphrase"]);
    operator.post(&path, json!({ "passphrase": "short" })).await.refuses(&["passphrase"]);
    operator.post(&path, json!({ "passphrase": " around it " })).await.refuses(&["passphrase"]);
    operator.post(&path, json!({ "key": "x".repeat(50) })).await.refuses(&["key"]);
    operator.post(&path, json!({ "passphrase": PASSPHRASE, "key": KEY })).await.refuses(&["key"]);
    operator.send(Method::POST, "/admin/apps/import", "x").await.refuses(&["x-archive-passphrase"]);
    import(&operator, b"").await.refuses(&["archive"]);
}
