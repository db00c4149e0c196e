//! `/account/tenant/upload`, `/account/tenant/file`, and the addresses that they hand out.

use std::{
    sync::{Mutex, mpsc},
    time::Duration,
};

use http::Method;
use serde_json::{Value, json};
use store::DatabaseUrl;
use testkit::{
    Caller, EngineName, TestApp, Workspace, assert_body,
    files::{fields, part, post, prepare, send},
    on_both_engines,
};

on_both_engines!(
    a_file_is_prepared_posted_finished_and_read,
    a_form_is_good_for_one_file_once,
    a_form_that_was_changed_is_refused,
    finishing_needs_the_file,
    what_nobody_keeps_goes_after_a_day,
    a_public_file_is_read_until_it_is_deleted,
    a_public_address_survives_a_change_of_the_master_key,
    what_a_file_is_called_in_the_folder_opens_only_a_public_one,
    parts_of_a_file_can_be_read,
    files_have_limits,
    only_harmless_types_are_shown,
    a_picture_loses_what_it_carries_beside_itself,
    names_and_types_are_cleaned_or_refused,
    files_of_others_are_unknown,
    bytes_go_with_what_they_belong_to,
    bytes_without_a_row_go_when_they_are_seen_again,
    bytes_whose_row_comes_late_stay,
    what_happens_to_files_is_told,
);

const PREPARE: &str = "/account/tenant/upload/prepare";
const FINISH: &str = "/account/tenant/upload/finish";
const URLS: &str = "/account/tenant/file/signedUrl";
const DELETE: &str = "/account/tenant/file/delete";
const LIST: &str = "/account/tenant/file";

async fn somewhere(app: &TestApp) -> (Workspace, Caller) {
    let acme = app.workspace("acme").await;
    let key = acme.key();
    (acme, key)
}

/// A file with these bytes; its key and its address without the host.
async fn stored(app: &TestApp, caller: &Caller, kind: &str, bytes: &[u8], finish: Value) -> (String, String) {
    let form = prepare(caller, "a file.bin", kind).await;
    post(app, &form, bytes).await.expect(204);
    let mut body = finish;
    body["key"] = form["key"].clone();
    let address = caller.post(FINISH, body).await.expect(200).json();
    (form["key"].as_str().expect("a key").to_owned(), path(&address))
}

fn path(address: &Value) -> String {
    let address = address.as_str().expect("an address");
    address.strip_prefix("http://tenantry.test").expect("an address of this service").to_owned()
}

fn objects(app: &TestApp) -> usize {
    let folders = std::fs::read_dir(app.site().folder().join("files")).into_iter().flatten().flatten();
    folders.map(|folder| std::fs::read_dir(folder.path()).expect("a folder").count()).sum()
}

