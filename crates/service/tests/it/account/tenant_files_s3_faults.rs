//! Files in an S3-compatible storage while something breaks: a node dies between two of its requests, the storage fails or
//! breaks off, a form is too old. Whatever was reached, finishing can be repeated, and the sweep leaves what a row names.

use std::time::Duration;

use http::Method;
use serde_json::{Map, Value, json};
use testkit::{Caller, TestApp, Workspace, facts, on_both_engines, s3::S3};

on_both_engines!(
    a_node_that_dies_while_it_takes_over_leaves_nothing,
    a_storage_that_breaks_off_leaves_nothing,
    a_form_of_the_storage_lasts_a_quarter_of_an_hour,
    parts_of_an_upload_that_nobody_ended_are_swept,
);

const FINISH: &str = "/account/tenant/upload/finish";
const LIST: &str = "/account/tenant/file";
const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
const PHOTO: &[u8] = b"\xff\xd8\xff\xe1\x00\x0dExif\0\0place\xff\xda\x00\x02pixels\xff\xd9";
const WITHOUT_PLACE: &[u8] = b"\xff\xd8\xff\xda\x00\x02pixels\xff\xd9";

async fn use_storage(app: &TestApp, s3: &S3) {
    let place = s3.place();
    app.restart_with(|options| options.files.place = place).await;
}

async fn somewhere(app: &TestApp) -> (S3, Workspace) {
    let s3 = S3::start(app).await;
    use_storage(app, &s3).await;
    (s3, app.workspace("acme").await)
}

/// A photo that waits to be finished.
async fn posted(s3: &S3, caller: &Caller) -> Map<String, Value> {
    let form = s3.prepare(caller, "a.jpg", "image/jpeg").await;
    assert_eq!(s3.post(&form, PHOTO).await.0, 204);
    form
}

fn finish(form: &Map<String, Value>, remove_metadata: bool) -> Value {
    json!({ "key": form["key"], "persist": true, "removeMetaData": remove_metadata })
}

async fn listed(acme: &Workspace) -> usize {
    acme.key().get(LIST).await.expect(200).json().as_array().map(Vec::len).expect("a list")
}

/// Finishes, once more too, and reads what everybody reads from then on.
async fn finished(app: &TestApp, s3: &S3, acme: &Workspace, form: &Map<String, Value>, remove_metadata: bool) {
    for _ in 0..2 {
        let address = acme.key().post(FINISH, finish(form, remove_metadata)).await.expect(200).text("");
        let path = address.strip_prefix("http://tenantry.test").expect("an address of this service");
        let answer = app.anon().get(path).await.expect(307);
        let read = s3.fetch(Method::GET, answer.header("location").expect("a location"), &[]).await;
        assert_eq!(read.bytes, if remove_metadata { WITHOUT_PLACE } else { PHOTO });
    }
}

/// After the sweep there are the bytes of so many files, and nothing else.
async fn is_swept(app: &TestApp, s3: &S3, files: usize) {
    for _ in 0..2 {
        app.advance(HOUR).await;
    }
    assert_eq!(s3.objects().await.len(), files, "{:?}", s3.objects().await);
    let report = app.operator().get("/admin/doctor").await.expect(200).json();
    let found = report["findings"].as_array().expect("findings").iter().find(|one| one["check"] == "stored files");
    let message = format!("the bytes of all {files} files are there");
    assert_eq!(found.expect("the check")["message"], message);
}

/// Each of its requests in turn is done by the storage and never heard of here: the copy before the row, and the removal after
/// it, among them.
async fn a_node_that_dies_while_it_takes_over_leaves_nothing(app: TestApp) {
    let (s3, acme) = somewhere(&app).await;
    let moments = [
        (Method::HEAD, 1, false),
        (Method::GET, 1, false),
        (Method::PUT, 1, false),
        (Method::DELETE, 1, false),
        (Method::GET, 2, true),
        (Method::PUT, 1, true),
        (Method::DELETE, 1, true),
    ];
    for (n, (method, count, remove)) in moments.iter().enumerate() {
        let (caller, before) = (acme.key(), s3.objects().await.len());
        let form = posted(&s3, &caller).await;
        s3.hold(method, *count).await;
        let body = finish(&form, *remove);
        let finishing = tokio::spawn(async move { caller.post(FINISH, body).await.status() });
        s3.holds().await;
        finishing.abort();
        assert!(finishing.await.expect_err("it never ends").is_cancelled());
        use_storage(&app, &s3).await;
        let (is_copied, has_row) = (*method == Method::PUT, *method == Method::DELETE);
        assert_eq!(s3.objects().await.len(), before + 1 + usize::from(is_copied), "{method}");
        assert_eq!(listed(&acme).await, n + usize::from(has_row), "{method}");
        finished(&app, &s3, &acme, &form, *remove).await;
        assert_eq!(listed(&acme).await, n + 1);
    }
    assert_eq!(facts::told(&app, "file.stored").await.len(), moments.len());
    is_swept(&app, &s3, moments.len()).await;
}

