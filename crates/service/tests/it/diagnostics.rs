//! `/`, `/account` and `/tick`.

use kernel::Timestamp;
use serde_json::json;
use testkit::{TestApp, assert_body, on_one_engine};

on_one_engine!(the_service_says_who_it_is, a_tick_waits_as_long_as_it_is_told);

async fn the_service_says_who_it_is(app: TestApp) {
    let root = app.anon().get("/").await.expect(200);
    assert_body!(root, @r#"
    {
      "documentation": "http://tenantry.test/docs",
      "service": "tenantry",
      "time": "[time]",
      "version": "0.1.0"
    }
    "#);
    let account = app.anon().get("/account").await.expect(200);
    assert_eq!(account.at("/documentation"), root.at("/documentation"));
    let time: Timestamp = root.text("/time").parse().expect("a time");
    assert!(app.now().since(time).as_secs() < 10);
}

async fn a_tick_waits_as_long_as_it_is_told(app: TestApp) {
    assert_body!(app.anon().get("/tick").await.expect(200), @r#"
    {
      "service": "tenantry",
      "sleptMs": 0,
      "time": "[time]",
      "version": "0.1.0"
    }
    "#);
    assert_eq!(app.anon().get("/tick?sleepMs=3").await.expect(200).at("/sleptMs"), json!(3));
    for wrong in ["-1", "x", "1.5"] {
        app.anon().get(&format!("/tick?sleepMs={wrong}")).await.refuses(&["sleepMs"]);
    }
}
