//! Somebody's sign-ins end while another step of them is being taken: whichever comes first, nothing is left. PostgreSQL only,
//! where transactions wait for each other; a connection of its own holds a row until all of them wait in a known order.

use std::sync::mpsc;

use serde_json::{Value, json};
use store::DatabaseUrl;
use testkit::{
    EngineName, TestApp,
    hosted::{authorize, signed_in},
    tokens::{exchange, is_signed_in},
};
use tokio::sync::oneshot;

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";
const NEW_PASSWORD: &str = "another horse battery staple";

struct Connections {
    holder: postgres::Client,
    watcher: postgres::Client,
}

type Job = Box<dyn FnOnce(&mut Connections) + Send>;

/// Connections beside the service's, on a thread of their own.
struct Beside(mpsc::Sender<Job>);

impl Beside {
    /// Holds a row until it is let go.
    async fn hold(app: &TestApp, row: &'static str, id: String) -> Self {
        let DatabaseUrl::Postgres(url) = app.site().database().clone() else { panic!("PostgreSQL") };
        let (jobs, queue) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            let connect = || postgres::Client::connect(url.expose(), postgres::NoTls).expect("connects");
            let mut connections = Connections { holder: connect(), watcher: connect() };
            queue.into_iter().for_each(|job| job(&mut connections));
        });
        let beside = Self(jobs);
        let held = beside.ask(move |connections| {
            connections.holder.batch_execute("BEGIN").expect("begins");
            connections.holder.query(row, &[&id]).expect("held").len()
        });
        assert_eq!(held.await, 1, "the row is there");
        beside
    }

    async fn ask<T: Send + 'static>(&self, job: impl FnOnce(&mut Connections) -> T + Send + 'static) -> T {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |connections| drop(answer.send(job(connections))));
        self.0.send(job).expect("the thread lives");
        answered.await.expect("it answers")
    }

    /// Until so many transactions wait for a lock.
    async fn until_waiting(&self, count: i64) {
        self.ask(move |connections| {
            while connections.watcher.query_one(WAITING, &[]).expect("a row").get::<_, i64>(0) < count {
                std::thread::yield_now();
            }
        })
        .await;
    }

    async fn let_go(self) {
        self.ask(|connections| connections.holder.batch_execute("COMMIT").expect("ends")).await;
    }
}

const PERSON: &str = "SELECT id FROM users WHERE id = $1 FOR UPDATE";
const MEMBER: &str = "SELECT id FROM members WHERE id = $1 FOR UPDATE";

async fn a_browser_that_is_signed_out_while_it_waits_does_not_go_on(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    let me = ada.signed_in().await;
    let beside = Beside::hold(&app, PERSON, ada.user.to_string()).await;
    let change = json!({ "current": ada.password, "password": NEW_PASSWORD });
    let changing = tokio::spawn(async move { me.post("/account/me/password", change).await });
    beside.until_waiting(1).await;
    let again = authorize(&app, &[]);
    let returning = tokio::spawn(async move {
        browser.open(&again).await;
        browser
    });
    beside.until_waiting(2).await;
    beside.let_go().await;
    changing.await.expect("no panic").expect(200);
    returning.await.expect("no panic").sees(200, "Sign in to");
}

async fn a_sign_in_that_waits_for_a_deactivation_begins_nothing(app: TestApp) {
    let acme = app.workspace("acme").await;
    let (directory, ada) = (acme.directory().await, app.member("ada@acme.example", acme.id, "MEMBER").await);
    let beside = Beside::hold(&app, PERSON, ada.user.to_string()).await;
    let path = format!("/Users/{}", ada.member);
    let active = |active: bool| json!([{ "op": "replace", "path": "active", "value": active }]);
    let (caller, off, at) = (directory.clone(), active(false), path.clone());
    let deactivating = tokio::spawn(async move { caller.patch(&at, off).await });
    beside.until_waiting(1).await;
    let person = ada.clone();
    let signing_in = tokio::spawn(async move { person.log_in().await });
    beside.until_waiting(2).await;
    beside.let_go().await;
    deactivating.await.expect("no panic").expect(200);
    signing_in.await.expect("no panic").error(401, "INVALID_CREDENTIAL");
    directory.patch(&path, active(true)).await.expect(200);
    assert!(is_signed_in(&app, &ada.sign_in().await.access).await);
}

async fn signing_out_ends_what_a_code_is_being_exchanged_for(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = signed_in(&app, &ada).await;
    let code = browser.answer("code").expect("a code");
    // The exchange notes that the member was seen, and waits there.
    let beside = Beside::hold(&app, MEMBER, ada.member.to_string()).await;
    let node = app.clone();
    let exchanging = tokio::spawn(async move { exchange(&node, &code, None).await });
    beside.until_waiting(1).await;
    let out = format!("/auth/url/logout/{}", app.app_id());
    let leaving = tokio::spawn(async move {
        browser.open(&out).await;
    });
    beside.until_waiting(2).await;
    beside.let_go().await;
    leaving.await.expect("no panic");
    let tokens: Value = exchanging.await.expect("no panic").expect(200).json();
    let access = tokens["access_token"].as_str().expect("a token");
    assert!(!is_signed_in(&app, access).await, "the browser is signed out");
}

macro_rules! on_postgres {
    ($($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn postgres() {
                testkit::run(super::EngineName::Postgres, super::$name);
            }
        }
    )+ };
}

on_postgres!(
    a_browser_that_is_signed_out_while_it_waits_does_not_go_on,
    a_sign_in_that_waits_for_a_deactivation_begins_nothing,
    signing_out_ends_what_a_code_is_being_exchanged_for,
);
