//! `GET /realtime/stream`.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Caller, TestApp, Workspace,
    billing::plan,
    on_both_engines,
    streams::{OpenStream, token},
};

on_both_engines!(
    state_changes_are_told_to_whom_they_concern,
    a_role_is_told_of_under_any_of_its_keys,
    whatever_changes_what_tokens_say_of_a_plan_is_told,
    a_stream_resumes_behind_the_last_event_on_any_node,
    what_cannot_be_resumed_begins_with_a_resync,
    an_old_id_begins_with_a_resync_even_where_nothing_was_missed,
    a_stream_ends_with_its_member_and_its_login,
    a_stream_survives_what_ended_before_it_began,
    a_stream_ends_with_its_workspace_and_its_app,
    a_bad_token_opens_nothing,
    a_reader_that_is_64_behind_is_dropped_and_resumes,
    streams_are_limited_and_end_when_the_node_stops,
    the_oldest_of_twenty_streams_of_a_login_makes_room,
    a_signal_reaches_streams_of_other_nodes,
    the_operator_watches_events_as_they_happen,
    usage_is_told_as_it_is_recorded,
);

async fn rename(app: &TestApp, workspace: &Workspace, name: &str) {
    app.key().put(&format!("/account/tenant/{}", workspace.id), json!({ "name": name })).await.expect(200);
}

async fn opened(app: &TestApp, user: &Caller) -> OpenStream {
    OpenStream::open(app, &token(user).await, None).await
}

async fn new_flag(app: &TestApp, key: &str) {
    app.operator().post(&format!("/admin/apps/{}/flags", app.app_id()), json!({ "key": key })).await.expect(201);
}

fn reason(reason: &str) -> (String, Value) {
    ("user.state_changed".to_owned(), json!({ "reason": reason }))
}

