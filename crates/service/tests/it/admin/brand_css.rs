//! `/admin/brand/css` and the style sheet it becomes.

use serde_json::json;
use testkit::{TestApp, on_both_engines};

on_both_engines!(
    a_style_is_kept_served_and_reset,
    what_could_break_out_of_a_style_element_is_refused,
    a_style_has_a_limit,
);

const PATH: &str = "/admin/brand/css";

async fn a_style_is_kept_served_and_reset(app: TestApp) {
    let sheet = format!("/cloud-views/brand/{}/style.css", app.app_id());
    let css = ":root { --accent: #3b5bdb; }";
    assert_eq!(app.key().get(PATH).await.expect(200).json(), json!({ "content": "" }));
    for content in ["a{}", css] {
        let set = app.key().post(PATH, json!({ "content": content })).await.expect(200);
        assert_eq!(set.json(), json!({ "content": content }));
    }
    assert_eq!(app.key().get(PATH).await.expect(200).json(), json!({ "content": css }));
    assert_eq!(app.other_app().await.get(PATH).await.expect(200).json(), json!({ "content": "" }));

    let served = app.anon().get(&sheet).await.expect(200);
    assert_eq!(served.body(), css);
    assert_eq!(served.header("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(served.header("x-content-type-options"), Some("nosniff"));

    assert_eq!(app.key().delete(PATH).await.expect(200).json(), json!({ "success": true }));
    app.key().delete(PATH).await.expect(200);
    assert_eq!(app.key().get(PATH).await.expect(200).json(), json!({ "content": "" }));
    assert_eq!(app.anon().get(&sheet).await.expect(200).body(), "");
    app.anon().get("/cloud-views/brand/app_x/style.css").await.error(404, "NOT_FOUND");
}

async fn what_could_break_out_of_a_style_element_is_refused(app: TestApp) {
    for content in ["a{} </style><script>", "</STYLE", "<!-- a{} -->", "a{}\0", "", " "] {
        app.key().post(PATH, json!({ "content": content })).await.refuses(&["content"]);
    }
    app.key().post(PATH, json!({})).await.refuses(&["content"]);
    assert_eq!(app.key().get(PATH).await.json(), json!({ "content": "" }));
}

async fn a_style_has_a_limit(app: TestApp) {
    let of = |bytes: usize| json!({ "content": "\"".repeat(bytes) });
    app.key().post(PATH, of(512 * 1024)).await.expect(200);
    app.key().post(PATH, of(512 * 1024 + 1)).await.refuses(&["content"]);
    app.key().post(PATH, of(3 * 1024 * 1024)).await.error(413, "BODY_TOO_LARGE");
}
