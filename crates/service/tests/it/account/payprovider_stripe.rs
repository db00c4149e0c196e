//! A Stripe-compatible provider: checkouts, callbacks, changes and crashes, against a server that speaks its wire form.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{
    EngineName, TestApp,
    billing::{DAY, change_plan, events, plan, state},
    facts::told,
    on_both_engines, on_one_engine,
    payments::{PaymentProvider, SECRET_KEY, Stage, Trouble},
};

on_both_engines!(
    a_checkout_is_made_there_and_confirmed_here,
    a_failed_renewal_is_told_and_mailed,
    what_the_provider_says_decides,
    a_provider_that_cannot_be_asked_is_asked_again,
    events_of_no_use_change_nothing,
    of_two_checkouts_that_were_paid_one_counts,
    changes_are_made_there_first,
    a_free_plan_waits_for_the_end_of_the_paid_period,
    what_customers_change_in_the_portal_is_taken_over,
    what_failed_or_was_cut_off_is_finished_once,
    the_last_word_counts,
    what_ends_here_ends_there,
    a_plan_set_by_key_continues_there_too,
    totals_are_sent_and_drift_is_healed,
    what_goes_beyond_a_limit_has_a_price_there,
    a_unit_costs_the_same_however_its_number_is_written,
    the_address_for_callbacks_is_registered,
    a_provider_that_was_switched_off_can_still_be_left,
);
on_one_engine!(a_provider_that_hangs_slows_nobody_else);

async fn a_checkout_is_made_there_and_confirmed_here(stage: Stage) {
    let tax = json!({ "name": "VAT", "percentage": 19, "countryCode": "DE" });
    stage.app.key().post("/account/payments/tax", tax).await.expect(200);
    let begun = stage.checkout().await.expect(201);
    let session = begun.text("/sessionId");
    assert_eq!(begun.text("/checkoutUrl"), format!("https://pay.example/c/{session}"));
    assert_eq!(begun.text("/publicKey"), "pk_1");
    let there = stage.provider.object(&session);
    assert_eq!(there["success_url"], "https://shop.example/done?s={CHECKOUT_SESSION_ID}");
    assert_eq!(there["subscription_data"]["metadata"]["planKey"], "pro");
    let item = &there["line_items"]["0"];
    let price = stage.provider.object(item["price"].as_str().expect("a price"));
    assert_eq!((&price["unit_amount"], &price["currency"]), (&json!(2900), &json!("eur")));
    let rate = stage.provider.object(item["dynamic_tax_rates"]["0"].as_str().expect("a tax rate"));
    assert_eq!((&rate["percentage"], &rate["country"]), (&json!("19"), &json!("DE")));
    stage.confirm(&session).await.error(409, "CHECKOUT_UNPAID");
    stage.pay(&session);
    assert_eq!(stage.confirm(&session).await.expect(200).json(), json!({ "status": "active", "planKey": "pro" }));
    assert_eq!(events(&stage.app).await, ["subscription.created"]);
    stage.confirm(&session).await.expect(200);
    stage.checkout().await.error(409, "SUBSCRIPTION_RUNNING");
    let portal = stage.acme.owner().get("/account/subscription/portal").await.expect(200);
    assert!(portal.text("/portalUrl").starts_with("https://pay.example/p/"));
    // What was made once is used again.
    let other = stage.app.workspace("other").await;
    other.owner().post("/account/subscription/checkout", json!({ "planKey": "pro" })).await.expect(201);
    let count = |kind| stage.provider.count(kind);
    assert_eq!((count("prod"), count("price"), count("txr"), count("cus")), (1, 1, 1, 2));
    let foreign = json!({ "sessionId": session });
    other.owner().post("/account/payprovider/confirm-checkout", foreign).await.error(403, "FORBIDDEN");
}

