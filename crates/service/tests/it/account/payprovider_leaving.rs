//! Workspaces that leave a Stripe-compatible provider: nobody pays for what is gone.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    billing::state,
    on_both_engines,
    payments::{Stage, Trouble},
};

on_both_engines!(
    a_workspace_goes_once_its_subscription_is_canceled,
    a_checkout_of_a_workspace_that_went_cannot_be_paid,
    a_checkout_that_was_paid_before_its_workspace_went_is_canceled,
    what_is_paid_for_a_workspace_that_went_is_ended_at_once,
    what_is_still_to_be_ended_there_is_ended_before_the_workspace_goes,
    nobody_pays_for_a_workspace_that_went_while_they_bought,
    a_checkout_begun_while_another_is_closed_is_closed_too,
    a_checkout_that_is_made_while_its_workspace_goes_is_closed,
    a_subscription_that_goes_on_while_its_workspace_goes_is_canceled,
    a_checkout_that_nobody_could_begin_holds_no_workspace_back,
);

async fn a_workspace_goes_once_its_subscription_is_canceled(stage: Stage) {
    let subscription = stage.paid().await;
    let mighty = stage.app.key_with(&["TENANT_DELETE", "TENANT_READ"]).await;
    let path = format!("/account/tenant/{}", stage.acme.id);
    let preview = mighty.get(&format!("{path}/deletion-preview")).await.expect(200);
    assert_eq!(preview.text("/providerSubscription/id"), subscription);
    stage.provider.trouble([Trouble::Refuses]);
    mighty.delete(&path).await.error(409, "SUBSCRIPTION_NOT_CANCELLED");
    stage.provider.trouble([Trouble::Fails; 3]);
    mighty.delete(&path).await.error(502, "PROVIDER_FAILED");
    assert_eq!(state(&stage.acme.owner()).await["status"], "active");
    mighty.delete(&path).await.expect(200);
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true);
    stage.tell_all().await;
}

async fn a_checkout_of_a_workspace_that_went_cannot_be_paid(stage: Stage) {
    let session = stage.checkout().await.expect(201).text("/sessionId");
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    let path = format!("/account/tenant/{}", stage.acme.id);
    stage.provider.trouble([Trouble::Fails; 3]);
    mighty.delete(&path).await.error(502, "PROVIDER_FAILED");
    mighty.delete(&path).await.expect(200);
    assert_eq!(stage.provider.object(&session)["status"], "expired");
}

async fn a_checkout_that_was_paid_before_its_workspace_went_is_canceled(stage: Stage) {
    let session = stage.checkout().await.expect(201).text("/sessionId");
    let subscription = stage.pay(&session);
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    mighty.delete(&format!("/account/tenant/{}", stage.acme.id)).await.expect(200);
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true);
    stage.tell_all().await;
}

async fn what_is_paid_for_a_workspace_that_went_is_ended_at_once(stage: Stage) {
    let session = stage.checkout().await.expect(201).text("/sessionId");
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    stage.provider.trouble([Trouble::Refuses]);
    mighty.delete(&format!("/account/tenant/{}", stage.acme.id)).await.expect(200);
    let subscription = stage.pay(&session);
    stage.tell_all().await;
    assert_eq!(stage.provider.object(&subscription)["status"], "canceled");
}

async fn what_is_still_to_be_ended_there_is_ended_before_the_workspace_goes(stage: Stage) {
    let subscription = stage.paid().await;
    let path = format!("/account/tenant/{}", stage.acme.id);
    stage.provider.trouble([Trouble::Fails; 6]);
    stage.app.key().post(&format!("{path}/planDetails"), json!({ "planKey": "free" })).await.expect(200);
    stage.app.drain().await;
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    mighty.delete(&path).await.error(502, "PROVIDER_FAILED");
    mighty.delete(&path).await.expect(200);
    assert_eq!(stage.provider.object(&subscription)["status"], "canceled");
}

/// Objects of the provider of this kind that are about a workspace.
fn of_workspace(stage: &Stage, prefix: &str) -> Vec<Value> {
    let id = json!(stage.acme.id);
    let about = |object: &Value| object["client_reference_id"] == id || object["metadata"]["tenantId"] == id;
    stage.provider.all(prefix).into_iter().filter(about).collect()
}

