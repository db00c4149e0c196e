//! `/account/app`.

use testkit::{TestApp, on_both_engines};

on_both_engines!(each_key_sees_its_own_app);

async fn each_key_sees_its_own_app(app: TestApp) {
    let other = app.other_app().await;
    for key in [app.key(), other, app.key_with(&["APP_READ"]).await] {
        let own = key.get("/account/app").await.expect(200);
        assert_eq!(own.text("/id"), key.app_id().to_string());
        assert_eq!(own.json(), app.operator().get(&format!("/admin/apps/{}", key.app_id())).await.json());
    }
}
