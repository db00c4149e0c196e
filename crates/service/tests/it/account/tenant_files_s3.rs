//! Files in an S3-compatible storage: posted to it by its own form, taken over, and read from it.

use std::time::Duration;

use http::Method;
use serde_json::{Map, Value, json};
use testkit::{
    Caller, TestApp, Workspace, counterparts, on_both_engines,
    s3::{BUCKET, Fetched, KEY, REGION, S3, SECRET},
};

on_both_engines!(
    a_file_is_posted_to_the_storage_and_read_from_it,
    a_form_allows_one_key_one_type_and_no_more_bytes,
    what_is_posted_again_changes_nothing,
    bytes_that_change_while_they_are_taken_over_are_not_taken,
    a_storage_that_is_away_leaves_nothing_half_done,
    limits_hold_in_the_storage_too,
    the_storage_shows_harmless_types_only,
    a_picture_loses_what_it_carries_beside_itself,
    addresses_last_as_long_as_they_say,
    the_sweep_takes_what_is_ours_and_nobodys,
    doctor_counts_and_names,
    a_wrong_storage_is_told_at_the_start,
    forms_and_addresses_are_those_of_botocore,
    a_batch_in_the_storage_can_be_imported,
);

const FINISH: &str = "/account/tenant/upload/finish";
const URLS: &str = "/account/tenant/file/signedUrl";
const DELETE: &str = "/account/tenant/file/delete";
const LIST: &str = "/account/tenant/file";
const HOUR: Duration = Duration::from_secs(3_600);

/// A storage that the app uses from now on, and a workspace.
async fn somewhere(app: &TestApp) -> (S3, Workspace, Caller) {
    let s3 = S3::start(app).await;
    let place = s3.place();
    app.restart_with(|options| options.files.place = place).await;
    let acme = app.workspace("acme").await;
    let key = acme.key();
    (s3, acme, key)
}

/// A file with these bytes: its key, and its address without the host.
async fn stored(s3: &S3, caller: &Caller, kind: &str, bytes: &[u8], finish: Value) -> (String, String) {
    let form = s3.prepare(caller, "a file.bin", kind).await;
    assert_eq!(s3.post(&form, bytes).await, (204, String::new()));
    finished(caller, &form, finish).await
}

async fn finished(caller: &Caller, form: &Map<String, Value>, mut body: Value) -> (String, String) {
    body["key"] = form["key"].clone();
    let address = caller.post(FINISH, body).await.expect(200).json();
    (key_of(form), path(&address))
}

/// The file's own key, of the one that the storage has.
fn key_of(form: &Map<String, Value>) -> String {
    form["key"].as_str().and_then(|key| key.strip_prefix("tenantry/tmp/")).expect("below the prefix").to_owned()
}

fn path(address: &Value) -> String {
    let address = address.as_str().expect("an address");
    address.strip_prefix("http://tenantry.test").expect("an address of this service").to_owned()
}

async fn location(app: &TestApp, address: &str) -> String {
    app.anon().get(address).await.expect(307).header("location").expect("a location").to_owned()
}

/// Follows an address to the storage.
async fn read(app: &TestApp, s3: &S3, address: &str) -> Fetched {
    s3.fetch(Method::GET, &location(app, address).await, &[]).await
}

