//! `/account/import/tenantsFromFile` and `/account/import/validateTenantsFromFile`.

use serde_json::{Value, json};
use testkit::{Answer, Receiver, Reply, TestApp, on_both_engines, webhooks};

on_both_engines!(
    a_file_of_json_is_imported,
    a_file_is_imported_once_and_silently_when_that_is_asked_for,
    a_table_is_imported_whatever_the_order_of_its_rows,
    what_is_wrong_in_a_table_is_named_by_row_and_column,
    what_cannot_be_fetched_or_read_is_refused,
    a_file_without_end_is_not_read_to_it,
    a_file_of_this_service_is_read_from_its_storage,
);

const IMPORT: &str = "/account/import/tenantsFromFile";
const VALIDATE: &str = "/account/import/validateTenantsFromFile";

async fn serving(content_type: &'static str, body: impl Into<String>) -> Receiver {
    let receiver = Receiver::start().await;
    receiver.reply_always(Reply::Body(content_type, body.into()));
    receiver
}

async fn ask(app: &TestApp, route: &str, receiver: &Receiver) -> Answer {
    app.key().post(route, json!({ "fileUrl": receiver.url("/people") })).await
}

async fn everybody(app: &TestApp) -> Vec<(String, String, String)> {
    let query = "SELECT tenants.name, users.email, roles.key FROM members JOIN tenants ON tenants.id = members.tenant_id \
                 JOIN users ON users.id = members.user_id JOIN roles ON roles.id = members.role_id ORDER BY 1, 2";
    let mut all: Vec<(String, String, String)> =
        app.service().core().db.scan(move |tx| tx.all(query, &[])).await.expect("everybody");
    all.sort();
    all
}

fn row(tenant: &str, user: &str, role: &str) -> (String, String, String) {
    (tenant.to_owned(), user.to_owned(), role.to_owned())
}

async fn a_file_of_json_is_imported(app: TestApp) {
    let batch = json!([{ "tenant": { "owner": { "username": "ada@example.com" }, "name": "Acme" }, "users": [] }]);
    let files = serving("application/json", batch.to_string()).await;
    let report = ask(&app, VALIDATE, &files).await.expect(200);
    assert_eq!((report.at("/approved"), report.at("/users")), (json!(true), json!(1)));
    assert_eq!(everybody(&app).await, []);
    assert_eq!(ask(&app, IMPORT, &files).await.expect(200).at("/status"), "SCHEDULED");
    app.drain().await;
    assert_eq!(everybody(&app).await, [row("Acme", "ada@example.com", "OWNER")]);
}

async fn a_file_is_imported_once_and_silently_when_that_is_asked_for(app: TestApp) {
    let receiver = Receiver::start().await;
    webhooks::hook(&app, &receiver, &[]).await;
    let batch = json!([{ "tenant": { "owner": { "username": "ada@example.com" }, "name": "Acme" }, "users": [] }]);
    let files = serving("application/json", batch.to_string()).await;
    let (caller, body) = (app.key().header("idempotency-key", "monday"), json!({ "fileUrl": files.url("/people") }));
    let first = caller.post(&format!("{IMPORT}?webhooks=false"), body.clone()).await.expect(200).text("/reference");
    app.drain().await;
    assert_eq!(caller.post(IMPORT, body).await.expect(200).text("/reference"), first);
    app.drain().await;
    assert_eq!(webhooks::deliveries(&app).await.len(), 0);
    assert_eq!(everybody(&app).await, [row("Acme", "ada@example.com", "OWNER")]);
}

const TABLE: &str = "\u{feff}username,colour,workspace,role,firstName,passwordValue,passwordAlgorithm,plan\r\n\
    ada@example.com,red,Acme,,Ada,5f4dcc3b5aa765d61d8327deb882cf99,MD5,pro\r\n\
    eve@example.com,,\"Bolt, Inc.\",,Eve,,,\r\n\
    bob@example.com,,Acme,ADMIN,\"Bob \"\"B\"\"\",,,\r\n\
    zoe@example.com,,\"Bolt, Inc.\",,,,,\r\n";

