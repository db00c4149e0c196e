//! `POST /admin/backup?withFiles=true`: the files of workspaces go with the rows that name them.

use std::path::{Path, PathBuf};

use serde_json::json;
use service::{Service, installation::restore};
use store::AttachedCounts;
use testkit::{
    Caller, EngineName, Site, TestApp, Workspace,
    files::{post, prepare},
    on_both_engines,
};

on_both_engines!(
    files_come_back_on_either_engine_with_the_same_bytes,
    a_damaged_file_is_noticed_before_anything_is_stored,
    what_is_not_in_a_backup_is_counted,
    a_row_that_was_altered_brings_nothing_in_from_outside,
);

const BYTES: &[u8] = b"The quick brown fox jumps over the lazy dog, and this is how a file is recognised";

async fn stored(app: &TestApp, acme: &Workspace, bytes: &[u8]) -> String {
    let form = prepare(&acme.key(), "a file.txt", "text/plain").await;
    post(app, &form, bytes).await.expect(204);
    let finish = json!({ "key": form["key"], "persist": true });
    acme.key().post("/account/tenant/upload/finish", finish).await.expect(200);
    form["key"].as_str().expect("a key").to_owned()
}

async fn backup(app: &TestApp, query: &str) -> PathBuf {
    let path = format!("/admin/backup{query}");
    let answer = app.operator().call(http::Method::POST, &path, None).await.expect(200);
    let file = app.site().folder().join("backup.sqlite");
    std::fs::write(&file, answer.bytes()).expect("written");
    file
}

async fn read(service: &Service, caller: &Caller, key: &str) -> (u16, Vec<u8>) {
    let there = Caller::new(service.app())
        .header("x-api-key", &caller.header_sent("x-api-key"))
        .header("x-tenant-id", &caller.header_sent("x-tenant-id"));
    let urls = there.post("/account/tenant/file/signedUrl", json!({ "keys": [key] })).await.expect(200);
    let address = urls.text("/0");
    let path = address.strip_prefix("http://tenantry.test").expect("an address of this service");
    let answer = Caller::new(service.app()).get(path).await;
    (answer.status(), answer.bytes().to_vec())
}

fn objects(site: &Site) -> usize {
    let folders = std::fs::read_dir(site.folder().join("files")).into_iter().flatten().flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).expect("a folder").count()).sum()
}

async fn files_come_back_on_either_engine_with_the_same_bytes(app: TestApp) {
    let acme = app.workspace("acme").await;
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let keys = [stored(&app, &acme, BYTES).await, stored(&app, &acme, b"").await, stored(&app, &acme, &large).await];
    let file = backup(&app, "?withFiles=true").await;
    for engine in [EngineName::Sqlite, EngineName::Postgres] {
        let site = Site::empty(engine);
        let restored = restore(site.options(), &file).await.expect("restored");
        assert_eq!(restored.files, AttachedCounts { held: 3, missing: 0, left_out: 0 });
        assert_eq!(objects(&site), 3);
        let service = site.open(|_| {}).await.expect("opens");
        for (key, bytes) in keys.iter().zip([BYTES, b"", &large]) {
            let (status, read) = read(&service, &acme.key(), key).await;
            assert!(status == 200 && read == bytes, "{status}, {} bytes", read.len());
        }
        service.close().await;
    }
}

async fn a_damaged_file_is_noticed_before_anything_is_stored(app: TestApp) {
    let acme = app.workspace("acme").await;
    stored(&app, &acme, BYTES).await;
    let file = backup(&app, "?withFiles=true").await;
    let whole = std::fs::read(&file).expect("read");
    let place = whole.windows(BYTES.len()).position(|window| window == BYTES).expect("the bytes are in it");
    let mut bytes = whole.clone();
    bytes[place + 7] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let site = Site::empty(app.site().engine());
    let error = restore(site.options(), &file).await.expect_err("refused");
    assert!(error.public().contains("checksum"), "{error:?}");
    assert_eq!(objects(&site), 0);
    std::fs::write(&file, whole).expect("written");
    restore(site.options(), &file).await.expect("the target is still empty");
}

async fn what_is_not_in_a_backup_is_counted(app: TestApp) {
    let acme = app.workspace("acme").await;
    let keys = [stored(&app, &acme, BYTES).await, stored(&app, &acme, b"other").await];
    prepare(&acme.key(), "never posted.txt", "text/plain").await;
    for query in ["", "?withFiles=false"] {
        let info = store::read_backup_info(&backup(&app, query).await).await.expect("readable");
        assert_eq!(info.attached, AttachedCounts { held: 0, missing: 0, left_out: 2 });
    }
    remove_one(&app.site().folder().join("files"));
    let file = backup(&app, "?withFiles=true").await;
    let site = Site::empty(app.site().engine());
    let restored = restore(site.options(), &file).await.expect("restored");
    assert_eq!(restored.files, AttachedCounts { held: 1, missing: 1, left_out: 0 });
    let service = site.open(|_| {}).await.expect("opens");
    let mut found = 0;
    for key in &keys {
        found += usize::from(read(&service, &acme.key(), key).await.0 == 200);
    }
    assert_eq!(found, 1);
    service.close().await;
}

fn remove_one(folder: &Path) {
    let mut folders = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let object = folders.find_map(|folder| std::fs::read_dir(folder).ok()?.next()).expect("an object");
    std::fs::remove_file(object.expect("an entry").path()).expect("removed");
}

async fn a_row_that_was_altered_brings_nothing_in_from_outside(app: TestApp) {
    let acme = app.workspace("acme").await;
    stored(&app, &acme, BYTES).await;
    let secret = app.site().folder().join("outside1");
    std::fs::write(&secret, "nobody's file").expect("written");
    let altered = app.service().core().db.write(|tx| tx.exec("UPDATE files SET object = '../../outside1'", &[]));
    altered.await.expect("altered");
    let file = backup(&app, "?withFiles=true").await;
    let info = store::read_backup_info(&file).await.expect("readable");
    assert_eq!(info.attached, AttachedCounts { held: 0, missing: 1, left_out: 0 });
    let bytes = std::fs::read(&file).expect("read");
    assert!(!bytes.windows(13).any(|window| window == b"nobody's file"));
}