async fn a_failed_renewal_is_told_and_mailed(stage: Stage) {
    let session = stage.checkout().await.expect(201).text("/sessionId");
    let subscription = stage.pay(&session);
    stage.tell_all().await;
    let paid = told(&stage.app, "payment.succeeded").await;
    assert_eq!((paid.len(), &paid[0].1["amount"], &paid[0].1["currency"]), (1, &json!(29), &json!("EUR")));
    stage.app.advance(31 * DAY).await;
    stage.provider.set_time(stage.now());
    stage.provider.renew(&subscription, false, 1);
    stage.tell_all().await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "past_due");
    let failed = told(&stage.app, "payment.failed").await;
    let (_, data) = &failed[0];
    assert_eq!((&data["attempt"], &data["pastDueReason"]), (&json!(1), &json!("payment_failed")));
    let mailed = || stage.app.mails().iter().filter(|mail| mail.text.contains("https://pay.example/i/")).count();
    assert_eq!(mailed(), 1, "a way to pay");
    stage.provider.renew(&subscription, false, 2);
    stage.tell_all().await;
    assert_eq!((told(&stage.app, "payment.failed").await.len(), mailed()), (2, 1));
    assert_eq!(told(&stage.app, "subscription.past_due").await.len(), 1);
    stage.provider.renew(&subscription, true, 3);
    stage.tell_all().await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "active");
}

/// The state there counts, not what an event says of it.
async fn what_the_provider_says_decides(stage: Stage) {
    let subscription = stage.paid().await;
    let status = async |there: Value| {
        stage.provider.change(&subscription, &there);
        stage.provider.take_events();
        let stale = json!({ "id": subscription, "status": "active", "cancel_at_period_end": false });
        let event = json!({ "id": format!("evt_{}", there), "type": "customer.subscription.updated",
                            "data": { "object": stale } });
        stage.tell(&event).await.expect(200);
        stage.app.drain().await;
        let state = state(&stage.acme.owner()).await;
        (state["status"].clone(), state["gateEngaged"].clone())
    };
    assert_eq!(status(json!({ "status": "past_due" })).await, (json!("past_due"), Value::Null));
    assert_eq!(status(json!({ "status": "unpaid" })).await, (json!("past_due"), json!(true)));
    assert_eq!(status(json!({ "status": "active" })).await, (json!("active"), Value::Null));
    let ending = status(json!({ "cancel_at_period_end": true })).await;
    assert_eq!(ending, (json!("cancel_at_period_end"), Value::Null));
    assert_eq!(status(json!({ "status": "canceled" })).await, (json!("canceled"), Value::Null));
    let ended = stage.provider.calls().into_iter().filter(|call| call.starts_with("DELETE")).count();
    assert_eq!(ended, 0, "what has ended there is not ended again");
}

async fn a_provider_that_cannot_be_asked_is_asked_again(stage: Stage) {
    let subscription = stage.paid().await;
    stage.provider.renew(&subscription, false, 1);
    stage.provider.trouble([Trouble::Fails; 6]);
    stage.tell_all().await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "active");
    assert!(told(&stage.app, "payment.failed").await.is_empty());
    stage.app.advance(DAY / 24).await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "past_due");
    assert_eq!(told(&stage.app, "payment.failed").await.len(), 1);
}

async fn events_of_no_use_change_nothing(stage: Stage) {
    stage.paid().await;
    let before = events(&stage.app).await;
    let odd = [
        json!({ "id": "evt_1", "type": "customer.subscription.updated", "data": { "object": { "id": "sub_of_others" } } }),
        json!({ "id": "evt_2", "type": "some.thing", "data": {} }),
        json!({ "id": "evt_3", "type": "invoice.paid", "data": { "object": { "id": "in_1", "customer": "cus_of_others" } } }),
        json!({ "id": "evt_4", "type": "checkout.session.completed", "data": { "object": { "id": "cs_of_others" } } }),
        json!({ "id": "evt_5", "type": "invoice.paid", "data": "nothing" }),
        json!({ "id": "evt_6", "type": 7 }),
        json!({ "id": "evt_7", "type": "customer.subscription.updated", "data": { "object": { "id": "../customers" } } }),
    ];
    for event in odd {
        stage.tell(&event).await.expect(200);
    }
    stage.app.drain().await;
    assert_eq!(events(&stage.app).await, before);
    stage.app.assert_nothing_due().await;
}