async fn a_file_is_posted_to_the_storage_and_read_from_it(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let form = s3.prepare(&caller, "Übersicht.pdf", "application/pdf").await;
    caller.post(FINISH, json!({ "key": form["key"] })).await.error(409, "CONFLICT");
    let bytes = [&b"%PDF-1.7 "[..], &vec![7; 700_000]].concat();
    assert_eq!(s3.post(&form, &bytes).await, (204, String::new()));
    assert_eq!(s3.objects().await, [form["key"].as_str().expect("a key")]);
    let (key, address) = finished(&caller, &form, json!({ "persist": true })).await;
    let objects = s3.objects().await;
    assert!(objects.len() == 1 && !objects[0].contains("/tmp/"), "{objects:?}");

    let found = read(&app, &s3, &address).await;
    assert_eq!((found.status, found.bytes == bytes), (200, true));
    assert_eq!(found.header("content-type"), "application/pdf");
    let name = "inline; filename=\"_bersicht.pdf\"; filename*=UTF-8''%C3%9Cbersicht.pdf";
    assert_eq!(found.header("content-disposition"), name);
    let url = location(&app, &address).await;
    let part = s3.fetch(Method::GET, &url, &[("range", "bytes=0-3")]).await;
    assert_eq!((part.status, &part.bytes[..]), (206, &b"%PDF"[..]));
    let known = s3.fetch(Method::GET, &url, &[("if-none-match", found.header("etag"))]).await;
    assert_eq!(known.status, 304);
    assert_eq!(s3.fetch(Method::HEAD, &url, &[]).await.status, 403, "that one is for reading");
    let head = app.anon().call(Method::HEAD, &address, None).await.expect(307);
    let head = s3.fetch(Method::HEAD, head.header("location").expect("a location"), &[]).await;
    assert_eq!((head.status, head.header("content-length")), (200, "700009"));

    let listed = caller.get(LIST).await.expect(200);
    assert_eq!((listed.text("/0/key"), listed.at("/0/size")), (key.clone(), json!(700_009)));
    // Under either key, and once more.
    for given in [form["key"].clone(), json!(key)] {
        caller.post(FINISH, json!({ "key": given })).await.expect(200);
        let again = caller.post(URLS, json!({ "keys": [given] })).await.expect(200).json();
        assert_eq!(read(&app, &s3, &path(&again[0])).await.status, 200);
    }
    caller.post(DELETE, json!({ "key": form["key"] })).await.expect(200);
    assert!(s3.objects().await.is_empty());
    assert!([403, 404].contains(&s3.fetch(Method::GET, &url, &[]).await.status));
    app.anon().get(&address).await.error(404, "NOT_FOUND");
}

async fn a_form_allows_one_key_one_type_and_no_more_bytes(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let form = s3.prepare(&caller, "a", "text/plain").await;
    let other = s3.prepare(&caller, "b", "text/html").await;
    for (name, value) in [
        ("key", other["key"].clone()),
        ("key", json!("tenantry/ab/abcdefgh")),
        ("key", json!("elsewhere")),
        ("Content-Type", json!("text/html")),
        ("policy", other["policy"].clone()),
        ("x-amz-signature", other["x-amz-signature"].clone()),
        ("success_action_status", json!("200")),
        ("acl", json!("public-read")),
        ("x-amz-meta-note", json!("hello")),
    ] {
        let mut changed = form.clone();
        changed.insert(name.to_owned(), value);
        assert_eq!(s3.post(&changed, b"a").await.0, 403, "{name}");
    }
    let most = vec![0; 1024 * 1024 + 1];
    assert_eq!(s3.post(&form, &most).await, (400, "EntityTooLarge".into()));
    assert_eq!(s3.objects().await, [""; 0]);
    assert_eq!(s3.post(&form, &most[1..]).await.0, 204);
    // Our own route takes no forms while the storage does.
    testkit::files::post(&app, &form, b"a").await.error(403, "FORBIDDEN");
}

async fn what_is_posted_again_changes_nothing(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let form = s3.prepare(&caller, "a.txt", "text/plain").await;
    assert_eq!(s3.post(&form, b"a draft").await.0, 204);
    assert_eq!(s3.post(&form, b"what counts").await.0, 204);
    let (_, address) = finished(&caller, &form, json!({ "persist": true })).await;
    assert_eq!(s3.post(&form, b"too late").await.0, 204);
    finished(&caller, &form, json!({})).await;
    assert_eq!(read(&app, &s3, &address).await.bytes, b"what counts");
    assert_eq!(s3.objects().await.len(), 2);
    for _ in 0..2 {
        app.advance(HOUR).await;
    }
    assert_eq!(s3.objects().await.len(), 1, "the last one was swept");
}