async fn a_table_is_imported_whatever_the_order_of_its_rows(app: TestApp) {
    let files = serving("text/csv; charset=utf-8", TABLE).await;
    let answer = ask(&app, IMPORT, &files).await.expect(200);
    assert_eq!(answer.at("/import/errors"), json!([]));
    assert_eq!(answer.at("/import/warnings"), json!(["row 1: the column \"colour\" is not known and not used"]));
    assert_eq!((answer.at("/import/tenants"), answer.at("/import/users")), (json!(2), json!(4)));
    app.drain().await;
    let expected = [
        row("Acme", "ada@example.com", "OWNER"),
        row("Acme", "bob@example.com", "ADMIN"),
        row("Bolt, Inc.", "eve@example.com", "OWNER"),
        row("Bolt, Inc.", "zoe@example.com", "MEMBER"),
    ];
    assert_eq!(everybody(&app).await, expected);
    let body = json!({ "username": "ada@example.com", "password": "password", "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/authenticate", body).await.expect(200);
}

async fn what_is_wrong_in_a_table_is_named_by_row_and_column(app: TestApp) {
    let table = "workspace,username,role,passwordValue,passwordAlgorithm,plan\n\
        Acme,ada,,x,MD5,\n\
        Acme,bob@example.com,WIZARD,x,,\n\
        ,eve@example.com,,,,\n\
        Bolt,zoe@example.com,,,,gold\n\
        Bolt,Zoe@example.com,,,,,,\n\
        Bolt,zoe@EXAMPLE.com\n";
    let files = serving("text/csv", table).await;
    let report = ask(&app, VALIDATE, &files).await.expect(200);
    let mut errors: Vec<String> = serde_json::from_value(report.at("/errors")).expect("texts");
    errors.sort();
    assert_eq!((report.at("/users"), report.at("/passwords")), (json!(6), json!(true)));
    let expected = [
        "row 2, passwordValue: must be the digest in hex or base64",
        "row 2, username: must be an email address (it is \"ada\")",
        "row 3, passwordAlgorithm: is required",
        "row 3, role: there is no role WIZARD",
        "row 4, workspace: must not be empty",
        "row 5, plan: there is no plan gold",
        "row 6: has more fields than the first row",
        "row 7, username: zoe@EXAMPLE.com is in this workspace twice",
    ];
    assert_eq!(errors, expected);
    assert_eq!(report.at("/approved"), false);
}

async fn what_cannot_be_fetched_or_read_is_refused(app: TestApp) {
    let key = app.key();
    for url in ["file:///etc/passwd", "people.json", "ftp://a.example/x", ""] {
        key.post(IMPORT, json!({ "fileUrl": url })).await.refuses(&["fileUrl"]);
    }
    for url in ["http://10.0.0.1/x", "http://169.254.169.254/latest", "http://[fd00::1]/x"] {
        key.post(VALIDATE, json!({ "fileUrl": url })).await.refuses(&["fileUrl"]);
    }
    key.post(IMPORT, json!({})).await.refuses(&["fileUrl"]);
    let receiver = Receiver::start().await;
    let replies = [Reply::Status(404), Reply::Status(204), Reply::Redirect(receiver.url("/x")), Reply::Reset];
    for reply in replies {
        receiver.reply_next([reply]);
        ask(&app, IMPORT, &receiver).await.error(502, "PROVIDER_FAILED");
    }
    for (content_type, body) in [
        ("application/json", "{}"),
        ("application/json", "[{]"),
        ("application/json", ""),
        ("application/octet-stream", "\u{1f}\u{8b}"),
        ("text/csv", ""),
        ("text/csv", "name,username\n"),
        ("text/csv", "workspace,username,username\n"),
        ("text/csv", "workspace,username\n\"a"),
    ] {
        let files = serving(content_type, body).await;
        ask(&app, IMPORT, &files).await.refuses(&["fileUrl"]);
    }
    let nobody: Value = key.get("/account/import").await.expect(200).json();
    assert_eq!(nobody, json!([]));
}

async fn a_file_without_end_is_not_read_to_it(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_always(Reply::Endless("application/json", "[          "));
    ask(&app, IMPORT, &receiver).await.refuses(&["fileUrl"]);
}

/// The service's own address leads nowhere from within the test, and a private one would be refused.
async fn a_file_of_this_service_is_read_from_its_storage(app: TestApp) {
    let caller = app.workspace("acme").await.key();
    let form = testkit::files::prepare(&caller, "people.csv", "application/octet-stream").await;
    let table = "\u{feff}\"workspace\",\"username\"\nBolt,ada@example.com\n";
    testkit::files::post(&app, &form, table.as_bytes()).await.expect(204);
    let finish = json!({ "key": form["key"], "persist": true });
    let url = caller.post("/account/tenant/upload/finish", finish).await.expect(200).json();
    let import = async |url: &Value| app.key().post(IMPORT, json!({ "fileUrl": url })).await;
    assert_eq!(import(&url).await.expect(200).at("/import/users"), 1);
    let url = url.as_str().expect("an address");
    for wrong in [format!("{url}x"), url.replace("?token=", "?key="), url.replace("file_", "file_x")] {
        import(&wrong.into()).await.error(502, "PROVIDER_FAILED");
    }
    caller.post("/account/tenant/file/delete", json!({ "key": form["key"] })).await.expect(200);
    import(&url.into()).await.error(502, "PROVIDER_FAILED");
}
