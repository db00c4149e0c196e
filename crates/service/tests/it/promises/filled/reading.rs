//! What every route that reads answers to those who may read.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::Value;
use testkit::{Answer, Caller, routes};
use web::Access;

use super::{Filled, LATE, directory};

/// Status and body, by caller and path.
pub(crate) type Answers = BTreeMap<String, (u16, String)>;

/// Routes that are not held against each other, with the reason.
const APART: &[(&str, &str)] = &[
    ("/metrics", "what this process did"),
    ("/admin/doctor", "what this process finds"),
    ("/webhooks/event-types", "samples are made anew"),
    ("/admin/test-clock", "what time it is"),
    ("/admin/apps/{app_id}/webhook/stream", "goes on until somebody hangs up"),
    ("/admin/apps/{app_id}/events/tail", "goes on until somebody hangs up"),
    ("/account/tenant/user/{user_id}/passwordLink", "makes a link"),
    ("/account/subscription/portal", "makes a link"),
    ("/account/tenant/{tenant_id}/customerPortal", "makes a link"),
];

/// Routes for everybody that tell something of the app; the others are pages, which begin something.
const PUBLIC: &[&str] = &[
    "/cloud-views/brand/{app_id}/style.css",
    "/auth/federation/providers/{app_id}",
    "/auth/federation/saml/{connection_id}/metadata",
];

/// Routes that nobody here gets an answer from, with the reason.
const UNREAD: &[(&str, &str)] = &[("/scim/v2/Me", "not offered")];

fn reading() -> impl Iterator<Item = (Access, &'static str)> {
    let routes = service::route_table().into_iter().filter(|route| route.method == Method::GET);
    let routes = routes.map(|route| (route.access, route.path));
    routes.filter(|(access, path)| match access {
        Access::Public => PUBLIC.contains(path),
        _ => !APART.iter().any(|(apart, _)| apart == path),
    })
}

/// What a route has to be asked for.
fn query(path: &str) -> &'static str {
    match path {
        "/event-log/charts" => "&eventName=order&interval=day&from=2026-03-01T00:00:00Z&to=2026-03-03T00:00:00Z",
        "/event-log/journeys/stats" => "&startEvent=order&endEvent=paid",
        "/event-log/events" => "&eventName=order&limit=500",
        "/admin/apps/{app_id}/events/export" => "&format=jsonl",
        _ => "",
    }
}

/// The body, but for what belongs to the call and not to what was asked for.
fn told(answer: &Answer) -> String {
    let is_json = answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    if !is_json {
        // Lines of an export, one of which is the event that was logged in between.
        let text = String::from_utf8_lossy(answer.bytes());
        return text.lines().filter(|line| !line.contains(&format!("\"{LATE}\""))).collect::<Vec<_>>().join("\n");
    }
    let mut body = answer.json();
    without_call(&mut body);
    format!("{body:#}")
}

fn without_call(body: &mut Value) {
    match body {
        Value::Object(members) => {
            members.retain(|name, _| name != "requestId" && name != "lastUsedAt");
            members.values_mut().for_each(without_call);
        }
        Value::Array(list) => list.iter_mut().for_each(without_call),
        _ => {}
    }
}

impl Filled {
    /// Those who may read a route, as the service runs now.
    fn readers(&self, access: Access, route: &str, user: &Caller) -> Vec<(&'static str, Caller)> {
        let app = &self.app;
        match access {
            Access::Operator => vec![("operator", app.operator())],
            Access::Public => vec![("anybody", app.anon())],
            _ if route.starts_with("/scim/") => vec![("directory", directory(app, &self.directory))],
            _ => vec![
                ("key", self.acme.key()),
                ("mighty key", app.anon().with_api_key(app.app_id(), &self.mighty)),
                ("user", user.clone()),
            ],
        }
    }

    /// The first thing in a list.
    async fn first(&self, caller: &Caller, path: &str, member: &str) -> String {
        let listed = caller.get(path).await.expect(200);
        let found = listed.json().pointer(member).and_then(Value::as_str).map(str::to_owned);
        found.unwrap_or_else(|| panic!("{path} has no {member}: {}", listed.body()))
    }