async fn bytes_that_change_while_they_are_taken_over_are_not_taken(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    for (after, kind, remove) in [
        (Method::HEAD, "image/png", false),
        (Method::HEAD, "image/jpeg", true),
        (Method::GET, "image/png", false),
        (Method::GET, "image/png", true),
    ] {
        let form = s3.prepare(&caller, "a", kind).await;
        assert_eq!(s3.post(&form, b"\x89PNG\r\n\x1a\n...").await.0, 204);
        s3.change_once_after(after, form["key"].as_str().expect("a key")).await;
        let finish = json!({ "key": form["key"], "removeMetaData": remove });
        caller.post(FINISH, finish).await.error(409, "CONFLICT");
        let (_, address) = finished(&caller, &form, json!({ "removeMetaData": remove })).await;
        let found = read(&app, &s3, &address).await;
        assert_eq!(found.bytes, b"other bytes");
        assert_eq!(found.header("content-type"), "application/octet-stream", "they are no picture");
    }
    // Of two at once, one counts.
    let form = s3.prepare(&caller, "a", "text/plain").await;
    assert_eq!(s3.post(&form, b"once").await.0, 204);
    let finish = async || caller.post(FINISH, json!({ "key": form["key"] })).await.status();
    let both = tokio::join!(finish(), finish());
    assert!(both.0 == 200 || both.1 == 200, "{both:?}");
    assert_eq!(testkit::facts::told(&app, "file.stored").await.len(), 5);
    assert_eq!(s3.objects().await.len(), 5);
}

async fn a_storage_that_is_away_leaves_nothing_half_done(app: TestApp) {
    app.expect_failures();
    let (s3, acme, caller) = somewhere(&app).await;
    let form = s3.prepare(&caller, "a.txt", "text/plain").await;
    assert_eq!(s3.post(&form, b"bytes").await.0, 204);
    for status in [500, 503, 403] {
        s3.answer_with(status).await;
        let refused = caller.post(FINISH, json!({ "key": form["key"] })).await.error(503, "STORAGE_UNAVAILABLE");
        assert_eq!(refused.header("retry-after"), Some("5"));
        assert!(!refused.body().contains(KEY) && !refused.body().contains("127.0.0.1"), "{}", refused.body());
    }
    s3.answer_with(0).await;
    s3.fail_a_copy().await;
    caller.post(FINISH, json!({ "key": form["key"] })).await.error(503, "STORAGE_UNAVAILABLE");
    assert_eq!(caller.get(LIST).await.expect(200).json(), json!([]));
    let (key, _) = finished(&caller, &form, json!({ "persist": true })).await;
    s3.answer_with(503).await;
    caller.post(DELETE, json!({ "key": key })).await.expect(200);
    assert!(app.service().drain().await.is_err(), "nothing can be swept");
    s3.answer_with(0).await;
    assert_eq!(s3.objects().await.len(), 1);
    for _ in 0..3 {
        app.advance(HOUR).await;
    }
    assert!(s3.objects().await.is_empty(), "it was swept");
    let form = s3.prepare(&caller, "b.txt", "text/plain").await;
    s3.kill();
    caller.post(FINISH, json!({ "key": form["key"] })).await.error(503, "STORAGE_UNAVAILABLE");
    caller.get(LIST).await.expect(200);
    // Logins do not need it: the service starts all the same.
    let place = s3.place();
    app.restart_with(|options| options.files.place = place).await;
    acme.key().get(LIST).await.expect(200);
}

