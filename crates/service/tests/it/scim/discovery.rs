//! `/scim/v2/ServiceProviderConfig` and its kin.

use http::Method;
use serde_json::json;
use testkit::{TestApp, on_both_engines};

on_both_engines!(the_service_says_what_it_offers);

async fn the_service_says_what_it_offers(app: TestApp) {
    let directory = app.workspace("acme").await.directory().await;
    let config = directory.get("/ServiceProviderConfig").await.expect(200);
    assert_eq!((config.at("/patch/supported"), config.at("/changePassword/supported")), (json!(true), json!(false)));
    assert_eq!(config.header("content-type"), Some("application/scim+json"));
    for (list, names) in [("ResourceTypes", ["User", "Group"]), ("Schemas", ["User", "Group"])] {
        let all = directory.get(&format!("/{list}")).await.expect(200);
        for (place, name) in names.iter().enumerate() {
            assert_eq!(all.text(&format!("/Resources/{place}/name")), *name);
            let id = all.text(&format!("/Resources/{place}/id"));
            let one = directory.get(&format!("/{list}/{id}")).await.expect(200);
            assert_eq!(one.json(), all.at(&format!("/Resources/{place}")));
        }
        directory.get(&format!("/{list}/Shoe")).await.scim_error(404, "");
    }
    for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let body = (method != Method::GET).then(|| json!({}));
        directory.caller.call(method, "/scim/v2/Me", body).await.scim_error(501, "");
    }
    directory.post("/Bulk", json!({})).await.scim_error(501, "");
}
