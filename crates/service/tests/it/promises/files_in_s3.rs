//! Files in S3 beside backups and archives: what each of them holds, and what comes back.

use http::Method;
use serde_json::json;
use service::{Options, Service, installation::restore};
use store::AttachedCounts;
use testkit::{
    Answer, Caller, EngineName, Site, TestApp, Workspace, files, on_both_engines,
    s3::{Fetched, S3},
};

on_both_engines!(
    a_backup_does_not_hold_them_and_says_how_many_there_are,
    a_backup_of_a_folder_is_restored_into_a_bucket,
    an_app_moves_between_a_folder_and_a_bucket,
    a_file_in_parts_that_fails_on_its_way_leaves_no_parts,
);

const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const BYTES: &[u8] = b"some bytes of a file";
/// More than goes to a storage in one part.
const LARGE: usize = 17 * 1024 * 1024;

fn large() -> Vec<u8> {
    (0..u32::try_from(LARGE).expect("small enough")).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

async fn finish(acme: &Workspace, key: &serde_json::Value) -> String {
    let finish = json!({ "key": key, "persist": true, "publicFile": true });
    acme.key()
        .post("/account/tenant/upload/finish", finish)
        .await
        .expect(200)
        .text("")
        .replace("http://tenantry.test", "")
}

async fn in_folder(app: &TestApp, acme: &Workspace, bytes: &[u8]) -> String {
    let form = files::prepare(&acme.key(), "a.bin", "application/octet-stream").await;
    files::post(app, &form, bytes).await.expect(204);
    finish(acme, &form["key"]).await
}

async fn in_bucket(s3: &S3, acme: &Workspace, bytes: &[u8]) -> String {
    let form = s3.prepare(&acme.key(), "a.bin", "application/octet-stream").await;
    assert_eq!(s3.post(&form, bytes).await.0, 204);
    finish(acme, &form["key"]).await
}

async fn from_bucket(s3: &S3, service: &Service, address: &str) -> Fetched {
    let answer = Caller::new(service.app()).get(address).await.expect(307);
    s3.fetch(Method::GET, answer.header("location").expect("a location"), &[]).await
}

async fn use_bucket(app: &TestApp, s3: &S3) {
    let place = s3.place();
    app.restart_with(|options| {
        options.files.place = place;
        enlarge(options);
    })
    .await;
}

fn enlarge(options: &mut Options) {
    (options.files.max_bytes, options.files.workspace_bytes) = (1 << 26, 1 << 30);
}

async fn backup(app: &TestApp) -> std::path::PathBuf {
    let answer = app.operator().call(Method::POST, "/admin/backup?withFiles=true", None).await.expect(200);
    let file = app.site().folder().join("backup.sqlite");
    std::fs::write(&file, answer.bytes()).expect("written");
    file
}

async fn a_backup_does_not_hold_them_and_says_how_many_there_are(app: TestApp) {
    let s3 = S3::start(&app).await;
    use_bucket(&app, &s3).await;
    let acme = app.workspace("acme").await;
    let address = in_bucket(&s3, &acme, BYTES).await;
    let file = backup(&app).await;
    let info = store::read_backup_info(&file).await.expect("readable");
    assert_eq!(info.attached, AttachedCounts { held: 0, missing: 0, left_out: 1 });
    // Rows come back, and find their bytes where they are.
    let site = Site::empty(app.site().engine());
    restore(site.options(), &file).await.expect("restored");
    let place = s3.place();
    let service = site.open(|options| options.files.place = place).await.expect("opens");
    assert_eq!(from_bucket(&s3, &service, &address).await.bytes, BYTES);
    service.close().await;
}

async fn a_backup_of_a_folder_is_restored_into_a_bucket(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (address, empty) = (in_folder(&app, &acme, BYTES).await, in_folder(&app, &acme, b"").await);
    let (file, s3) = (backup(&app).await, S3::start(&app).await);
    let site = Site::empty(app.site().engine());
    let mut options = site.options();
    options.files.place = s3.place();
    let restored = restore(options, &file).await.expect("restored");
    assert_eq!(restored.files, AttachedCounts { held: 2, missing: 0, left_out: 0 });
    assert_eq!(s3.objects().await.len(), 2);
    let place = s3.place();
    let service = site.open(|options| options.files.place = place).await.expect("opens");
    assert_eq!(from_bucket(&s3, &service, &address).await.bytes, BYTES);
    assert_eq!(from_bucket(&s3, &service, &empty).await.bytes, b"");
    service.close().await;
}

async fn export(app: &TestApp) -> Vec<u8> {
    let path = format!("/admin/apps/{}/export", app.app_id());
    app.operator().post(&path, json!({ "key": KEY })).await.expect(200).bytes().to_vec()
}

fn operator(service: &Service) -> Caller {
    Caller::new(service.app()).with_operator_key(testkit::OPERATOR_KEY)
}

async fn import(service: &Service, archive: Vec<u8>) -> Answer {
    operator(service).header("x-archive-key", KEY).send(Method::POST, "/admin/apps/import", archive).await
}

async fn an_app_moves_between_a_folder_and_a_bucket(app: TestApp) {
    app.restart_with(enlarge).await;
    let acme = app.workspace("acme").await;
    let large = large();
    let addresses = [in_folder(&app, &acme, BYTES).await, in_folder(&app, &acme, &large).await];
    let (archive, s3) = (export(&app).await, S3::start(&app).await);
    let there = Site::migrated(EngineName::Sqlite);
    let place = s3.place();
    let service = there.open(|options| options.files.place = place).await.expect("opens");
    import(&service, archive).await.expect(200);
    assert_eq!(s3.objects().await.len(), 2);
    for (address, bytes) in addresses.iter().zip([BYTES, &large]) {
        assert!(from_bucket(&s3, &service, address).await.bytes == bytes);
    }
    service.close().await;
    // And back: the rows never left, so that the bucket is used as a copy of the folder.
    use_bucket(&app, &s3).await;
    let remote = in_bucket(&s3, &acme, b"posted to the bucket").await;
    let archive = export(&app).await;
    let back = Site::migrated(app.site().engine());
    let service = back.open(|_| {}).await.expect("opens");
    import(&service, archive).await.expect(200);
    let mut tags = Vec::new();
    for (address, bytes) in addresses.iter().chain([&remote]).zip([BYTES, &large, b"posted to the bucket"]) {
        let read = Caller::new(service.app()).get(address).await.expect(200);
        assert!(read.bytes() == bytes);
        tags.push(read.header("etag").expect("a tag").to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "each has a tag of its own: {tags:?}");
    service.close().await;
}

/// Removes what nobody needs: rows of an import that failed first, and bytes without a row then.
async fn clean_up(service: &Service) {
    for _ in 0..3 {
        operator(service).post("/admin/test-clock", json!({ "advanceSeconds": 3_600 })).await.expect(200);
        service.drain().await.expect("drained");
    }
}

/// Parts that nobody ends are stored and paid for, and no listing shows them.
async fn a_file_in_parts_that_fails_on_its_way_leaves_no_parts(app: TestApp) {
    app.restart_with(enlarge).await;
    let acme = app.workspace("acme").await;
    let large = large();
    let address = in_folder(&app, &acme, &large).await;
    let (archive, s3) = (export(&app).await, S3::start(&app).await);
    let (there, place) = (Site::migrated(app.site().engine()), s3.place());
    let service = there.open(|options| options.files.place = place).await.expect("opens");
    // A part in the middle, the beginning, and the end before and after it was done.
    let faults = [(Method::PUT, 2, false), (Method::POST, 1, false), (Method::POST, 2, false)];
    for (method, count, is_midway) in faults.into_iter().chain([(Method::POST, 2, true)]) {
        match is_midway {
            true => s3.cut(&method, count).await,
            false => s3.refuse(&method, count).await,
        }
        import(&service, archive.clone()).await.error(503, "STORAGE_UNAVAILABLE");
        assert_eq!(s3.parts().await, [""; 0], "{method} {count}");
        assert_eq!(s3.objects().await.len(), usize::from(is_midway), "{method} {count}");
        assert_eq!(operator(&service).get("/admin/apps").await.json(), json!([]));
        clean_up(&service).await;
        assert_eq!(s3.objects().await, [""; 0], "{method} {count}");
    }
    import(&service, archive).await.expect(200);
    assert_eq!((s3.parts().await.len(), s3.objects().await.len()), (0, 1));
    assert!(from_bucket(&s3, &service, &address).await.bytes == large);
    service.close().await;
}