async fn limits_hold_in_the_storage_too(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let form = s3.prepare(&caller, "a", "a/b").await;
    // As a storage would that does not read policies to their end.
    s3.put(form["key"].as_str().expect("a key"), &vec![0; 1024 * 1024 + 1]).await;
    caller.post(FINISH, json!({ "key": form["key"] })).await.error(413, "BODY_TOO_LARGE");
    assert!(s3.objects().await.is_empty(), "no bytes are kept");
    for _ in 0..2 {
        stored(&s3, &caller, "a/b", &vec![0; 1024 * 1024], json!({ "persist": true })).await;
    }
    assert_eq!(s3.post(&form, b"one byte more").await.0, 204);
    caller.post(FINISH, json!({ "key": form["key"] })).await.error(413, "BODY_TOO_LARGE");
    assert_eq!(s3.objects().await.len(), 2, "no bytes are kept");
    let (_, empty) = stored(&s3, &app.workspace("other").await.key(), "a/b", b"", json!({})).await;
    assert_eq!(read(&app, &s3, &empty).await.bytes, b"");
}

async fn the_storage_shows_harmless_types_only(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    for (kind, bytes, shown, served) in [
        ("image/png", &b"\x89PNG\r\n\x1a\n..."[..], "inline", "image/png"),
        ("image/png", b"<script>alert(1)</script>", "attachment", "application/octet-stream"),
        ("text/html", b"<script>alert(1)</script>", "attachment", "text/html"),
        ("image/svg+xml", b"<svg onload=alert(1)>", "attachment", "image/svg+xml"),
        ("text/plain; charset=utf-7", b"+ADw-script", "inline", "text/plain; charset=utf-8"),
    ] {
        let (_, address) = stored(&s3, &caller, kind, bytes, json!({})).await;
        let found = read(&app, &s3, &address).await;
        let disposition = found.header("content-disposition");
        assert!(disposition.starts_with(&format!("{shown};")), "{kind}: {disposition}");
        assert_eq!(found.header("content-type"), served);
        // The address says so, and nobody can make it say something else.
        let url = location(&app, &address).await;
        for (given, other) in [("=inline", "=attachment"), ("=attachment", "=inline"), ("response-content-type", "x")] {
            if url.contains(given) {
                assert_eq!(s3.fetch(Method::GET, &url.replace(given, other), &[]).await.status, 403, "{given}");
            }
        }
    }
}

async fn a_picture_loses_what_it_carries_beside_itself(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let exif = b"\xff\xe1\x00\x0dExif\0\0place";
    let jpeg = [&b"\xff\xd8"[..], exif, b"\xff\xda\x00\x02pixels\xff\xd9"].concat();
    let (_, kept) = stored(&s3, &caller, "image/jpeg", &jpeg, json!({})).await;
    assert_eq!(read(&app, &s3, &kept).await.bytes, jpeg);
    for (kind, bytes, left) in [
        ("image/jpeg", &jpeg[..], &b"\xff\xd8\xff\xda\x00\x02pixels\xff\xd9"[..]),
        ("image/jpeg", b"no picture", b"no picture"),
        ("text/plain", b"text", b"text"),
    ] {
        let (key, address) = stored(&s3, &caller, kind, bytes, json!({ "removeMetaData": true })).await;
        assert_eq!(read(&app, &s3, &address).await.bytes, left);
        let listed = caller.get(LIST).await.expect(200);
        assert_eq!((listed.text("/0/key"), listed.at("/0/size")), (key, json!(left.len())));
    }
    assert_eq!(s3.objects().await.len(), 4);
}