async fn a_storage_that_breaks_off_leaves_nothing(app: TestApp) {
    let (s3, acme) = somewhere(&app).await;
    let faults = [
        (Method::HEAD, 1, false, false),
        (Method::GET, 1, false, false),
        (Method::GET, 1, false, true),
        (Method::PUT, 1, false, false),
        (Method::PUT, 1, false, true),
        (Method::GET, 2, true, false),
        (Method::GET, 2, true, true),
        (Method::PUT, 1, true, false),
    ];
    for (n, (method, count, remove, is_midway)) in faults.iter().enumerate() {
        let form = posted(&s3, &acme.key()).await;
        match is_midway {
            true => s3.cut(method, *count).await,
            false => s3.refuse(method, *count).await,
        }
        let refused = acme.key().post(FINISH, finish(&form, *remove)).await.error(503, "STORAGE_UNAVAILABLE");
        assert_eq!(refused.header("retry-after"), Some("5"));
        assert_eq!(listed(&acme).await, n, "{method}");
        finished(&app, &s3, &acme, &form, *remove).await;
    }
    // One that is finished all the same: what was posted stays for the sweep.
    let form = posted(&s3, &acme.key()).await;
    s3.refuse(&Method::DELETE, 1).await;
    finished(&app, &s3, &acme, &form, false).await;
    assert!(s3.objects().await.iter().any(|key| *key == form["key"]));
    assert_eq!(facts::told(&app, "file.stored").await.len(), faults.len() + 1);
    is_swept(&app, &s3, faults.len() + 1).await;
}

async fn a_form_of_the_storage_lasts_a_quarter_of_an_hour(app: TestApp) {
    let (s3, acme) = somewhere(&app).await;
    let (in_time, late) =
        (s3.prepare(&acme.key(), "a", "image/jpeg").await, s3.prepare(&acme.key(), "b", "image/jpeg").await);
    s3.is_ahead(14 * MINUTE).await;
    assert_eq!(s3.post(&in_time, PHOTO).await.0, 204);
    s3.is_ahead(15 * MINUTE + Duration::from_secs(1)).await;
    assert_eq!(s3.post(&late, PHOTO).await, (403, "AccessDenied".into()));
    assert_eq!(s3.post(&in_time, PHOTO).await, (403, "AccessDenied".into()));
    s3.is_ahead(Duration::ZERO).await;
    acme.key().post(FINISH, finish(&late, false)).await.error(409, "CONFLICT");
    finished(&app, &s3, &acme, &in_time, false).await;
    assert_eq!((listed(&acme).await, s3.objects().await.len()), (1, 1));
    // A form that nobody used is forgotten.
    app.advance(24 * HOUR).await;
    acme.key().post(FINISH, finish(&late, false)).await.error(404, "NOT_FOUND");
    is_swept(&app, &s3, 1).await;
}

/// As a node leaves them that is killed while it brings a file in.
async fn parts_of_an_upload_that_nobody_ended_are_swept(app: TestApp) {
    let (s3, acme) = somewhere(&app).await;
    let form = posted(&s3, &acme.key()).await;
    finished(&app, &s3, &acme, &form, false).await;
    let (kept, ours) = (s3.objects().await.remove(0), "tenantry/ab/abcdefghijklmnopqrstuvwxyz012345");
    let mut others = ["elsewhere/ab/abcdefgh", kept.as_str(), "tenantry/readme"];
    others.sort_unstable();
    // The first sweep of a node looks twice.
    app.drain().await;
    for key in others.into_iter().chain([ours, ours]) {
        s3.begin_parts(key).await;
    }
    app.drain().await;
    assert_eq!(s3.parts().await.len(), 5, "they may be on their way");
    // A storage that does not tell of them is swept all the same, and then later.
    s3.put("tenantry/cd/cdefghijklmnopqrstuvwxyz01234567", b"nobody's").await;
    s3.refuse(&Method::GET, 1).await;
    app.drain().await;
    assert_eq!((s3.parts().await.len(), s3.objects().await.len()), (5, 2));
    is_swept(&app, &s3, 1).await;
    assert_eq!(s3.parts().await, others, "one may still arrive, and the others are somebody else's");
}
