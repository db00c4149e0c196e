//! `/admin/apps/{app_id}/import`, and batches that are tables.

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Caller, TestApp, on_both_engines};

on_both_engines!(
    the_operator_imports_into_an_app,
    a_table_can_be_sent_as_a_body,
    what_is_no_table_is_refused_as_a_body,
    an_import_is_found_in_its_own_app_only,
);

fn path(app: &TestApp, rest: &str) -> String {
    format!("/admin/apps/{}/import{rest}", app.app_id())
}

async fn send(caller: &Caller, path: &str, table: &str) -> Answer {
    caller.header("content-type", "text/csv; charset=utf-8").send(Method::POST, path, table.to_owned()).await
}

async fn the_operator_imports_into_an_app(app: TestApp) {
    let batch = json!([{ "tenant": { "owner": { "username": "ada@example.com" }, "name": "Acme" },
                         "users": [{ "username": "bob@example.com", "role": "OWNER" }] }]);
    let report = app.operator().post(&path(&app, "/validateTenants"), batch.clone()).await.expect(200);
    assert_eq!((report.at("/approved"), report.at("/users")), (json!(true), json!(2)));
    let reference = app.operator().post(&path(&app, "/tenants"), batch).await.expect(200).text("/reference");
    app.drain().await;
    let done = app.operator().get(&path(&app, &format!("/status/{reference}"))).await.expect(200);
    assert_eq!((done.at("/status"), done.at("/progress/users")), (json!("COMPLETED"), json!(2)));
    assert_eq!(app.key().get("/account/tenant").await.expect(200).at("/0/name"), "Acme");
}

async fn a_table_can_be_sent_as_a_body(app: TestApp) {
    let table = "workspace,username,role,colour\r\nAcme,ada@example.com,,\r\nAcme,bob@example.com,WIZARD,\r\n";
    let answer = send(&app.operator(), &path(&app, "/tenants"), table).await.expect(200);
    assert_eq!(answer.at("/import/errors"), json!(["row 3, role: there is no role WIZARD"]));
    assert_eq!(answer.at("/import/warnings"), json!(["row 1: the column \"colour\" is not known and not used"]));
    let right = table.replace("WIZARD", "ADMIN");
    assert_eq!(send(&app.key(), "/account/import/tenants", &right).await.expect(200).at("/status"), "SCHEDULED");
    app.drain().await;
    let listed: Value = app.key().get("/account/import").await.expect(200).json();
    assert_eq!((&listed[0]["status"], &listed[0]["progress"]["users"]), (&json!("COMPLETED"), &json!(2)));
}

async fn what_is_no_table_is_refused_as_a_body(app: TestApp) {
    for table in ["", "name,username\n", "workspace,username\n\"a", "workspace,username,username\n", "[]"] {
        send(&app.operator(), &path(&app, "/tenants"), table).await.refuses(&["body"]);
        send(&app.key(), "/account/import/validateTenants", table).await.refuses(&["body"]);
    }
    let plain = app.operator().header("content-type", "text/plain");
    plain.send(Method::POST, &path(&app, "/tenants"), "[]").await.error(415, "UNSUPPORTED_MEDIA_TYPE");
}

async fn an_import_is_found_in_its_own_app_only(app: TestApp) {
    let reference = app.operator().post(&path(&app, "/tenants"), json!([])).await.expect(200).text("/reference");
    let other = app.operator().post("/admin/apps", json!({ "name": "Other", "domain": "other.example" })).await;
    let other = other.expect(201).text("/app/id");
    for (app_id, reference) in [(other.as_str(), reference.as_str()), ("nobody", &reference)] {
        app.operator().get(&format!("/admin/apps/{app_id}/import/status/{reference}")).await.expect(404);
    }
    app.operator().delete(&format!("/admin/apps/{other}?confirm=other.example")).await.expect(200);
    app.operator().post(&format!("/admin/apps/{other}/import/tenants"), json!([])).await.expect(404);
}