async fn a_file_is_prepared_posted_finished_and_read(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let form = prepare(&caller, "Übersicht.pdf", "application/pdf").await;
    assert_eq!(caller.get(LIST).await.expect(200).json(), json!([]));
    let bytes = [&b"%PDF-1.7 "[..], &vec![7; 700_000]].concat();
    assert_eq!(post(&app, &form, &bytes).await.expect(204).bytes(), b"");
    let address = caller.post(FINISH, json!({ "key": form["key"], "persist": true })).await.expect(200).json();
    let read = app.anon().get(&path(&address)).await.expect(200);
    assert_eq!(read.bytes(), bytes);
    for (name, value) in [
        ("content-type", "application/pdf"),
        ("content-disposition", "inline; filename=\"_bersicht.pdf\"; filename*=UTF-8''%C3%9Cbersicht.pdf"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(read.header(name), Some(value), "{name}");
    }
    assert_body!(caller.get(LIST).await.expect(200), @r#"
    [
      {
        "contentType": "application/pdf",
        "createdAt": "[time]",
        "fileName": "Übersicht.pdf",
        "key": "[file id]",
        "persisted": true,
        "publicFile": false,
        "size": 700009
      }
    ]
    "#);
    let again = caller.post(FINISH, json!({ "key": form["key"] })).await.expect(200).json();
    app.anon().get(&path(&again)).await.expect(200);
    let urls = caller.post(URLS, json!({ "keys": [form["key"], form["key"]] })).await.expect(200).json();
    assert_eq!(urls.as_array().map(Vec::len), Some(2));
    app.anon().get(&path(&urls[1])).await.expect(200);
    assert_eq!(caller.post(DELETE, json!({ "key": form["key"] })).await.expect(200).json(), json!({ "success": true }));
    app.anon().get(&path(&address)).await.error(404, "NOT_FOUND");
    caller.post(DELETE, json!({ "key": form["key"] })).await.error(404, "NOT_FOUND");
    assert_eq!(objects(&app), 0);
}

async fn a_form_is_good_for_one_file_once(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let form = prepare(&caller, "a.txt", "text/plain").await;
    let file = part("file", b"a", true);
    send(&app, &fields(&form)).await.error(400, "MALFORMED_REQUEST");
    send(&app, &[fields(&form), vec![file.clone(), file.clone()]].concat()).await.error(400, "MALFORMED_REQUEST");
    send(&app, &[vec![file.clone()], fields(&form)].concat()).await.error(400, "MALFORMED_REQUEST");
    app.anon().post("/cloud-views/files", json!({})).await.error(415, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(objects(&app), 0, "no bytes are kept");
    let both = tokio::join!(post(&app, &form, b"one"), post(&app, &form, b"two"));
    let mut answers = [both.0.status(), both.1.status()];
    answers.sort_unstable();
    assert_eq!(answers, [204, 409]);
    post(&app, &form, b"three").await.error(409, "CONFLICT");
    assert_eq!(objects(&app), 1);
    let late = prepare(&caller, "late.txt", "text/plain").await;
    app.advance(Duration::from_secs(15 * 60 + 1)).await;
    post(&app, &late, b"late").await.error(403, "FORBIDDEN");
}

async fn a_form_that_was_changed_is_refused(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (form, other) = (prepare(&caller, "a", "text/plain").await, prepare(&caller, "b", "text/html").await);
    for (name, value) in [
        ("key", other["key"].clone()),
        ("key", json!("file_00000000000000000000000007")),
        ("key", json!("../../etc/passwd")),
        ("policy", other["policy"].clone()),
        ("policy", json!("x")),
        ("Content-Type", json!("text/html")),
    ] {
        let mut changed = form.clone();
        changed.insert(name.to_owned(), value);
        post(&app, &changed, b"a").await.error(403, "FORBIDDEN");
    }
    for name in ["key", "policy"] {
        let mut without = form.clone();
        without.remove(name);
        post(&app, &without, b"a").await.error(400, "MALFORMED_REQUEST");
    }
    assert_eq!(objects(&app), 0);
}

async fn finishing_needs_the_file(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let form = prepare(&caller, "a.txt", "text/plain").await;
    caller.post(FINISH, json!({ "key": form["key"] })).await.error(409, "CONFLICT");
    caller.post(URLS, json!({ "keys": [form["key"]] })).await.error(404, "NOT_FOUND");
    caller.post(FINISH, json!({ "key": "file_00000000000000000000000007" })).await.error(404, "NOT_FOUND");
    caller.post(FINISH, json!({ "key": "nothing" })).await.error(404, "NOT_FOUND");
    caller.post(FINISH, json!({})).await.refuses(&["key"]);
}

async fn what_nobody_keeps_goes_after_a_day(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (_, address) = stored(&app, &caller, "text/plain", b"passing", json!({})).await;
    stored(&app, &caller, "text/plain", b"kept", json!({ "persist": true })).await;
    app.anon().get(&address).await.expect(200);
    app.advance(Duration::from_secs(3600)).await;
    app.anon().get(&address).await.error(403, "FORBIDDEN");
    app.advance(Duration::from_secs(24 * 3600)).await;
    assert_eq!(caller.get(LIST).await.expect(200).json().as_array().map(Vec::len), Some(1));
    app.drain().await;
    app.drain().await;
    assert_eq!(objects(&app), 1);
}

async fn a_public_file_is_read_until_it_is_deleted(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let finish = json!({ "persist": true, "publicFile": true });
    let (key, address) = stored(&app, &caller, "text/plain", b"hello", finish).await;
    app.advance(Duration::from_secs(400 * 24 * 3600)).await;
    assert_eq!(app.anon().get(&address).await.expect(200).bytes(), b"hello");
    caller.post(DELETE, json!({ "key": key })).await.expect(200);
    app.anon().get(&address).await.error(403, "FORBIDDEN");
}

async fn a_public_address_survives_a_change_of_the_master_key(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (_, public) = stored(&app, &caller, "text/plain", b"hello", json!({ "publicFile": true })).await;
    let (_, other) = stored(&app, &caller, "text/plain", b"other", json!({})).await;
    app.restart_with(|options| {
        options.keys.master_previous = options.keys.master.replace(kernel::Secret::new("ff".repeat(32)));
    })
    .await;
    assert_eq!(app.anon().get(&public).await.expect(200).bytes(), b"hello");
    // A public address opens nothing else.
    let token = public.split_once("token=").expect("a token").1;
    let forged = format!("{}token={token}", other.split_once("token=").expect("a token").0);
    app.anon().get(&forged).await.error(403, "FORBIDDEN");
}

async fn what_a_file_is_called_in_the_folder_opens_only_a_public_one(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (key, address) = stored(&app, &caller, "text/plain", b"hello", json!({ "persist": true })).await;
    let object = "SELECT object FROM files";
    let (object,): (String,) = app.service().core().db.read(move |tx| tx.one(object, &[])).await.expect("an object");
    app.anon().get(&format!("/cloud-views/files/{key}?token={object}")).await.error(403, "FORBIDDEN");
    app.anon().get(&address).await.expect(200);
}

async fn parts_of_a_file_can_be_read(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (_, address) = stored(&app, &caller, "text/plain", b"0123456789", json!({})).await;
    let part = app.anon().header("range", "bytes=2-4").get(&address).await.expect(206);
    assert_eq!((part.bytes(), part.header("content-range")), (&b"234"[..], Some("bytes 2-4/10")));
    let beyond = app.anon().header("range", "bytes=10-").get(&address).await.expect(416);
    assert_eq!(beyond.header("content-range"), Some("bytes */10"));
    let etag = part.header("etag").expect("a tag").to_owned();
    app.anon().header("if-none-match", &etag).get(&address).await.expect(304);
    let changed = app.anon().header("range", "bytes=2-4").header("if-range", "\"other\"");
    assert_eq!(changed.get(&address).await.expect(200).bytes(), b"0123456789");
    let head = app.anon().call(Method::HEAD, &address, None).await.expect(200);
    assert_eq!((head.bytes(), head.header("content-length")), (&b""[..], Some("10")));
    let (_, empty) = stored(&app, &caller, "text/plain", b"", json!({})).await;
    assert_eq!(app.anon().get(&empty).await.expect(200).bytes(), b"");
}

async fn files_have_limits(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let form = prepare(&caller, "a", "a/b").await;
    post(&app, &form, &vec![0; 1024 * 1024 + 1]).await.error(413, "BODY_TOO_LARGE");
    for _ in 0..2 {
        stored(&app, &caller, "a/b", &vec![0; 1024 * 1024], json!({ "persist": true })).await;
    }
    post(&app, &form, b"one byte more").await.error(413, "BODY_TOO_LARGE");
    assert_eq!(objects(&app), 2, "no bytes are kept");
    let other = app.workspace("other").await;
    stored(&app, &other.key(), "a/b", b"another workspace has its own", json!({})).await;
}

async fn only_harmless_types_are_shown(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    for (kind, bytes, shown, served) in [
        ("image/png", &b"\x89PNG\r\n\x1a\n..."[..], "inline", "image/png"),
        ("image/png", b"<script>alert(1)</script>", "attachment", "application/octet-stream"),
        ("text/html", b"<script>alert(1)</script>", "attachment", "text/html"),
        ("image/svg+xml", b"<svg onload=alert(1)>", "attachment", "image/svg+xml"),
        ("text/plain; charset=utf-7", b"+ADw-script", "inline", "text/plain; charset=utf-8"),
        ("application/javascript", b"alert(1)", "attachment", "application/javascript"),
    ] {
        let (_, address) = stored(&app, &caller, kind, bytes, json!({})).await;
        let read = app.anon().get(&address).await.expect(200);
        let disposition = read.header("content-disposition").expect("a disposition");
        assert!(disposition.starts_with(&format!("{shown};")), "{kind}: {disposition}");
        assert_eq!(read.header("content-type"), Some(served));
        assert!(read.header("content-security-policy").is_some_and(|policy| policy.ends_with("sandbox")));
    }
}

async fn a_picture_loses_what_it_carries_beside_itself(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let exif = b"\xff\xe1\x00\x0dExif\0\0place";
    let jpeg = [&b"\xff\xd8"[..], exif, b"\xff\xda\x00\x02pixels\xff\xd9"].concat();
    let (_, kept) = stored(&app, &caller, "image/jpeg", &jpeg, json!({})).await;
    assert_eq!(app.anon().get(&kept).await.expect(200).bytes(), jpeg);
    let (_, cleaned) = stored(&app, &caller, "image/jpeg", &jpeg, json!({ "removeMetaData": true })).await;
    let without = b"\xff\xd8\xff\xda\x00\x02pixels\xff\xd9";
    let read = app.anon().get(&cleaned).await.expect(200);
    assert_eq!(read.bytes(), without);
    assert_eq!(read.header("etag"), Some(&*format!("\"{}\"", vault::sha256_hex(without))), "of what is read");
    let (_, other) = stored(&app, &caller, "text/plain", b"text", json!({ "removeMetaData": true })).await;
    assert_eq!(app.anon().get(&other).await.expect(200).bytes(), b"text");
    assert_eq!(objects(&app), 3);
}

async fn names_and_types_are_cleaned_or_refused(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    for name in ["../../etc/passwd", "a\r\nSet-Cookie: b=c", &"x".repeat(10_000), "C:\\x\\y.txt", "\u{202e}gpj.exe"] {
        let form = prepare(&caller, name, "text/plain").await;
        post(&app, &form, b"a").await.expect(204);
        let address = caller.post(FINISH, json!({ "key": form["key"] })).await.expect(200).json();
        let read = app.anon().get(&path(&address)).await.expect(200);
        assert_eq!(read.header("set-cookie"), None);
        let disposition = read.header("content-disposition").expect("a disposition");
        assert!(!disposition.contains(['/', '\\', '\n', '\r']), "{disposition}");
    }
    for kind in ["text", "text/plain\r\nX: y", "", "a/b\u{0}", "ä/ö", "text/"] {
        caller.post(PREPARE, json!({ "fileName": "a", "contentType": kind })).await.refuses(&["contentType"]);
    }
    caller.post(PREPARE, json!({ "fileName": "", "contentType": "a/b" })).await.refuses(&["fileName"]);
    caller.post(PREPARE, json!({ "fileName": "a\u{0}b", "contentType": "a/b" })).await.refuses(&["fileName"]);
}

async fn files_of_others_are_unknown(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (key, address) = stored(&app, &caller, "text/plain", b"mine", json!({ "persist": true })).await;
    let elsewhere = app.workspace("other").await.key();
    for (route, body) in
        [(FINISH, json!({ "key": key })), (URLS, json!({ "keys": [key] })), (DELETE, json!({ "key": key }))]
    {
        elsewhere.post(route, body).await.error(404, "NOT_FOUND");
    }
    assert_eq!(elsewhere.get(LIST).await.expect(200).json(), json!([]));
    let (other, _) = stored(&app, &caller, "text/plain", b"other", json!({ "persist": true })).await;
    let token = address.split_once("token=").expect("a token").1;
    app.anon().get(&format!("/cloud-views/files/{other}?token={token}")).await.error(403, "FORBIDDEN");
    app.anon().get(&format!("/cloud-views/files/{key}")).await.error(403, "FORBIDDEN");
    app.anon().get("/cloud-views/files/nothing?token=x").await.error(404, "NOT_FOUND");
}

async fn bytes_go_with_what_they_belong_to(app: TestApp) {
    let (acme, caller) = somewhere(&app).await;
    stored(&app, &caller, "text/plain", b"a", json!({ "persist": true })).await;
    stored(&app, &app.workspace("stays").await.key(), "text/plain", b"b", json!({ "persist": true })).await;
    let deleter = app.key_with(&["TENANT_DELETE"]).await;
    deleter.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    for _ in 0..3 {
        app.advance(Duration::from_secs(60)).await;
    }
    assert_eq!(objects(&app), 1);
}

/// Whoever uploads has written the bytes before the row.
async fn bytes_without_a_row_go_when_they_are_seen_again(app: TestApp) {
    app.drain().await;
    let folder = app.site().folder().join("files/ab");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("abcdefghijklmnopqrstuvwxyz012345"), b"on their way").expect("written");
    app.drain().await;
    assert_eq!(objects(&app), 1);
    app.drain().await;
    assert_eq!(objects(&app), 0);
}

/// As in an upload that takes longer than from one look to the next.
async fn bytes_whose_row_comes_late_stay(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (_, address) = stored(&app, &caller, "text/plain", b"late", json!({ "persist": true })).await;
    // So that nothing but the sweep is left to be done, which then looks once each time.
    app.drain().await;
    for renamed in ["UPDATE files SET object = object || '-'", "UPDATE files SET object = replace(object, '-', '')"] {
        app.service().core().db.write(move |tx| tx.run(renamed, &[])).await.expect("renamed");
        app.drain().await;
    }
    assert_eq!(app.anon().get(&address).await.expect(200).bytes(), b"late");
}

async fn what_happens_to_files_is_told(app: TestApp) {
    let (_, caller) = somewhere(&app).await;
    let (key, _) = stored(&app, &caller, "text/plain", b"abc", json!({ "persist": true })).await;
    caller.post(DELETE, json!({ "key": key })).await.expect(200);
    let told = testkit::facts::told(&app, "file.").await;
    let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["file.prepared", "file.stored", "file.deleted"]);
    assert_eq!((&told[1].1["key"], &told[1].1["size"]), (&json!(key), &json!(3)));
}

const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Else two files at once would each find the room that is left for one.
async fn a_file_waits_for_its_workspace(app: TestApp) {
    let (acme, caller) = somewhere(&app).await;
    let (form, tenant) = (prepare(&caller, "a", "a/b").await, acme.id);
    let (inside, entered) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let gates = Mutex::new((inside, wait));
    let holder = app.service().core().db.write(move |tx| {
        tenancy::workspaces::lock(tx, tenant)?;
        let gates = gates.lock().expect("whole");
        gates.0.send(()).expect("heard");
        gates.1.recv().expect("told");
        Ok(())
    });
    tokio::task::block_in_place(|| entered.recv().expect("it holds the workspace"));
    let poster = app.clone();
    let posted = tokio::spawn(async move { post(&poster, &form, b"a").await });
    let DatabaseUrl::Postgres(url) = app.site().database().clone() else { panic!("PostgreSQL") };
    let over = posted.abort_handle();
    let seen = tokio::task::spawn_blocking(move || {
        let mut client = postgres::Client::connect(url.expose(), postgres::NoTls).expect("connects");
        while !over.is_finished() && client.query_one(WAITING, &[]).expect("a row").get::<_, i64>(0) == 0 {
            std::thread::yield_now();
        }
        !over.is_finished()
    });
    assert!(seen.await.expect("seen"), "it was stored while somebody else had the workspace");
    go.send(()).expect("it waits");
    holder.await.expect("nothing was written");
    posted.await.expect("no panic").expect(204);
}

/// PostgreSQL only: on SQLite whoever writes is alone.
#[test]
fn files_of_a_workspace_are_counted_one_after_the_other() {
    testkit::run(EngineName::Postgres, a_file_waits_for_its_workspace);
}
