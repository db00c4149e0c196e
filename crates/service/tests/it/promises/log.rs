//! What is logged of requests, and what never is.

use std::fmt;

use kernel::Secret;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, json};
use testkit::{
    EngineName, Log, OPERATOR_KEY, TestApp,
    members::{member, workspace},
    on_both_engines,
};

on_both_engines!(no_secret_is_ever_logged, a_line_says_who_asked_and_whether_it_failed, a_line_has_each_name_once);

async fn no_secret_is_ever_logged(engine: EngineName) {
    let log = Log::of_this_process();
    let app = TestApp::start(engine).await;
    let other = app.other_app().await;
    let secret = other.header_sent("x-api-key");
    let id = format!("on-{engine}");
    other.header("x-request-id", &id).get("/account/app?code=s3cret-code").await.expect(200);
    other.get("/nowhere?token=s3cret-token").await.error(404, "ROUTE_NOT_FOUND");
    other.header("x-api-key", "tnt_s3cret-and-wrong").get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.operator().get("/admin/apps?limit=s3cret-limit").await.refuses(&["limit"]);
    app.anon().with_operator_key("s3cret-operator").get("/metrics").await.error(401, "INVALID_CREDENTIAL");
    testkit::queued::queue(&app, "ada@customer.example").await;
    app.drain().await;

    let text = log.text();
    let line = text.lines().find(|line| line.contains(&id)).expect("a line per request");
    for part in ["\"method\":\"GET\"", "\"/account/app\"", "\"status\":200", &other.app_id().to_string()] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    for hidden in [secret.as_str(), OPERATOR_KEY, "s3cret", testkit::MASTER_KEY] {
        let told = text.lines().find(|line| line.contains(hidden));
        assert_eq!(told, None, "{hidden} was logged");
    }
}

/// The line of the request with this id.
fn line(log: &Log, id: &str) -> Value {
    let text = log.text();
    let line = text.lines().find(|line| line.contains(id) && line.contains("\"method\"")).expect("a line per request");
    serde_json::from_str(line).expect("JSON")
}

async fn a_line_says_who_asked_and_whether_it_failed(engine: EngineName) {
    let log = Log::of_this_process();
    let app = TestApp::start(engine).await;
    let member = member(&app, workspace(&app).await, "OWNER").await;
    let asked = |what: &str| format!("{what}-{engine}");
    member.signed_in(&app).header("x-request-id", &asked("person")).get("/account/tenant").await.expect(200);
    let person = line(&log, &asked("person"));
    assert_eq!((&person["level"], &person["client"]), (&json!("INFO"), &json!("127.0.0.1")));
    assert_eq!((&person["app"], &person["tenant"]), (&json!(app.app_id()), &json!(member.tenant)));
    assert_eq!(person["user"], json!(member.user));
    app.drain().await;

    app.service().core().db.close().await;
    assert_eq!(app.anon().header("x-request-id", &asked("failed")).get("/readyz").await.status(), 503);
    assert_eq!(line(&log, &asked("failed"))["level"], "ERROR");
}

/// The names of a line's members, as often as they come.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = members.next_entry::<String, IgnoredAny>()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

async fn a_line_has_each_name_once(engine: EngineName) {
    let log = Log::of_this_process();
    let nowhere = |options: &mut service::Options| options.mail_url = Secret::new("file:/dev/null/mail".into());
    let app = TestApp::start_with(engine, nowhere).await;
    testkit::queued::queue(&app, "ada@customer.example").await;
    app.drain().await;
    let text = log.text();
    assert!(text.contains("message not sent"), "{text}");
    for line in text.lines() {
        let Names(mut names) = serde_json::from_str(line).expect("JSON");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{line}");
    }
}