async fn of_two_checkouts_that_were_paid_one_counts(stage: Stage) {
    let first = stage.checkout().await.expect(201).text("/sessionId");
    let second = stage.checkout().await.expect(201).text("/sessionId");
    let (kept, ended) = (stage.pay(&first), stage.pay(&second));
    stage.confirm(&first).await.expect(200);
    stage.tell_all().await;
    assert_eq!(stage.provider.object(&kept)["status"], "active");
    assert_eq!(stage.provider.object(&ended)["status"], "canceled");
    assert_eq!(told(&stage.app, "subscription.created").await.len(), 1);
    stage.tell_all().await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "active");
}

async fn changes_are_made_there_first(stage: Stage) {
    plan(&stage.app, "max", Some(99.0), None).await;
    let subscription = stage.paid().await;
    let user = stage.acme.owner();
    let canceled = user.post("/billing/cancel", json!({})).await.expect(201);
    assert_eq!(canceled.at("/status"), "cancel_at_period_end");
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true);
    let end = stage.provider.object(&subscription)["items"]["data"][0]["current_period_end"].as_i64();
    let ends_at: kernel::Timestamp = canceled.text("/endsAt").parse().expect("a time");
    assert_eq!(Some(ends_at.as_seconds()), end, "the provider's period counts");
    let calls = stage.provider.calls().len();
    user.post("/billing/cancel", json!({})).await.expect(201);
    assert_eq!(stage.provider.calls().len(), calls, "nobody is asked for what is so already");
    assert_eq!(user.post("/billing/reactivate", json!({})).await.expect(201).at("/status"), "active");
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], false);
    user.post("/account/subscription/change", json!({ "planKey": "max" })).await.expect(201);
    assert_eq!(state(&user).await["plan"]["slug"], "max");
    assert_eq!(stage.provider.object(&subscription)["items"]["data"][0]["price"]["unit_amount"], 9900);
    stage.provider.trouble([Trouble::Refuses]);
    user.post("/billing/cancel", json!({})).await.error(502, "PROVIDER_FAILED");
    assert_eq!(state(&user).await["status"], "active");
    stage.app.advance(DAY).await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "active", "what was refused is over");
    let facts = events(&stage.app).await;
    stage.tell_all().await;
    assert_eq!(events(&stage.app).await, facts, "callbacks tell nothing new");
}

async fn a_free_plan_waits_for_the_end_of_the_paid_period(stage: Stage) {
    let subscription = stage.paid().await;
    let user = stage.acme.owner();
    let select = async || user.post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    select().await;
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true, "nothing more is charged");
    stage.tell_all().await;
    assert_eq!(
        (&state(&user).await["status"], &state(&user).await["scheduledChange"]["plan"]),
        (&json!("active"), &json!("free"))
    );
    user.post("/billing/reactivate", json!({})).await.expect(201);
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], false);
    assert_eq!(state(&user).await["scheduledChange"], Value::Null);
    select().await;
    stage.provider.change(&subscription, &json!({ "status": "canceled" }));
    stage.tell_all().await;
    let state = state(&user).await;
    assert_eq!((&state["status"], &state["plan"]["slug"]), (&json!("active"), &json!("free")));
}

async fn what_customers_change_in_the_portal_is_taken_over(stage: Stage) {
    plan(&stage.app, "max", Some(99.0), None).await;
    let subscription = stage.paid().await;
    let user = stage.acme.owner();
    user.post("/account/subscription/change", json!({ "planKey": "max" })).await.expect(201);
    let mut items = stage.provider.object(&subscription)["items"].clone();
    let pro = stage.provider.all("price").remove(0);
    assert_eq!(pro["unit_amount"], 2900);
    items["data"][0]["price"] = pro;
    stage.provider.change(&subscription, &json!({ "items": items, "cancel_at_period_end": true }));
    stage.tell_all().await;
    let state = state(&user).await;
    assert_eq!((&state["plan"]["slug"], &state["status"]), (&json!("pro"), &json!("cancel_at_period_end")));
}

