//! Several nodes on one database: what one does counts on all.

use http::Method;
use serde_json::json;
use testkit::{TestApp, on_both_engines};

on_both_engines!(
    a_key_revoked_on_one_node_is_refused_on_the_other_at_once,
    an_app_deleted_on_one_node_is_gone_on_the_other_at_once,
    a_new_app_can_be_used_on_the_other_node_at_once,
    the_other_node_learns_the_origins_of_a_new_app,
);

async fn a_key_revoked_on_one_node_is_refused_on_the_other_at_once(app: TestApp) {
    let node = app.another_node().await;
    let made =
        app.operator().post(&format!("/admin/apps/{}/keys", app.app_id()), json!({ "name": "k" })).await.expect(201);
    let there = node.anon().with_api_key(app.app_id(), &made.text("/key"));
    there.get("/account/app").await.expect(200);
    let path = format!("/admin/apps/{}/keys/{}", app.app_id(), made.text("/record/id"));
    app.operator().delete(&path).await.expect(200);
    there.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
}

async fn an_app_deleted_on_one_node_is_gone_on_the_other_at_once(app: TestApp) {
    let node = app.another_node().await;
    app.operator().delete(&format!("/admin/apps/{}", app.app_id())).await.expect(200);
    node.key().get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    node.operator().get(&format!("/admin/apps/{}", app.app_id())).await.error(404, "NOT_FOUND");
}

async fn a_new_app_can_be_used_on_the_other_node_at_once(app: TestApp) {
    let node = app.another_node().await;
    let made = app.operator().post("/admin/apps", json!({ "name": "New", "domain": "new.example" })).await.expect(201);
    let there = node.anon().with_api_key(made.id("/app/id"), &made.text("/apiKey"));
    assert_eq!(there.get("/account/app").await.expect(200).json(), made.at("/app"));
}

async fn the_other_node_learns_the_origins_of_a_new_app(app: TestApp) {
    let node = app.another_node().await;
    let body = json!({ "name": "New", "domain": "new.example", "uiUrl": "https://new.example" });
    app.operator().post("/admin/apps", body).await.expect(201);
    app.drain().await;
    node.drain().await;
    let asking = node.anon().header("origin", "https://new.example").header("access-control-request-method", "GET");
    let answer = asking.call(Method::OPTIONS, "/account/app", None).await.expect(204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://new.example"));
}
