//! `/openapi.json` and `/docs`.

use serde_json::{Value, json};
use testkit::{TestApp, on_one_engine};

on_one_engine!(
    the_document_is_the_checked_in_one,
    the_document_is_whole,
    every_list_takes_a_limit_and_an_offset,
    the_page_needs_no_other_host,
);

async fn document(app: &TestApp) -> Value {
    app.anon().get("/openapi.json").await.expect(200).json()
}

async fn the_document_is_the_checked_in_one(app: TestApp) {
    assert_eq!(document(&app).await, service::documents().openapi);
}

/// Every text under `name`, wherever it stands.
fn all<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (member, inner) in members {
                found.extend(inner.as_str().filter(|_| member == name));
                all(inner, name, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| all(inner, name, found)),
        _ => {}
    }
}

async fn every_list_takes_a_limit_and_an_offset(app: TestApp) {
    let document = document(&app).await;
    let mut without = Vec::new();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let operation = &operations["get"];
        if operation.pointer("/responses/200/content/application~1json/schema/type") != Some(&json!("array")) {
            continue;
        }
        let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        let takes = |name: &str| parameters.iter().any(|one| one["name"] == name && one["in"] == "query");
        if !(takes("limit") && takes("offset")) {
            without.push(path.as_str());
        }
    }
    // The newest buckets are what a chart keeps.
    assert_eq!(without, ["/event-log/charts"]);
}

async fn the_document_is_whole(app: TestApp) {
    let document = document(&app).await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    all(&document, "$ref", &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("a reference within the document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let mut names = Vec::new();
    all(&document, "operationId", &mut names);
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "an operation's name is used twice");

    let hidden = [
        "/docs",
        "/docs/style.css",
        "/openapi.json",
        "/cloud-views/style.css",
        "/cloud-views/brand/{app_id}/style.css",
        "/cloud-views/verify-sender",
        "/cloud-views/form.js",
        "/cloud-views/passkey.js",
        "/admin/apps/{app_id}/webhook/stream",
        "/admin/apps/{app_id}/events/tail",
    ];
    // The pages of the hosted login, the portal and the sandbox are for people, not for programs.
    let pages =
        ["/auth/demo", "/auth/federation/done", "/auth/login/", "/cloud-views/portal/", "/cloud-views/sandbox/"];
    let is_page = |path: &str| path == "/auth/login" || pages.iter().any(|pages| path.starts_with(pages));
    let is_hidden = |path: &str| hidden.contains(&path) || is_page(path);
    for route in service::route_table().iter().filter(|route| !is_hidden(route.path)) {
        let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        assert_eq!(operation["summary"], route.summary, "{} {}", route.method, route.path);
        let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
        for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            assert!(
                parameters.iter().any(|parameter| parameter["name"] == name && parameter["in"] == "path"),
                "{name}"
            );
        }
    }
}

async fn the_page_needs_no_other_host(app: TestApp) {
    let page = app.anon().get("/docs").await.expect(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for loading in ["src=", "href=\"http", "url(", "@import", "<script"] {
        assert!(!page.body().contains(loading), "{loading}");
    }
    assert!(page.body().contains("/admin/apps/{app_id}/keys"));
    let style = app.anon().get("/docs/style.css").await.expect(200);
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
    assert!(!style.body().contains("url(") && !style.body().contains("@import"));
}
