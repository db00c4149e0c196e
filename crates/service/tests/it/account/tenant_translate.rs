//! `POST /account/tenant/translate/text`.

use kernel::Secret;
use serde_json::{Value, json};
use testkit::{Answer, Receiver, Reply, TestApp, on_both_engines};

on_both_engines!(
    without_a_translator_a_text_stays_as_it_is,
    the_apps_own_words_come_first,
    the_translator_is_asked_in_its_protocol_and_its_answers_are_kept,
    a_translator_that_fails_is_said_so,
    what_is_wrong_is_named,
);

const ROUTE: &str = "/account/tenant/translate/text";

/// A workspace whose people read German; its id.
async fn workspace(app: &TestApp) -> String {
    let owner = json!({ "email": "ada@example.com", "firstName": "Ada", "lastName": "L" });
    let body = json!({ "owner": owner, "locale": "de", "muteNotifications": true });
    app.key().post("/account/tenant", body).await.expect(200).text("/id")
}

async fn translate(app: &TestApp, tenant: &str, body: Value) -> Answer {
    app.key().header("x-tenant-id", tenant).post(ROUTE, body).await
}

fn answer(text: &str, source: &str) -> Value {
    json!({ "translatedText": text, "sourceLanguageCode": source, "targetLanguageCode": "de" })
}

async fn with_translator(app: &TestApp, url: String) {
    app.restart_with(move |options| options.translate_url = Secret::new(url)).await;
}

async fn without_a_translator_a_text_stays_as_it_is(app: TestApp) {
    let tenant = workspace(&app).await;
    assert_eq!(translate(&app, &tenant, json!({ "text": "Hello" })).await.expect(200).json(), answer("Hello", "en"));
    let given = json!({ "text": "Salut", "sourceLanguage": "fr" });
    assert_eq!(translate(&app, &tenant, given).await.expect(200).json(), answer("Salut", "fr"));
}

async fn the_apps_own_words_come_first(app: TestApp) {
    let tenant = workspace(&app).await;
    let dead = Receiver::start().await;
    dead.reply_always(Reply::Hang);
    with_translator(&app, dead.url("")).await;
    app.key().post("/cloud-views/brand/translations", json!({ "Hello": "Moin" })).await.expect(200);
    assert_eq!(translate(&app, &tenant, json!({ "text": "Hello" })).await.expect(200).json(), answer("Moin", "en"));
    // Whatever the languages.
    let given = json!({ "text": "Hello", "sourceLanguage": "de" });
    assert_eq!(translate(&app, &tenant, given).await.expect(200).json(), answer("Moin", "de"));
    let same = json!({ "text": "Guten Tag", "sourceLanguage": "de" });
    assert_eq!(translate(&app, &tenant, same).await.expect(200).json(), answer("Guten Tag", "de"));
    assert_eq!(dead.received().len(), 0, "nobody was asked");
}

async fn the_translator_is_asked_in_its_protocol_and_its_answers_are_kept(app: TestApp) {
    let tenant = workspace(&app).await;
    let translator = Receiver::start().await;
    let said = json!({ "translatedText": "Hallo", "detectedLanguage": { "confidence": 90, "language": "nl" } });
    translator.reply_always(Reply::Body("application/json", said.to_string()));
    with_translator(&app, translator.url("/api/").replace("http://", "http://:the-key@")).await;
    for _ in 0..2 {
        assert_eq!(translate(&app, &tenant, json!({ "text": "Hoi" })).await.expect(200).json(), answer("Hallo", "nl"));
    }
    let given = json!({ "text": "Hoi", "sourceLanguage": "fr" });
    assert_eq!(translate(&app, &tenant, given).await.expect(200).json(), answer("Hallo", "fr"));
    let asked = translator.received();
    assert_eq!(asked.len(), 2, "the same text is asked for once");
    assert_eq!((asked[0].path.as_str(), asked[0].header("authorization")), ("/api/translate", None));
    let expected = json!({ "q": "Hoi", "source": "auto", "target": "de", "format": "text", "api_key": "the-key" });
    assert_eq!(asked[0].json(), expected);
    assert_eq!(asked[1].json()["source"], "fr");
}

async fn a_translator_that_fails_is_said_so(app: TestApp) {
    let tenant = workspace(&app).await;
    let translator = Receiver::start().await;
    with_translator(&app, translator.url("")).await;
    let replies = [Reply::Status(500), Reply::Status(200), Reply::Reset, Reply::Redirect("http://a.example".into())];
    for reply in replies {
        translator.reply_next([reply]);
        translate(&app, &tenant, json!({ "text": "Hello" })).await.error(502, "PROVIDER_FAILED");
    }
}

async fn what_is_wrong_is_named(app: TestApp) {
    let tenant = workspace(&app).await;
    translate(&app, &tenant, json!({})).await.refuses(&["text"]);
    translate(&app, &tenant, json!({ "text": "", "sourceLanguage": "xx" })).await.refuses(&["text", "sourceLanguage"]);
    translate(&app, &tenant, json!({ "text": "x".repeat(64 * 1024 + 1) })).await.refuses(&["text"]);
    app.key().post(ROUTE, json!({ "text": "a" })).await.error(400, "MISSING_HEADER");
    app.other_app()
        .await
        .header("x-tenant-id", &tenant)
        .post(ROUTE, json!({ "text": "a" }))
        .await
        .error(404, "NOT_FOUND");
}