async fn addresses_last_as_long_as_they_say(app: TestApp) {
    let (s3, acme, caller) = somewhere(&app).await;
    let lasts = |url: &str| {
        let lasts =
            url.split_once("X-Amz-Expires=").expect("a limit").1.split('&').next().expect("a number").to_owned();
        lasts.parse::<u64>().expect("a number")
    };
    let (_, private) = stored(&s3, &caller, "text/plain", b"hidden", json!({ "persist": true })).await;
    let (key, public) =
        stored(&s3, &caller, "text/plain", b"hello", json!({ "persist": true, "publicFile": true })).await;
    app.advance(Duration::from_secs(3_000)).await;
    let left = lasts(&location(&app, &private).await);
    assert!((1..=600).contains(&left), "what is left of the hour: {left}");
    app.advance(Duration::from_secs(600)).await;
    app.anon().get(&private).await.error(403, "FORBIDDEN");
    app.advance(Duration::from_secs(400 * 24 * 3600)).await;
    assert_eq!(read(&app, &s3, &public).await.bytes, b"hello");
    assert_eq!(lasts(&location(&app, &public).await), 3_600);
    let answer = app.anon().get(&public).await.expect(307);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    caller.post(DELETE, json!({ "key": key })).await.expect(200);
    app.anon().get(&public).await.error(403, "FORBIDDEN");
    let elsewhere = app.workspace("other").await.key();
    elsewhere.post(URLS, json!({ "keys": [key] })).await.error(404, "NOT_FOUND");
    app.key_with(&["TENANT_DELETE"]).await.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    for _ in 0..3 {
        app.advance(HOUR).await;
    }
    assert!(s3.objects().await.is_empty(), "bytes go with their workspace");
}

async fn the_sweep_takes_what_is_ours_and_nobodys(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let (_, address) = stored(&s3, &caller, "text/plain", b"kept", json!({ "persist": true })).await;
    let waiting = s3.prepare(&caller, "a", "text/plain").await;
    assert_eq!(s3.post(&waiting, b"waits to be finished").await.0, 204);
    let foreign = ["other/ab/abcdefgh", "tenantry.txt", "tenantry/ab/not-ours.txt", "tenantry/readme"];
    for key in foreign {
        s3.put(key, b"somebody's").await;
    }
    // More than a page.
    s3.put_many(520).await;
    assert_eq!(s3.objects().await.len(), 526);
    for _ in 0..2 {
        app.advance(HOUR).await;
    }
    let left = s3.objects().await;
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(foreign.iter().all(|key| left.iter().any(|left| left == key)), "{left:?}");
    assert!(left.iter().any(|key| *key == waiting["key"]));
    // What nobody finishes goes after a day.
    for _ in 0..5 {
        app.advance(Duration::from_secs(12 * 3_600)).await;
    }
    assert_eq!(s3.objects().await.len(), 5);
    let again = caller.get(LIST).await.expect(200).text("/0/key");
    let url = caller.post(URLS, json!({ "keys": [again] })).await.expect(200).json();
    assert_eq!(read(&app, &s3, &path(&url[0])).await.bytes, b"kept");
    app.anon().get(&address).await.error(403, "FORBIDDEN");
}

async fn finding(app: &TestApp) -> (String, String) {
    let report = app.operator().get("/admin/doctor").await.expect(200).json();
    let found = report["findings"].as_array().expect("findings").iter().find(|one| one["check"] == "stored files");
    let found = found.expect("the check");
    let text = |name: &str| found[name].as_str().expect("a text").to_owned();
    (text("level"), text("message"))
}

async fn doctor_counts_and_names(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let (key, _) = stored(&s3, &caller, "text/plain", b"bytes", json!({ "persist": true })).await;
    assert_eq!(finding(&app).await, ("ok".into(), "the bytes of all 1 files are there".into()));
    s3.put_many(3).await;
    assert_eq!(finding(&app).await.0, "warning");
    let object = s3.objects().await.into_iter().find(|object| !object.contains("/00/")).expect("the object");
    s3.remove(&object).await;
    assert_eq!(finding(&app).await, ("problem".into(), format!("the bytes of 1 files are missing: {key}")));
    s3.answer_with(403).await;
    let (level, message) = finding(&app).await;
    assert_eq!(level, "problem");
    assert!(message.contains("403") && message.contains("the key or the secret is wrong"), "{message}");
    s3.answer_with(0).await;
}

