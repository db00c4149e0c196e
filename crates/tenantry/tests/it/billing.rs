//! `tenantry billing simulate`.

use serde_json::json;

use crate::program::{Home, on_both_engines};

on_both_engines!(a_subscription_of_the_sandbox_is_driven_from_the_command_line);

async fn a_subscription_of_the_sandbox_is_driven_from_the_command_line(home: Home) {
    let server = home.serve();
    let key = home.first_key();
    let put = async |path: &str, body| {
        let answer = server.client.put(server.url(path)).header("x-api-key", &key).json(&body).send().await;
        assert_eq!(answer.expect("an answer").status(), 200);
    };
    put("/account/app", json!({ "payproviderEnabled": true })).await;
    put("/account/app/credentials", json!({ "payproviderSecretKey": "sandbox_1" })).await;
    let post = async |path: &str, body| {
        let request = server.client.post(server.url(path)).header("x-api-key", &key).json(&body);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        answer.json::<serde_json::Value>().await.expect("JSON")
    };
    let owner = json!({ "email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace" });
    let tenant = post("/account/tenant", json!({ "name": "Acme", "owner": owner, "muteNotifications": true })).await;
    let id = tenant["id"].as_str().expect("an id");
    home.run(&["billing", "simulate", id, "renewal_failed"]).fails("subscription");
    let begun = post(&format!("/account/tenant/{id}/checkoutId"), json!({ "planKey": "pro" })).await;
    let page = format!("/cloud-views/sandbox/checkout/{}", begun["id"].as_str().expect("a session"));
    let form = [("cardNumber", "4242424242424242"), ("expiry", "12/40"), ("cvc", "123")];
    // Where the page leads is the app's, which is not there.
    let browser = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    let paid = browser.expect("a client").post(server.url(&page)).form(&form).send().await.expect("an answer");
    assert!(paid.status().is_success() || paid.status().is_redirection(), "{}", paid.status());
    let failed = home.run(&["billing", "simulate", id, "renewal_failed"]).ok();
    assert!(failed.out.contains("past_due") && failed.out.contains("payment.failed"), "{failed:?}");
    let told = home.run(&["billing", "simulate", id, "renewal_paid", "--json"]).ok().json();
    assert_eq!((&told["subscription"]["status"], &told["events"]), (&json!("active"), &json!(["payment.succeeded"])));
    home.run(&["billing", "simulate", id, "trial_ended"]).fails("");
    server.stop();
}
