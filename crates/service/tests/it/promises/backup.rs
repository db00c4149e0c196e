//! `POST /admin/backup`, and what can be made of its answer.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kernel::{Code, Entropy, Error, Secret};
use serde_json::{Value, json};
use service::{Options, Service, installation::restore};
use testkit::{Caller, EngineName, OPERATOR_KEY, Site, TestApp, on_both_engines};
use vault::MasterKey;

on_both_engines!(
    a_backup_under_load_holds_what_was_acknowledged_before,
    everything_comes_back_on_either_engine,
    a_restore_wants_an_empty_store,
    a_restore_wants_the_right_master_key,
    a_backup_of_the_previous_master_key_is_restored,
    a_damaged_backup_is_refused,
);

/// A backup of `app` as a file.
async fn backup(app: &TestApp) -> PathBuf {
    let answer = app.operator().call(http::Method::POST, "/admin/backup", None).await.expect(200);
    assert_eq!(answer.header("content-type"), Some("application/vnd.sqlite3"));
    let left = app.site().folder().join("backups").read_dir().expect("the folder of backups").count();
    assert_eq!(left, 0, "nothing is left behind");
    let file = app.site().folder().join("backup.sqlite");
    std::fs::write(&file, answer.bytes()).expect("written");
    file
}

async fn apps(caller: &Caller) -> Vec<Value> {
    caller.get("/admin/apps").await.expect(200).json().as_array().expect("a list").clone()
}

/// Loads the backup into a new store and opens it.
async fn restored(file: &std::path::Path, engine: EngineName) -> (Site, Service) {
    let site = Site::empty(engine);
    let loaded = restore(site.options(), file).await.expect("restored");
    assert!(loaded.rows > 5 && loaded.tables > 5, "{loaded:?}");
    let service = site.open(|_| {}).await.expect("opens");
    assert!(service.first_run().await.expect("asked").is_none(), "the first run is over there, too");
    (site, service)
}

async fn refused(options: Options, file: &std::path::Path) -> Error {
    restore(options, file).await.expect_err("refused")
}

async fn a_backup_under_load_holds_what_was_acknowledged_before(app: TestApp) {
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (operator, stop) = (app.operator(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let body = json!({ "name": "Load", "domain": format!("{number}.{writer}.example") });
                    operator.post("/admin/apps", body).await.expect(201);
                }
                number
            })
        })
        .collect();
    while apps(&app.operator()).await.len() < 40 {
        tokio::task::yield_now().await;
    }
    let before = apps(&app.operator()).await;
    let file = backup(&app).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        assert!(writer.await.expect("no write failed") > 0);
    }
    let all = apps(&app.operator()).await;
    let (_site, service) = restored(&file, app.site().engine()).await;
    let kept = apps(&Caller::new(service.app()).with_operator_key(OPERATOR_KEY)).await;
    assert!(before.iter().all(|app| kept.contains(app)), "an app from before the backup is missing");
    assert!(kept.iter().all(|app| all.contains(app)), "the backup holds an app that never was");
    service.close().await;
}

async fn everything_comes_back_on_either_engine(app: TestApp) {
    let other = app.other_app().await;
    testkit::queued::queue(&app, "ada@customer.example").await;
    let file = backup(&app).await;
    for engine in [EngineName::Sqlite, EngineName::Postgres] {
        let (site, service) = restored(&file, engine).await;
        let operator = Caller::new(service.app()).with_operator_key(OPERATOR_KEY);
        for path in ["/admin/apps", "/admin/signing-keys", &format!("/admin/apps/{}/keys", app.app_id())] {
            assert_eq!(operator.get(path).await.expect(200).json(), app.operator().get(path).await.json(), "{path}");
        }
        let key = Caller::new(service.app()).with_api_key(other.app_id(), &other.header_sent("x-api-key"));
        key.get("/account/app").await.expect(200);
        service.core().signing_keys.sign("test", &json!({})).expect("the signing key opens");
        service.drain().await.expect("drained");
        assert_eq!(site.folder().join("mail").read_dir().expect("mail left").count(), 1);
        let made =
            operator.post("/admin/apps", json!({ "name": "After", "domain": "after.example" })).await.expect(201);
        assert_eq!(apps(&operator).await[0], made.at("/app"), "new ids sort after the restored ones");
        service.close().await;
    }
}

async fn a_restore_wants_an_empty_store(app: TestApp) {
    let file = backup(&app).await;
    let target = Site::migrated(app.site().engine());
    let error = refused(target.options(), &file).await;
    assert!(error.public().contains("empty"), "{error:?}");
    let service = target.open(|_| {}).await.expect("the target is as it was");
    assert!(service.first_run().await.expect("asked").is_some());
    service.close().await;
}

async fn a_restore_wants_the_right_master_key(app: TestApp) {
    let file = backup(&app).await;
    let target = Site::empty(app.site().engine());
    let with = |key: Option<Secret<String>>| {
        let mut options = target.options();
        options.keys.master = key;
        options
    };
    let error = refused(with(Some(MasterKey::generate(&Entropy::os()).to_text())), &file).await;
    assert!(error.public().contains("master key is not the one"), "{error:?}");
    let error = refused(with(None), &file).await;
    assert!(error.public().contains("master key is missing"), "{error:?}");
    restore(target.options(), &file).await.expect("the target stayed empty");
}

async fn a_backup_of_the_previous_master_key_is_restored(app: TestApp) {
    let file = backup(&app).await;
    let target = Site::empty(app.site().engine());
    let mut options = target.options();
    options.keys.master_previous = options.keys.master.replace(MasterKey::generate(&Entropy::os()).to_text());
    restore(options, &file).await.expect("restored");
}

async fn a_damaged_backup_is_refused(app: TestApp) {
    let file = backup(&app).await;
    let whole = std::fs::read(&file).expect("read");
    let target = Site::empty(app.site().engine());
    let mut flipped = whole.clone();
    // In the middle of the file lie rows, not the header.
    let middle = whole.len() / 2;
    flipped[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0xff);
    for damaged in [&whole[..whole.len() / 2], &flipped, b"not a backup at all", b""] {
        std::fs::write(&file, damaged).expect("written");
        let error = refused(target.options(), &file).await;
        assert_ne!(error.code(), Code::Internal, "{error:?}");
    }
    std::fs::write(&file, &whole).expect("written");
    restore(target.options(), &file).await.expect("the target stayed empty");
}