/// Buys until the workspace is gone; every second one pays at once, and the provider tells of it.
async fn buy_until_it_is_gone(stage: &Stage, number: usize) {
    loop {
        let begun = stage.checkout().await;
        match begun.status() {
            201 => {}
            409 | 502 => continue,
            // Whoever bought is gone with it.
            401 => return drop(begun.error(401, "INVALID_CREDENTIAL")),
            _ => return drop(begun.error(404, "NOT_FOUND")),
        }
        let session = begun.text("/sessionId");
        if number.is_multiple_of(2) && stage.provider.object(&session)["status"] == "open" {
            stage.pay(&session);
            for event in stage.provider.take_events() {
                stage.tell(&event).await.expect(200);
            }
        }
    }
}

async fn nobody_pays_for_a_workspace_that_went_while_they_bought(stage: Stage) {
    stage
        .provider
        .trouble_sometimes(1, &[Trouble::Late(Duration::from_millis(3)), Trouble::Late(Duration::from_millis(9))]);
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    for round in 0..4 {
        let acme = stage.app.workspace(&format!("w{round}")).await;
        let stage = Stage { acme, ..stage.clone() };
        stage.checkout().await.expect(201);
        let path = format!("/account/tenant/{}", stage.acme.id);
        let delete = async { while mighty.delete(&path).await.status() != 200 {} };
        tokio::join!(delete, join_all((0..3).map(|number| buy_until_it_is_gone(&stage, number))));
        // Nothing of the workspace is left here, and whoever has the address of a checkout tries to pay it.
        stage.tell_all().await;
        for session in of_workspace(&stage, "cs_test") {
            if session["status"] == "open" {
                stage.pay(session["id"].as_str().expect("an id"));
            }
        }
        stage.tell_all().await;
        for subscription in of_workspace(&stage, "sub") {
            let ends = subscription["status"] == "canceled" || subscription["cancel_at_period_end"] == true;
            assert!(ends, "somebody goes on paying for nothing: {subscription}");
        }
    }
}

/// Until the provider was called, whose answer takes its time.
async fn called(stage: &Stage, before: usize) {
    while stage.provider.calls().len() == before {
        tokio::task::yield_now().await;
    }
}

const SLOW: Trouble = Trouble::Late(Duration::from_millis(600));

async fn a_checkout_begun_while_another_is_closed_is_closed_too(stage: Stage) {
    stage.checkout().await.expect(201);
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    let (path, before) = (format!("/account/tenant/{}", stage.acme.id), stage.provider.calls().len());
    stage.provider.trouble([SLOW]);
    let buy = async {
        called(&stage, before).await;
        stage.checkout().await.expect(201).text("/sessionId")
    };
    let (deleted, session) = tokio::join!(mighty.delete(&path), buy);
    deleted.expect(200);
    assert_eq!(stage.provider.object(&session)["status"], "expired");
}

async fn a_checkout_that_is_made_while_its_workspace_goes_is_closed(stage: Stage) {
    stage.checkout().await.expect(201);
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    let (path, before) = (format!("/account/tenant/{}", stage.acme.id), stage.provider.calls().len());
    stage.provider.trouble([SLOW]);
    let delete = async {
        called(&stage, before).await;
        mighty.delete(&path).await.expect(200)
    };
    let (bought, _) = tokio::join!(stage.checkout(), delete);
    bought.error(404, "NOT_FOUND");
    assert!(of_workspace(&stage, "cs_test").iter().all(|session| session["status"] == "expired"));
}

async fn a_subscription_that_goes_on_while_its_workspace_goes_is_canceled(stage: Stage) {
    let subscription = stage.paid().await;
    stage.acme.owner().post("/billing/cancel", json!({})).await.expect(201);
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    let (path, before) = (format!("/account/tenant/{}", stage.acme.id), stage.provider.calls().len());
    stage.provider.trouble([SLOW]);
    let reactivate = async {
        called(&stage, before).await;
        stage.acme.owner().post("/billing/reactivate", json!({})).await.expect(201)
    };
    let (deleted, _) = tokio::join!(mighty.delete(&path), reactivate);
    deleted.expect(200);
    stage.tell_all().await;
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true);
}

async fn a_checkout_that_nobody_could_begin_holds_no_workspace_back(stage: Stage) {
    stage.provider.trouble([Trouble::Fails; 3]);
    stage.checkout().await.error(502, "PROVIDER_FAILED");
    let mighty = stage.app.key_with(&["TENANT_DELETE"]).await;
    mighty.delete(&format!("/account/tenant/{}", stage.acme.id)).await.expect(200);
    stage.app.advance(Duration::from_hours(24)).await;
    assert_eq!(stage.provider.count("cs_test"), 0, "nobody wants it any more");
}