async fn a_wrong_storage_is_told_at_the_start(app: TestApp) {
    let s3 = S3::start(&app).await;
    let site = testkit::Site::migrated(app.site().engine());
    for (right, wrong, said) in [
        (KEY, "AKIDOTHER", "403 InvalidAccessKeyId"),
        ("s3cr", "other", "403 SignatureDoesNotMatch"),
        (BUCKET, "no-such-bucket", "there is no such bucket"),
        (REGION, "eu-other-1", "another region"),
    ] {
        let place = S3::place_of(&s3.url().replace(right, wrong));
        let refused = site.open(|options| options.files.place = place).await.err().expect("it does not start");
        let message = refused.public();
        assert!(message.starts_with("files_url names a storage that cannot be used: "), "{message}");
        assert!(message.contains(said) && !message.contains("s3cr") && !message.contains("other%2F"), "{message}");
    }
}

/// Whatever it signs, at whatever time: letter by letter.
async fn forms_and_addresses_are_those_of_botocore(app: TestApp) {
    let (s3, acme, caller) = somewhere(&app).await;
    let local = (s3.url(), s3.endpoint(), true);
    // Nobody listens there, and nobody has to.
    let hosted = format!("s3://{KEY}:s3cr%2Fet+key=@s3.localhost:1/{BUCKET}?region={REGION}");
    let hosted = (hosted, "https://s3.localhost:1".to_owned(), false);
    let (_, address) = stored(&s3, &caller, "image/png", b"\x89PNG\r\n\x1a\n", json!({ "publicFile": true })).await;
    let object = s3.objects().await.remove(0);
    for (url, endpoint, path_style) in [local, hosted] {
        app.restart_with(|options| options.files.place = S3::place_of(&url)).await;
        let (mut read, mut form) = (Vec::new(), Vec::new());
        for method in [Method::GET, Method::HEAD] {
            let answer = app.anon().call(method.clone(), &address, None).await.expect(307);
            read.push((method == Method::HEAD, answer.header("location").expect("a location").to_owned()));
        }
        for kind in ["text/plain", "text/plain; title=\"a \\\" b\"; charset='utf-8'", "application/x+y;q=%20"] {
            let asked = json!({ "fileName": "a", "contentType": kind });
            form.push(acme.key().post("/account/tenant/upload/prepare", asked).await.expect(200).json());
        }
        let date = |url: &str| url.split_once("X-Amz-Date=").expect("a date").1[..16].to_owned();
        let disposition = "inline; filename=\"a file.bin\"; filename*=UTF-8''a%20file.bin";
        let inputs = json!({
            "endpoint": endpoint, "region": REGION, "key": KEY, "secret": SECRET, "bucket": BUCKET, "pathStyle": path_style,
            "read": read.iter().map(|(head, url)| json!({
                "date": date(url), "head": head, "key": object, "disposition": disposition, "contentType": "image/png",
                "lasts": 3_600,
            })).collect::<Vec<_>>(),
            "form": form.iter().map(|form| json!({
                "date": form["fields"]["x-amz-date"], "key": form["fields"]["key"],
                "contentType": form["fields"]["Content-Type"], "maxBytes": 1024 * 1024, "lasts": 900,
            })).collect::<Vec<_>>(),
        });
        let made = counterparts::python_with("s3_signatures.py", &[("INPUTS", inputs.to_string())]).await;
        let ours: Vec<&String> = read.iter().map(|(_, url)| url).collect();
        assert_eq!(json!(ours), made["read"]);
        assert_eq!(json!(form), made["form"]);
    }
    app.restart().await;
}

async fn a_batch_in_the_storage_can_be_imported(app: TestApp) {
    let (s3, _, caller) = somewhere(&app).await;
    let form = s3.prepare(&caller, "people.csv", "text/csv").await;
    assert_eq!(s3.post(&form, b"workspace,username\nBolt,ada@example.com\n").await.0, 204);
    let (_, address) = finished(&caller, &form, json!({})).await;
    let import = json!({ "fileUrl": format!("http://tenantry.test{address}") });
    let imported = app.key().post("/account/import/tenantsFromFile", import).await.expect(200);
    assert_eq!(imported.at("/import/users"), 1);
}
