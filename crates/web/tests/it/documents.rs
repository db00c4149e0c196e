//! The router, the OpenAPI document, the tables and the page all come from one registration.

use http::StatusCode;
use serde_json::Value;
use tower::ServiceExt;
use web::{Access, Info, Routes};

use crate::shop::{request, routes};

const INFO: Info = Info { title: "Shop <1>", version: "1.0", description: "Sells items." };

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| references(entry, found)),
        _ => {}
    }
}

#[test]
fn the_document_is_whole_and_stable() {
    let document = routes().openapi(&INFO);
    assert_eq!(document, routes().openapi(&INFO));
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn an_operation_follows_from_its_handler() {
    let document = routes().openapi(&INFO);
    insta::assert_json_snapshot!("create_item", document["paths"]["/items"]["post"]);
    insta::assert_json_snapshot!("change_item", document["paths"]["/items/{item_id}"]["put"]);
    insta::assert_json_snapshot!("list_items", document["paths"]["/items"]["get"]);
    insta::assert_json_snapshot!("schemas", document["components"]["schemas"]);
}

#[test]
fn the_table_leads_from_a_path_to_its_file() {
    let table = routes().table();
    let create = table.iter().find(|entry| entry.summary == "Create an item").unwrap();
    assert_eq!(create.access, Access::Key { privilege: Some("APP_WRITE") });
    assert!(create.file.ends_with("tests/it/shop.rs"), "{}", create.file);
    let text = web::routes_markdown(&table);
    assert!(
        text.contains("## Items") && text.contains("| POST | `/items` | KEY APP_WRITE | Create an item | `"),
        "{text}"
    );
    assert!(web::errors_markdown().contains("| 404 | `NOT_FOUND` |"));
}

#[test]
#[should_panic(expected = "GET /items is registered twice")]
fn a_route_is_registered_once() {
    let _ = routes().merge(routes()).into_router("shop");
}

#[tokio::test]
async fn the_page_shows_every_operation_and_loads_nothing_from_elsewhere() {
    let document = routes().openapi(&INFO);
    let router = Routes::<()>::new("Home").merge(web::docs_routes(move || document.clone())).into_router(());
    let get =
        |path: &'static str| router.clone().oneshot(request(http::Method::GET, path, &[], axum::body::Body::empty()));
    let page = get("/docs").await.unwrap();
    assert!(page.headers()["content-security-policy"].to_str().unwrap().contains("style-src 'self'"));
    let bytes = axum::body::to_bytes(page.into_body(), usize::MAX).await.unwrap();
    let page = String::from_utf8(bytes.to_vec()).unwrap();
    for entry in routes().table() {
        assert!(page.contains(&format!("<code>{}</code>", entry.path)), "{}", entry.path);
    }
    assert!(page.contains("Shop &lt;1&gt;") && !page.contains("://") && !page.contains("<script"));
    assert_eq!(get("/docs/style.css").await.unwrap().status(), StatusCode::OK);
    assert_eq!(get("/openapi.json").await.unwrap().headers()["content-type"], "application/json");
}