async fn state_changes_are_told_to_whom_they_concern(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    app.drain().await;
    let (mut owner, mut member) = (opened(&app, &acme.owner()).await, opened(&app, &app.user(&bob)).await);
    let mut elsewhere = opened(&app, &other.owner()).await;

    acme.key().put(&acme.path_of(&bob), json!({ "firstName": "Bob" })).await.expect(200);
    rename(&app, &acme, "renamed").await;
    let role = app.key().get("/account/role").await.expect(200).json();
    let of =
        |key: &str| role.as_array().and_then(|all| all.iter().find(|one| one["key"] == key)).expect("a role").clone();
    let privileges: Vec<Value> =
        of("ADMIN")["privileges"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
    let path = format!("/account/role/{}", of("MEMBER")["id"].as_str().expect("an id"));
    app.key().put(&path, json!({ "privileges": privileges })).await.expect(200);
    new_flag(&app, "dark").await;
    app.drain().await;

    let event = member.next().await.expect("an event");
    assert!(event.id.is_some());
    assert_eq!(event.data["type"], "user.state_changed");
    assert_eq!((&event.data["workspaceId"], &event.data["userId"]), (&json!(acme.id), &bob["userId"]));
    assert_eq!((&event.data["data"], event.data["at"].is_string()), (&json!({ "reason": "member" }), true));
    assert_eq!(member.told().await, reason("workspace"));
    assert_eq!(member.told().await, reason("role"));
    assert_eq!(member.told().await, ("flags.changed".to_owned(), json!({ "revision": 1 })));
    assert_eq!(owner.told().await, reason("workspace"));
    assert_eq!(owner.told().await.0, "flags.changed");
    let event = elsewhere.next().await.expect("an event");
    assert_eq!((&event.data["type"], &event.data["workspaceId"]), (&json!("flags.changed"), &json!(other.id)));
    assert_eq!(event.data.get("userId"), None);
}

async fn a_role_is_told_of_under_any_of_its_keys(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    app.drain().await;
    let mut stream = opened(&app, &app.user(&bob)).await;
    let roles = app.key().get("/account/role").await.expect(200).json();
    let role = roles.as_array().and_then(|all| all.iter().find(|one| one["key"] == "MEMBER")).expect("a role");
    let path = format!("/account/role/{}", role["id"].as_str().expect("an id"));
    for change in [json!({ "key": "PEOPLE" }), json!({ "name": "People" })] {
        app.key().put(&path, change).await.expect(200);
        app.drain().await;
        assert_eq!(stream.told().await, reason("role"));
    }
}

async fn whatever_changes_what_tokens_say_of_a_plan_is_told(app: TestApp) {
    let acme = app.workspace("acme").await;
    plan(&app, "gold", Some(10.0), None).await;
    acme.owner().post("/billing/subscriptions", json!({ "planSlug": "gold" })).await.expect(201);
    acme.owner().post("/billing/cancel", json!({})).await.expect(201);
    app.drain().await;
    let mut stream = opened(&app, &acme.owner()).await;
    app.advance(Duration::from_hours(24 * 32)).await;
    assert_eq!(stream.told().await, reason("plan"));
    app.key().put("/account/app/credentials", json!({ "payproviderSecretKey": "sandbox_x" })).await.expect(200);
    app.drain().await;
    assert_eq!(stream.told().await, reason("plan"));
    app.key().put("/account/app", json!({ "payproviderEnabled": true })).await.expect(200);
    app.drain().await;
    assert_eq!(stream.told().await, reason("plan"));
}

async fn a_stream_resumes_behind_the_last_event_on_any_node(app: TestApp) {
    let acme = app.workspace("acme").await;
    app.drain().await;
    let token = token(&acme.owner()).await;
    let mut stream = OpenStream::open(&app, &token, None).await;
    rename(&app, &acme, "one").await;
    app.drain().await;
    let seen = stream.next().await.expect("an event").id.expect("an id");
    drop(stream);
    let node = app.another_node().await;
    new_flag(&app, "dark").await;
    rename(&app, &acme, "two").await;
    app.drain().await;
    node.drain().await;
    let mut resumed = OpenStream::open(&node, &token, Some(&seen)).await;
    assert_eq!(resumed.told().await.0, "flags.changed");
    let event = resumed.next().await.expect("an event");
    assert_eq!(event.data["data"], json!({ "reason": "workspace" }));
    // Then what is new, without a gap and without a repetition.
    new_flag(&app, "light").await;
    app.drain().await;
    node.drain().await;
    assert_eq!(resumed.told().await, ("flags.changed".to_owned(), json!({ "revision": 2 })));
    drop(resumed);
    let mut again = OpenStream::open(&node, &token, event.id.as_deref()).await;
    assert_eq!(again.told().await, ("flags.changed".to_owned(), json!({ "revision": 2 })));
    node.drain().await;
}

async fn what_cannot_be_resumed_begins_with_a_resync(app: TestApp) {
    let acme = app.workspace("acme").await;
    app.drain().await;
    let mut stream = opened(&app, &acme.owner()).await;
    rename(&app, &acme, "one").await;
    app.drain().await;
    let seen = stream.next().await.expect("an event").id.expect("an id");
    rename(&app, &acme, "two").await;
    app.advance(Duration::from_secs(301)).await;
    let token = token(&acme.owner()).await;
    for unknown in [seen.as_str(), "999999999", "x", "-1", "", "01"].into_iter().filter(|id| !id.is_empty()) {
        let mut stream = OpenStream::open(&app, &token, Some(unknown)).await;
        let event = stream.next().await.expect("an event");
        assert_eq!((&event.data["type"], &event.data["data"]), (&json!("resync"), &json!({})), "{unknown}");
        assert_eq!(event.id, None);
        // Once, and the stream goes on.
        new_flag(&app, &format!("after-{}", unknown.replace('-', "minus"))).await;
        app.drain().await;
        assert_eq!(stream.told().await.0, "flags.changed");
    }
}

async fn an_old_id_begins_with_a_resync_even_where_nothing_was_missed(app: TestApp) {
    let acme = app.workspace("acme").await;
    app.drain().await;
    let mut stream = opened(&app, &acme.owner()).await;
    rename(&app, &acme, "one").await;
    app.drain().await;
    let seen = stream.next().await.expect("an event").id.expect("an id");
    app.advance(Duration::from_secs(301)).await;
    let mut stream = OpenStream::open(&app, &token(&acme.owner()).await, Some(&seen)).await;
    assert_eq!(stream.next().await.expect("an event").data["type"], "resync");
}

async fn a_stream_ends_with_its_member_and_its_login(app: TestApp) {
    let acme = app.workspace("acme").await;
    let mut tokens = Vec::new();
    let mut streams = Vec::new();
    let mut members = Vec::new();
    for name in ["disabled", "removed", "signed-out"] {
        let member = acme.add(&format!("{name}@example.com"), "MEMBER").await;
        app.drain().await;
        tokens.push(token(&app.user(&member)).await);
        streams.push(OpenStream::open(&app, tokens.last().expect("a token"), None).await);
        members.push(member);
    }
    let mut stays = opened(&app, &acme.owner()).await;
    acme.key().put(&acme.path_of(&members[0]), json!({ "enabled": false })).await.expect(200);
    acme.key().delete(&acme.path_of(&members[1])).await.expect(200);
    acme.key().delete(&format!("{}/sessions", acme.path_of(&members[2]))).await.expect(200);
    app.drain().await;
    assert_eq!(streams[0].told().await, reason("member"));
    for stream in &mut streams {
        stream.ends().await;
    }
    for token in &tokens {
        app.anon().get(&format!("/realtime/stream?token={token}")).await.error(401, "INVALID_CREDENTIAL");
    }
    let person = app.owner("eve@example.com").await;
    let signed_in = person.sign_in().await;
    let eve = app.anon().with_access_token(app.app_id(), &signed_in.access);
    let mut stream = opened(&app, &eve).await;
    let body = json!({ "client_id": app.app_id(), "token": signed_in.refresh });
    app.anon().post("/auth/revoke", body).await.expect(200);
    app.drain().await;
    stream.ends().await;
    new_flag(&app, "dark").await;
    app.drain().await;
    assert_eq!(stays.told().await.0, "flags.changed");
}

async fn a_stream_survives_what_ended_before_it_began(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let eve = app.member("eve@example.com", acme.id, "MEMBER").await;
    app.drain().await;
    for enabled in [false, true] {
        acme.key().put(&acme.path_of(&bob), json!({ "enabled": enabled })).await.expect(200);
    }
    eve.sign_in().await;
    acme.key().delete(&format!("/account/tenant/user/{}/sessions", eve.member)).await.expect(200);
    // None of this has been passed on when the streams begin.
    let mut streams = [opened(&app, &app.user(&bob)).await, opened(&app, &eve.signed_in().await).await];
    app.drain().await;
    new_flag(&app, "dark").await;
    app.drain().await;
    for stream in &mut streams {
        let mut told = stream.told().await.0;
        while told == "user.state_changed" {
            told = stream.told().await.0;
        }
        assert_eq!(told, "flags.changed");
    }
}

async fn a_stream_ends_with_its_workspace_and_its_app(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    app.drain().await;
    let (mut first, mut second) = (opened(&app, &acme.owner()).await, opened(&app, &other.owner()).await);
    app.key_with(&["TENANT_DELETE"]).await.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    app.drain().await;
    first.ends().await;
    let token = token(&other.owner()).await;
    app.operator().delete(&format!("/admin/apps/{}", app.app_id())).await.expect(200);
    app.drain().await;
    second.ends().await;
    app.anon().get(&format!("/realtime/stream?token={token}")).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_bad_token_opens_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    let good = token(&acme.owner()).await;
    app.anon().get("/realtime/stream").await.error(400, "VALIDATION_FAILED");
    let access = acme.owner().header_sent("authorization").replace("Bearer ", "");
    let (claims, signature) = good.rsplit_once('.').expect("three parts");
    let altered = format!("{claims}.{}", signature.chars().rev().collect::<String>());
    let keyless = format!("{claims}.");
    for wrong in ["x", "a.b.c", "%00", &access, &altered, &keyless, &"x".repeat(5_000)] {
        let path = format!("/realtime/stream?token={wrong}");
        let answer = app.anon().get(&path).await;
        assert!(matches!(answer.status(), 400 | 401), "{wrong}: {answer:?}");
        assert!(wrong == "%00" || answer.status() == 401, "{wrong}: {answer:?}");
    }
    app.advance(Duration::from_secs(3_601)).await;
    app.anon().get(&format!("/realtime/stream?token={good}")).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_reader_that_is_64_behind_is_dropped_and_resumes(app: TestApp) {
    let acme = app.workspace("acme").await;
    app.drain().await;
    let token = token(&acme.owner()).await;
    let mut stream = OpenStream::open(&app, &token, None).await;
    for number in 0..66 {
        new_flag(&app, &format!("flag-{number}")).await;
    }
    app.drain().await;
    let mut seen = None;
    for revision in 1..=64 {
        let event = stream.next().await.expect("an event");
        assert_eq!(event.data["data"]["revision"], revision);
        seen = event.id;
    }
    stream.ends().await;
    let mut resumed = OpenStream::open(&app, &token, seen.as_deref()).await;
    assert_eq!(resumed.told().await.1, json!({ "revision": 65 }));
    assert_eq!(resumed.told().await.1, json!({ "revision": 66 }));
}

async fn streams_are_limited_and_end_when_the_node_stops(app: TestApp) {
    // Half of them for one app.
    app.restart_with(|options| options.webhooks.most_streams = 4).await;
    let acme = app.workspace("acme").await;
    let token = token(&acme.owner()).await;
    let mut first = OpenStream::open(&app, &token, None).await;
    let second = OpenStream::open(&app, &token, None).await;
    let path = format!("/realtime/stream?token={token}");
    app.anon().get(&path).await.error(503, "OVERLOADED");
    drop(second);
    let _third = OpenStream::open(&app, &token, None).await;
    app.service().end_streams();
    app.drain().await;
    first.ends().await;
    app.anon().get(&path).await.error(503, "SHUTTING_DOWN");
}

async fn the_oldest_of_twenty_streams_of_a_login_makes_room(app: TestApp) {
    let acme = app.workspace("acme").await;
    let own = token(&acme.owner()).await;
    let mut colleague = opened(&app, &acme.owner()).await;
    let mut oldest = OpenStream::open(&app, &own, None).await;
    let mut second = OpenStream::open(&app, &own, None).await;
    let mut others = Vec::new();
    for _ in 0..19 {
        others.push(OpenStream::open(&app, &own, None).await);
    }
    oldest.ends().await;
    new_flag(&app, "dark").await;
    app.drain().await;
    assert_eq!(second.told().await.0, "flags.changed");
    assert_eq!(colleague.told().await.0, "flags.changed");
}

async fn a_signal_reaches_streams_of_other_nodes(app: TestApp) {
    let acme = app.workspace("acme").await;
    let node = app.another_node().await;
    app.drain().await;
    node.drain().await;
    let mut stream = OpenStream::open(&node, &token(&acme.owner()).await, None).await;
    new_flag(&app, "dark").await;
    app.drain().await;
    node.drain().await;
    assert_eq!(stream.told().await.0, "flags.changed");
    drop(stream);
    node.drain().await;
}

async fn the_operator_watches_events_as_they_happen(app: TestApp) {
    let path = testkit::webhooks::path(&app, "/stream");
    let operator = format!("Bearer {}", testkit::OPERATOR_KEY);
    app.drain().await;
    let mut stream = OpenStream::at(&app, &path, None, Some(&operator)).await;
    let acme = app.workspace("acme").await;
    app.drain().await;
    let event = stream.next().await.expect("an event");
    assert_eq!((&event.data["type"], &event.data["data"]["id"]), (&json!("tenant.created"), &json!(acme.id)));
    assert!(event.data["id"].as_str().is_some_and(|id| id.starts_with("evt_")));
    let unknown = testkit::webhooks::path_of(kernel::AppId::from_u128(7), "/stream");
    app.operator().get(&unknown).await.error(404, "NOT_FOUND");
}

async fn usage_is_told_as_it_is_recorded(app: TestApp) {
    let team = testkit::billing::plan(&app, "team", None, None).await;
    let quotas = json!([{ "metric": "calls", "limit": 10, "policy": "metered" }]);
    testkit::billing::change_plan(&app, &team, json!({ "quotas": quotas })).await;
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    acme.owner().post("/account/subscription/select", json!({ "planKey": "team" })).await.expect(201);
    app.drain().await;
    let (mut stream, mut elsewhere) = (opened(&app, &acme.owner()).await, opened(&app, &other.owner()).await);
    acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": 8, "idempotencyKey": "k" })).await.expect(201);
    let event = stream.next().await.expect("an event");
    assert_eq!((&event.id, &event.data["type"]), (&None, &json!("usage.recorded")));
    assert_eq!(event.data["data"], json!({ "metric": "calls", "value": 8, "used": 8 }));
    assert_eq!(event.data["workspaceId"], json!(acme.id));
    let (kind, quota) = stream.told().await;
    assert_eq!(
        (kind.as_str(), &quota["used"], &quota["warningLevel"]),
        ("quota.updated", &json!(8), &json!("approaching"))
    );
    // What comes within a second is told together, and what was counted before is not told.
    acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": 8, "idempotencyKey": "k" })).await.expect(201);
    for _ in 0..2 {
        acme.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    }
    let (mut value, mut used) = (0, 0);
    while used < 10 {
        let (kind, data) = stream.told().await;
        if kind == "usage.recorded" {
            (value, used) =
                (value + data["value"].as_i64().expect("a number"), data["used"].as_i64().expect("a number"));
        }
    }
    assert_eq!(value, 2);
    assert_eq!(stream.told().await.0, "quota.updated");
    acme.key().put("/usage/gauge/seats", json!({ "value": 4 })).await.expect(200);
    assert_eq!(stream.told().await, ("usage.recorded".to_owned(), json!({ "metric": "seats", "value": 4, "used": 4 })));
    other.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    assert_eq!(
        elsewhere.told().await,
        ("usage.recorded".to_owned(), json!({ "metric": "calls", "value": 1, "used": 1 }))
    );
}
