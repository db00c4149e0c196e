//! `/cloud-views/brand/translations`.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

on_both_engines!(translations_are_replaced_whole, only_texts_are_taken, translations_have_limits);

const PATH: &str = "/cloud-views/brand/translations";

async fn translations_are_replaced_whole(app: TestApp) {
    assert_eq!(app.key().get(PATH).await.expect(200).json(), json!({}));
    for map in [json!({ "Sign in": "Anmelden", "Back": "" }), json!({ "Sign out": "Abmelden" }), json!({})] {
        assert_eq!(app.key().post(PATH, map.clone()).await.expect(200).json(), map);
        assert_eq!(app.key().get(PATH).await.expect(200).json(), map);
    }
    app.key().post(PATH, json!({ "Sign in": "Entrar" })).await.expect(200);
    assert_eq!(app.other_app().await.get(PATH).await.json(), json!({}));
}

async fn only_texts_are_taken(app: TestApp) {
    for (body, field) in [
        (json!({ "Sign in": 3 }), "Sign in"),
        (json!({ "Sign in": { "de": "Anmelden" } }), "Sign in"),
        (json!({ "Sign in": null }), "Sign in"),
        (json!([]), "body"),
        (json!("x"), "body"),
    ] {
        app.key().post(PATH, body).await.refuses(&[field]);
    }
}

async fn translations_have_limits(app: TestApp) {
    let of = |texts: usize, bytes: usize| -> Value {
        (0..texts).map(|n| (format!("{n:04}"), Value::from("x".repeat(bytes)))).collect()
    };
    app.key().post(PATH, of(1_000, 500)).await.expect(200);
    app.key().post(PATH, of(1_001, 1)).await.refuses(&["body"]);
    app.key().post(PATH, of(1_000, 600)).await.refuses(&["body"]);
    app.key().post(PATH, of(1, 65 * 1024)).await.refuses(&["0000"]);
}
