//! Starting: the first time, again, with the wrong keys, with new ones, and several at once.

use std::os::unix::fs::PermissionsExt as _;

use futures_util::future::join_all;
use kernel::{Code, Entropy, Secret};
use serde_json::json;
use service::{Options, Service};
use testkit::{Caller, EngineName, MASTER_KEY, OPERATOR_KEY, Site, TestApp, factors, on_both_engines, queued};
use vault::MasterKey;

on_both_engines!(
    the_first_start_makes_keys_and_an_app_once,
    another_operator_key_is_refused,
    another_master_key_is_refused,
    a_missing_key_is_refused,
    what_is_no_key_is_refused,
    nodes_that_start_together_make_one_app,
    the_master_key_can_be_changed,
    people_still_sign_in_after_a_change_of_the_master_key,
);

fn own_keys(options: &mut Options) {
    options.keys.operator = None;
    options.keys.master = None;
}

fn secret(text: &str) -> Option<Secret<String>> {
    Some(Secret::new(text.to_owned()))
}

/// The operator key that was generated.
fn operator_key(site: &Site) -> String {
    std::fs::read_to_string(site.folder().join("operator.key")).expect("a key was made").trim().to_owned()
}

/// Starts and stops.
async fn start_once(site: &Site, change: impl FnOnce(&mut Options)) {
    site.open(change).await.expect("opens").close().await;
}

/// Why a start is refused.
async fn refusal(site: &Site, change: impl FnOnce(&mut Options)) -> String {
    let error = site.open(change).await.err().expect("refused");
    assert_eq!(error.code(), Code::StorageUnavailable);
    error.public().to_owned()
}

async fn the_first_start_makes_keys_and_an_app_once(site: Site) {
    let service = site.open(own_keys).await.expect("opens");
    let first = service.first_run().await.expect("made").expect("the first time");
    assert!(service.first_run().await.expect("asked").is_none());
    let key = Caller::new(service.app()).with_api_key(first.app.id, &first.api_key);
    assert_eq!(key.get("/account/app").await.expect(200).at("/domain"), json!("localhost"));
    for name in ["operator.key", "master.key"] {
        let mode = site.folder().join(name).metadata().expect("the key is a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let operator = operator_key(&site);
    service.close().await;

    let again = site.open(own_keys).await.expect("opens with the keys that it made");
    assert!(again.first_run().await.expect("asked").is_none());
    assert_eq!(operator_key(&site), operator);
    Caller::new(again.app()).with_operator_key(&operator).get("/admin/apps").await.expect(200);
    again.close().await;
}

async fn another_operator_key_is_refused(site: Site) {
    start_once(&site, |_| {}).await;
    let why =
        refusal(&site, |options| options.keys.operator = secret("op_another_key_of_sufficient_length_0001")).await;
    assert!(why.contains("operator key is not the one") && why.contains("TENANTRY_OPERATOR_KEY"), "{why}");
    start_once(&site, |_| {}).await;
}

async fn another_master_key_is_refused(site: Site) {
    start_once(&site, own_keys).await;
    let why = refusal(&site, |options| {
        options.keys.operator = None;
        options.keys.master = secret(MasterKey::generate(&Entropy::os()).to_text().expose());
    })
    .await;
    assert!(why.contains("master key is not the one") && why.contains("TENANTRY_MASTER_KEY"), "{why}");
    assert!(why.contains(&site.folder().display().to_string()), "it says where the first node keeps it: {why}");
    start_once(&site, own_keys).await;
}

async fn a_missing_key_is_refused(site: Site) {
    start_once(&site, own_keys).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let moved = |options: &mut Options| {
        own_keys(options);
        options.keys.folder = elsewhere.path().to_owned();
    };
    let why = refusal(&site, |options| {
        moved(options);
        let key = std::fs::read_to_string(site.folder().join("master.key")).expect("made");
        options.keys.master = secret(&key);
    })
    .await;
    assert!(why.contains("operator key is missing") && why.contains(&site.folder().display().to_string()), "{why}");
    let why = refusal(&site, |options| {
        moved(options);
        options.keys.operator = secret(&operator_key(&site));
    })
    .await;
    assert!(why.contains("master key is missing"), "{why}");
    assert_eq!(elsewhere.path().read_dir().expect("a folder").count(), 0, "no key was made that opens nothing");
}

async fn what_is_no_key_is_refused(site: Site) {
    let why = refusal(&site, |options| options.keys.master = secret("too short")).await;
    assert!(why.contains("TENANTRY_MASTER_KEY must be 32 bytes") && !why.contains("too short"), "{why}");
}

async fn nodes_that_start_together_make_one_app(engine: EngineName) {
    let site = Site::empty(engine);
    let nodes = if engine == EngineName::Postgres { 3 } else { 1 };
    let started = join_all((0..nodes).map(|_| async {
        let service = site.open(|_| {}).await.expect("opens");
        let first = service.first_run().await.expect("asked");
        (service, first)
    }))
    .await;
    assert_eq!(started.iter().filter(|(_, first)| first.is_some()).count(), 1);
    for (service, _) in &started {
        let operator = Caller::new(service.app()).with_operator_key(OPERATOR_KEY);
        assert_eq!(operator.get("/admin/apps").await.expect(200).json().as_array().map(Vec::len), Some(1));
        assert_eq!(operator.get("/admin/signing-keys").await.expect(200).json().as_array().map(Vec::len), Some(1));
    }
    for (service, _) in started {
        service.close().await;
    }
}

async fn the_master_key_can_be_changed(engine: EngineName) {
    let new = MasterKey::generate(&Entropy::os()).to_text();
    let app = TestApp::start(engine).await;
    queued::queue(&app, "ada@customer.example").await;
    let settled = async |service: &Service| {
        let operator = Caller::new(service.app()).with_operator_key(OPERATOR_KEY);
        let report = operator.get("/admin/doctor").await.expect(200).json();
        let findings = report["findings"].as_array().expect("findings").clone();
        findings.into_iter().find(|finding| finding["check"] == "master key").expect("a finding")["level"] == "ok"
    };

    app.restart_with(|options| {
        options.keys.master = secret(new.expose());
        options.keys.master_previous = secret(MASTER_KEY);
    })
    .await;
    assert!(!settled(&app.service()).await);
    app.drain().await;
    assert!(settled(&app.service()).await);
    app.service().close().await;

    let why = refusal(app.site(), |_| {}).await;
    assert!(why.contains("master key is not the one"), "{why}");
    let service =
        app.site().open(|options| options.keys.master = secret(new.expose())).await.expect("the new one alone");
    service.core().signing_keys.sign("test", &json!({})).expect("the signing key was sealed again");
    service.drain().await.expect("drained");
    assert_eq!(app.mails().len(), 1);
    service.close().await;
}

async fn people_still_sign_in_after_a_change_of_the_master_key(app: TestApp) {
    let new = MasterKey::generate(&Entropy::os()).to_text();
    let (ada, authenticator) = factors::with_authenticator(&app, "ada@example.com").await;
    let imported = testkit::people::imported(&app, "bob@example.com").await;
    app.restart_with(|options| {
        options.keys.master = secret(new.expose());
        options.keys.master_previous = secret(MASTER_KEY);
    })
    .await;
    app.drain().await;
    app.restart_with(|options| options.keys.master = secret(new.expose())).await;

    let code = factors::shown(&app, &authenticator, 0);
    factors::log_in_with(&app, &ada, &code).await.expect(200);
    app.page().post("/auth/auth/authenticate", imported).await.expect(200);
}
