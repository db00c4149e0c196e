//! Mail to those who run an app.

use kernel::TenantId;
use serde_json::json;
use tenancy::{
    alerts::{self, Alert},
    apps,
};
use testkit::{EngineName, Log, TestApp, on_both_engines};

on_both_engines!(the_owners_of_the_operator_workspace_are_told, without_an_operator_workspace_the_log_is_told);

/// Alerts those who run the app, were this workspace the one they are in; how many.
async fn alert(app: &TestApp, operators: Option<TenantId>) -> usize {
    let (tenancy, id) = (app.service().core().tenancy.clone(), app.app_id());
    let alert = Alert { subject: "Webhook\nswitched off".into(), text: "50 deliveries failed.\n<b>Look</b>.".into() };
    let queued = app.service().core().db.write(move |tx| {
        let mut shop = apps::get(tx, id)?;
        shop.profile.operator_tenant_id = operators;
        alerts::queue(tx, &tenancy, &shop, &alert)
    });
    queued.await.expect("queued")
}

async fn the_owners_of_the_operator_workspace_are_told(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    acme.add("second@acme.example", "OWNER").await;
    acme.add("admin@acme.example", "ADMIN").await;
    other.add("second@acme.example", "MEMBER").await;
    let gone = acme.add("gone@acme.example", "OWNER").await;
    acme.key().put(&acme.path_of(&gone), json!({ "enabled": false })).await.expect(200);
    assert_eq!(alert(&app, Some(acme.id)).await, 2);
    app.drain().await;
    let mails = app.mails();
    let recipients: Vec<_> = mails.iter().map(|mail| mail.to.as_str()).collect();
    assert_eq!(recipients, ["owner@acme.example", "second@acme.example"]);
    let name = app.key().get("/account/app").await.expect(200).text("/name");
    assert_eq!(mails[0].subject, format!("[{name}] Webhook switched off"));
    assert_eq!(mails[0].from, "Tenantry <no-reply@tenantry.test>");
    assert!(mails[0].text.contains("50 deliveries failed."), "{}", mails[0].text);
    assert!(mails[0].html.contains("&lt;b&gt;Look&lt;/b&gt;"), "{}", mails[0].html);
}

async fn without_an_operator_workspace_the_log_is_told(engine: EngineName) {
    let log = Log::of_this_process();
    let app = TestApp::start(engine).await;
    assert_eq!(alert(&app, None).await, 0);
    app.drain().await;
    assert_eq!(app.mails(), []);
    let text = log.text();
    let line = text.lines().find(|line| line.contains("operator mail for nobody")).expect("a line in the log");
    assert!(line.contains("Webhook switched off") && line.contains(&app.app_id().to_string()), "{line}");
}
