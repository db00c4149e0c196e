//! An app that is paid at the provider of the tests, with a workspace.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use vault::hmac_sha256_hex;

use super::{PaymentProvider, SECRET_KEY};
use crate::{Answer, EngineName, Fixture, TestApp, Workspace};

pub const WEBHOOK_SECRET: &str = "whsec_of_the_tests";

/// The scene of a test about payments.
#[derive(Clone)]
pub struct Stage {
    pub app: TestApp,
    pub provider: Arc<PaymentProvider>,
    pub acme: Workspace,
}

impl Fixture for Stage {
    async fn prepare(engine: EngineName) -> Self {
        let provider = Arc::new(PaymentProvider::start().await);
        let url = provider.url().to_owned();
        let app = TestApp::start_with(engine, move |options| options.payprovider_url = url).await;
        enable(&app).await;
        let acme = app.workspace("acme").await;
        Self { app, provider, acme }
    }

    async fn finish(self) {
        self.app.end().await;
    }
}

/// Lets an app be paid at the provider of the tests.
pub async fn enable(app: &TestApp) {
    let credentials = json!({
        "payproviderSecretKey": SECRET_KEY, "payproviderPublicKey": "pk_1", "payproviderWebhookSecret": WEBHOOK_SECRET,
    });
    app.key().put("/account/app", json!({ "payproviderEnabled": true })).await.expect(200);
    app.key().put("/account/app/credentials", credentials).await.expect(200);
}

impl Stage {
    /// Three nodes that all reach the provider.
    pub async fn three_nodes(&self) -> [TestApp; 3] {
        let node = || {
            let url = self.provider.url().to_owned();
            self.app.another_node_with(|options| options.payprovider_url = url)
        };
        [self.app.clone(), node().await, node().await]
    }

    /// Begins a checkout of the plan `pro`.
    pub async fn checkout(&self) -> Answer {
        let body = json!({ "planKey": "pro", "successUrl": "https://shop.example/done?s={CHECKOUT_SESSION_ID}" });
        self.acme.owner().post("/account/subscription/checkout", body).await
    }

    pub async fn confirm(&self, session: &str) -> Answer {
        self.acme.owner().post("/account/payprovider/confirm-checkout", json!({ "sessionId": session })).await
    }

    /// The customer pays there: the subscription's id.
    pub fn pay(&self, session: &str) -> String {
        self.provider.set_time(self.now());
        self.provider.pay(session)
    }

    /// A subscription that was paid, by its id there. Nobody was told.
    pub async fn paid(&self) -> String {
        let session = self.checkout().await.expect(201).text("/sessionId");
        let subscription = self.pay(&session);
        self.confirm(&session).await.expect(200);
        self.provider.take_events();
        subscription
    }

    /// The service's time, in seconds.
    pub fn now(&self) -> i64 {
        self.app.now().as_seconds()
    }

    /// Sends an event of the provider, signed.
    pub async fn tell(&self, event: &Value) -> Answer {
        tell(&self.app, event).await
    }

    /// Sends what happened at the provider, in its order.
    pub async fn tell_all(&self) {
        for event in self.provider.take_events() {
            self.tell(&event).await.expect(200);
        }
        self.app.drain().await;
    }
}

/// Sends an event to a node, signed with the app's secret.
pub async fn tell(node: &TestApp, event: &Value) -> Answer {
    let (body, at) = (event.to_string(), node.now().as_seconds());
    let caller = node.anon().header("provider-signature", &signature(&body, at));
    let path = format!("/account/payprovider/webhook/{}", node.app_id());
    caller.header("content-type", "application/json").send(Method::POST, &path, body).await
}

/// The header that proves that the provider sent this then.
pub fn signature(body: &str, at: i64) -> String {
    let signature = hmac_sha256_hex(WEBHOOK_SECRET.as_bytes(), format!("{at}.{body}").as_bytes());
    format!("t={at},v1={signature}")
}