async fn what_failed_or_was_cut_off_is_finished_once(stage: Stage) {
    stage.provider.trouble([Trouble::LosesTheAnswer; 3]);
    stage.checkout().await.error(502, "PROVIDER_FAILED");
    let subscription = stage.paid().await;
    // The answer is lost each time: done once there, and finished here later.
    stage.provider.trouble([Trouble::LosesTheAnswer; 3]);
    stage.acme.owner().post("/billing/cancel", json!({})).await.error(502, "PROVIDER_FAILED");
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true);
    assert_eq!(state(&stage.acme.owner()).await["status"], "active");
    stage.app.advance(DAY / 24).await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "cancel_at_period_end");
    let canceled = told(&stage.app, "subscription.canceled").await;
    assert_eq!(canceled.len(), 1);
    let updates = stage.provider.calls().into_iter().filter(|call| call.starts_with("POST subscriptions/")).count();
    assert_eq!(updates, 1);
    let count = |kind| stage.provider.count(kind);
    assert_eq!((count("cus"), count("prod"), count("price"), count("cs_test")), (1, 1, 1, 2));
    let history = format!("/account/tenant/{}/subscription/history", stage.acme.id);
    let newest = stage.app.key().get(&history).await.expect(200).at("/0");
    assert_eq!((&newest["cause"], &newest["actor"]["type"]), (&json!("cancel_requested"), &json!("user")));
}

async fn the_last_word_counts(stage: Stage) {
    let subscription = stage.paid().await;
    let user = stage.acme.owner();
    stage.provider.trouble([Trouble::Fails; 3]);
    user.post("/billing/cancel", json!({})).await.error(502, "PROVIDER_FAILED");
    user.post("/billing/cancel", json!({})).await.expect(201);
    user.post("/billing/reactivate", json!({})).await.expect(201);
    stage.app.advance(DAY).await;
    assert_eq!(state(&stage.acme.owner()).await["status"], "active", "what failed before is not done afterwards");
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], false);
}

async fn what_ends_here_ends_there(stage: Stage) {
    let subscription = stage.paid().await;
    let details = format!("/account/tenant/{}/planDetails", stage.acme.id);
    stage.app.key().post(&details, json!({ "planKey": "free" })).await.expect(200);
    stage.app.drain().await;
    assert_eq!(stage.provider.object(&subscription)["status"], "canceled");
    stage.tell_all().await;
    assert_eq!(state(&stage.acme.owner()).await["plan"]["slug"], "free");
    let ended = stage.provider.calls().into_iter().filter(|call| call.starts_with("DELETE")).count();
    assert_eq!(ended, 1);
}

async fn totals_are_sent_and_drift_is_healed(stage: Stage) {
    let plans = stage.app.key().get("/account/payments/plan").await.expect(200).json();
    let pro = plans.as_array().and_then(|plans| plans.iter().find(|plan| plan["key"] == "pro")).expect("a plan");
    let quotas = json!([{ "metric": "calls", "limit": 1, "policy": "metered" }]);
    change_plan(&stage.app, pro, json!({ "quotas": quotas })).await;
    let subscription = stage.paid().await;
    let customer = stage.provider.object(&subscription)["customer"].as_str().expect("a customer").to_owned();
    let sync = format!("/usage/sync/{}", stage.acme.id);
    let ingest = async |value: i64| {
        stage.acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": value })).await.expect(201);
    };
    let total = || stage.provider.total(&customer, "calls");
    ingest(3).await;
    let synced = stage.acme.owner().post(&sync, json!({})).await.expect(200);
    assert_eq!(synced.json(), json!({ "syncedMetrics": 1, "failed": [] }));
    assert_eq!((stage.provider.count("mtr"), total()), (1, Some(3)));
    stage.provider.trouble([Trouble::Refuses]);
    let failed = stage.acme.owner().post(&sync, json!({})).await.expect(200);
    assert_eq!((failed.at("/syncedMetrics"), failed.at("/failed/0/metric")), (json!(0), json!("calls")));
    let usage = stage.acme.owner().get(&format!("/usage/{}", stage.acme.id)).await.expect(200);
    assert_eq!(usage.at("/metrics/0/lastSyncStatus"), "failed");
    ingest(4).await;
    stage.app.advance(DAY / 24).await;
    assert_eq!(total(), Some(7));
    stage.provider.drift_by(-2);
    ingest(1).await;
    stage.app.advance(DAY / 24 + Duration::from_secs(30)).await;
    assert!(told(&stage.app, "usage.drift").await.is_empty(), "it is being healed");
    stage.provider.drift_by(0);
    stage.app.advance(DAY / 24).await;
    let (kind, healed) = told(&stage.app, "usage.drift").await.remove(0);
    assert_eq!(kind, "usage.drift_resolved");
    assert_eq!(healed, json!({ "workspaceId": stage.acme.id, "metric": "calls", "expected": 8, "actual": 6 }));
    stage.provider.drift_by(5);
    ingest(1).await;
    stage.app.advance(DAY / 6).await;
    let drifted = told(&stage.app, "usage.drift").await;
    let kinds: Vec<&str> = drifted.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["usage.drift_resolved", "usage.drift_unrecoverable"]);
    let pushes = stage.provider.calls().into_iter().filter(|call| call == "POST billing/meter_events").count();
    assert_eq!(pushes, 1 + 1 + 2 + 6, "a total that stays another is pushed five times more");
}

