//! `GET /realtime/config`.

use serde_json::json;
use testkit::{TestApp, on_one_engine};

on_one_engine!(it_says_how_to_connect);

async fn it_says_how_to_connect(app: TestApp) {
    let named = app.anon().header("x-app-id", &app.app_id().to_string());
    let events =
        ["user.state_changed", "entitlements.changed", "quota.updated", "usage.recorded", "flags.changed", "resync"];
    let expected = json!({
        "transport": "sse",
        "url": "http://tenantry.test/v1/realtime/stream",
        "authorizeUrl": "http://tenantry.test/v1/realtime/authorize",
        "events": events,
        "heartbeatSeconds": 25,
    });
    for path in ["/v1/realtime/config", "/realtime/config"] {
        assert_eq!(named.get(path).await.expect(200).json(), expected);
    }
    app.anon().get("/realtime/config").await.error(400, "MISSING_HEADER");
    app.anon().header("x-app-id", "app_x").get("/realtime/config").await.error(404, "NOT_FOUND");
}