    /// What stands for the parameters of paths.
    async fn ids(&self) -> Vec<(&'static str, String)> {
        let (key, operator, scim) = (self.acme.key(), self.app.operator(), directory(&self.app, &self.directory));
        let (app, tenant) = (self.app.app_id(), self.acme.id.to_string());
        let below = |rest: &str| format!("/admin/apps/{app}/{rest}");
        let flags = operator.get(&below("flags")).await.expect(200).json();
        let flag = flags.as_array().into_iter().flatten().find(|flag| flag["key"] == "new-look").expect("the flag");
        let events = format!("/event-log/events?appId={app}&eventName=order");
        vec![
            (
                "/scim/v2/Users/{user_id}",
                "/scim/v2/Users/".to_owned() + &self.first(&scim, "/scim/v2/Users", "/Resources/0/id").await,
            ),
            (
                "/scim/v2/Groups/{group_id}",
                "/scim/v2/Groups/".to_owned() + &self.first(&scim, "/scim/v2/Groups", "/Resources/0/id").await,
            ),
            ("{tenant_id}", tenant.clone()),
            ("{workspace_id}", tenant),
            ("{user_id}", self.carl["id"].as_str().expect("an id").to_owned()),
            ("{role_id}", self.first(&key, "/account/role", "/0/id").await),
            ("{privilege_id}", self.first(&key, "/account/role/privilege", "/0/id").await),
            ("{connection_id}", self.connection.clone()),
            ("{plan_id}", self.first(&key, "/account/payments/plan", "/0/id").await),
            ("{tax_id}", self.first(&key, "/account/payments/tax", "/0/id").await),
            ("{flag_id}", flag["id"].as_str().expect("an id").to_owned()),
            ("{flag_key}", "new-look".to_owned()),
            ("{group_id}", self.first(&operator, &below("flag-groups"), "/0/id").await),
            ("{delivery_id}", self.first(&operator, &below("webhook/deliveries"), "/0/id").await),
            ("{endpoint_id}", self.first(&operator, &below("webhook/endpoints"), "/0/id").await),
            ("{event_id}", self.first(&key, &events, "/0/id").await),
            ("{reference}", self.first(&key, "/account/import", "/0/reference").await),
            ("{job_id}", self.erasure.clone()),
        ]
    }

    pub(crate) async fn answers(&self, user: &Caller) -> Answers {
        let (ids, mut answers) = (self.ids().await, BTreeMap::new());
        for (access, route) in reading() {
            let path = ids.iter().fold(route.to_owned(), |path, (parameter, id)| path.replace(parameter, id));
            let path = format!("{}?appId={}{}", routes::path(&self.app, &path), self.app.app_id(), query(route));
            for (name, caller) in self.readers(access, route, user) {
                let answer = caller.get(&path).await;
                answers.insert(format!("{name}: {route}"), (answer.status(), told(&answer)));
            }
        }
        answers
    }

    /// The same; reading changes nothing.
    pub(super) async fn steady_answers(&self) -> Answers {
        let user = self.user(&self.held);
        let (answers, again) = (self.answers(&user).await, self.answers(&user).await);
        assert_same(&answers, &again);
        answers
    }

    /// Every route gave an answer with something in it to somebody, or there is a reason why it did not.
    pub(super) fn assert_read(answers: &Answers) {
        let read: BTreeSet<&str> = answers
            .iter()
            .filter(|(_, (status, body))| *status == 200 && body != "[]")
            .filter_map(|(asked, _)| Some(asked.split_once(": ")?.1))
            .collect();
        let unread: BTreeSet<&str> = reading().map(|(_, path)| path).filter(|path| !read.contains(path)).collect();
        let excused: BTreeSet<&str> = UNREAD.iter().map(|(path, _)| *path).collect();
        assert_eq!(unread, excused, "routes that nobody reads anything from, and those that nobody can");
    }
}

/// Fails with what differs: where, and how.
pub(crate) fn assert_same(before: &Answers, after: &Answers) {
    let mut different = Vec::new();
    for (asked, (status, body)) in before {
        let (new_status, new_body) = &after[asked];
        let line = body.lines().zip(new_body.lines()).find(|(old, new)| old != new);
        if (status, body) != (new_status, new_body) {
            different.push(format!("{asked}: {status} was {new_status}, {line:?}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
    assert!(before.len() > 150, "{} answers", before.len());
}