async fn what_goes_beyond_a_limit_has_a_price_there(stage: Stage) {
    let quotas = |limit: i64| json!([{ "metric": "calls", "limit": limit, "policy": "metered", "unitAmount": 0.005 }]);
    let (team, max) =
        (plan(&stage.app, "team", Some(10.0), None).await, plan(&stage.app, "max", Some(99.0), None).await);
    change_plan(&stage.app, &team, json!({ "quotas": quotas(1_000) })).await;
    change_plan(&stage.app, &max, json!({ "quotas": quotas(0) })).await;
    let user = stage.acme.owner();
    let begun = user.post("/account/subscription/checkout", json!({ "planKey": "team" })).await.expect(201);
    let session = begun.text("/sessionId");
    let subscription = stage.pay(&session);
    stage.confirm(&session).await.expect(200);
    let items = || stage.provider.object(&subscription)["items"]["data"].clone();
    let metered = items()[1]["price"].clone();
    assert_eq!(metered["recurring"]["meter"], stage.provider.all("mtr")[0]["id"]);
    assert_eq!(
        (&metered["tiers"]["0"]["up_to"], &metered["tiers"]["1"]["unit_amount_decimal"]),
        (&json!("1000"), &json!("0.5"))
    );
    user.post("/account/subscription/change", json!({ "planKey": "max" })).await.expect(201);
    assert_eq!(items().as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&items()[0]["price"]["unit_amount"], &items()[1]["price"]["unit_amount_decimal"]),
        (&json!(9900), &json!("0.5"))
    );
    user.post("/account/subscription/change", json!({ "planKey": "pro" })).await.expect(201);
    assert_eq!(items().as_array().map(Vec::len), Some(1));
    assert_eq!(state(&user).await["plan"]["slug"], "pro");
}

async fn a_unit_costs_the_same_however_its_number_is_written(stage: Stage) {
    let send = async |number: usize, spelled: &str| {
        let body = format!(
            r#"{{"key":"p{number}","name":"P","prices":[{{"amount":1e1,"currency":"EUR","recurrenceInterval":"month"}}],
                "quotas":[{{"metric":"calls","limit":0,"policy":"metered","unitAmount":{spelled}}}]}}"#
        );
        let key = stage.app.key().header("content-type", "application/json");
        key.send(Method::POST, "/account/payments/plan", body).await
    };
    let spellings = [
        ("100", "10000"),
        ("1e2", "10000"),
        ("0.15", "15"),
        ("1.5e-1", "15"),
        ("5E-3", "0.5"),
        ("1e-7", "0.00001"),
        ("0e5", "0"),
    ];
    for (number, (spelled, cents)) in spellings.into_iter().enumerate() {
        let made = send(number, spelled).await.expect(200);
        assert_eq!(made.at("/quotas/0/unitAmount").as_f64(), spelled.parse().ok(), "{spelled}");
        assert_eq!(made.at("/prices/0/amount"), 10);
        let workspace = stage.app.workspace(&format!("w{number}")).await;
        let body = json!({ "planKey": format!("p{number}") });
        workspace.owner().post("/account/subscription/checkout", body).await.expect(201);
        let prices = stage.provider.all("price");
        let units: Vec<&Value> =
            prices.iter().map(|price| &price["unit_amount_decimal"]).filter(|unit| unit.is_string()).collect();
        assert_eq!((units.len(), units.last()), (number + 1, Some(&&json!(cents))), "{spelled}");
    }
    send(8, "-1e-3").await.refuses(&["quotas[0].unitAmount"]);
    for wrong in ["1e400", "1e", "\"1e2\""] {
        send(9, wrong).await.expect(400);
    }
}

async fn the_address_for_callbacks_is_registered(engine: EngineName) {
    let provider = PaymentProvider::start().await;
    let url = provider.url().to_owned();
    let app = TestApp::start_with(engine, move |options| {
        options.payprovider_url = url;
        options.base_url = "https://tenantry.example".into();
    });
    let app = app.await;
    provider.trouble([Trouble::LosesTheAnswer; 3]);
    app.key().put("/account/app/credentials", json!({ "payproviderSecretKey": SECRET_KEY })).await.expect(200);
    app.drain().await;
    app.advance(DAY / 24).await;
    assert_eq!(provider.count("we"), 1);
    let endpoint = provider.all("we").remove(0);
    let receiver = format!("https://tenantry.example/account/payprovider/webhook/{}", app.app_id());
    assert_eq!(endpoint["url"], receiver);
    assert!(endpoint["enabled_events"].to_string().contains("invoice.paid"));
    // One that was given by hand stays.
    let by_hand = json!({ "payproviderSecretKey": SECRET_KEY, "payproviderWebhookSecret": "whsec_by_hand" });
    app.key().put("/account/app/credentials", by_hand).await.expect(200);
    // The sandbox has no need of one.
    let sandbox = json!({ "payproviderSecretKey": "sandbox_1", "payproviderWebhookSecret": null });
    app.key().put("/account/app/credentials", sandbox).await.expect(200);
    app.drain().await;
    assert_eq!(provider.count("we"), 1);
    app.end().await;
}

async fn a_provider_that_was_switched_off_can_still_be_left(stage: Stage) {
    let subscription = stage.paid().await;
    stage.app.key().put("/account/app", json!({ "payproviderEnabled": false })).await.expect(200);
    let canceled = stage.acme.owner().post("/billing/cancel", json!({})).await.expect(201);
    assert_eq!(canceled.at("/status"), "cancel_at_period_end");
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], true);
}

async fn a_provider_that_hangs_slows_nobody_else(stage: Stage) {
    let other = stage.app.workspace("other").await;
    stage.provider.trouble([Trouble::Hangs]);
    let hanging = stage.checkout();
    let others = async {
        for _ in 0..50 {
            other.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
        }
        other.owner().post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    };
    tokio::pin!(hanging);
    tokio::select! {
        biased;
        _ = &mut hanging => panic!("the provider answered, or others had to wait for it"),
        () = others => {}
    }
    hanging.await.expect(201);
    assert_eq!(stage.provider.count("cus"), 1, "tried again with the same key");
}

async fn a_plan_set_by_key_continues_there_too(stage: Stage) {
    plan(&stage.app, "max", Some(99.0), None).await;
    let subscription = stage.paid().await;
    let user = stage.acme.owner();
    user.post("/billing/cancel", json!({})).await.expect(201);
    let details = format!("/account/tenant/{}/planDetails", stage.acme.id);
    let offer = json!({ "currency": "EUR", "recurrenceInterval": "month" });
    stage.app.key().post(&details, json!({ "planKey": "max", "priceOffer": offer })).await.expect(200);
    stage.app.drain().await;
    stage.tell_all().await;
    assert_eq!(stage.provider.object(&subscription)["cancel_at_period_end"], false);
    assert_eq!((&state(&user).await["status"], &state(&user).await["plan"]["slug"]), (&json!("active"), &json!("max")));
}
