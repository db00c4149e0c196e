//! Life after a move: everybody comes in as before, and what was left undone is done.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Tokens, factors, passkeys, tokens, webhooks};

use super::{BYTES, Filled, LATE, directory, rooms};

const HERE: &str = "http://tenantry.test";

impl Filled {
    pub(crate) async fn everybody_goes_on(&mut self) {
        self.people_sign_in().await;
        self.keys_and_files_work().await;
        self.what_was_left_is_done().await;
        self.the_trail_holds().await;
    }

    /// With a password, a second factor, a passkey, and through their workspace's provider.
    async fn people_sign_in(&mut self) {
        let app = &self.app;
        self.ada.log_in().await.expect(200);
        // A code counts once, also the one of the last login.
        app.advance(Duration::from_mins(5)).await;
        let code = factors::shown(app, &self.authenticator, 0);
        factors::log_in_with(app, &self.bob, &code).await.expect(200);
        let options = passkeys::authentication_options(app).await;
        let asserted = passkeys::asserted(app, &mut self.device, &options).await;
        passkeys::verify_authentication(app, asserted).await.expect(200);
        let code = rooms::come_by_saml(app, &self.around, &self.connection, &self.grace.email).await;
        let came = Tokens::of(&tokens::exchange(app, &code, None).await.expect(200));
        assert_eq!(self.user(&came).get("/auth/userinfo").await.expect(200).text("/email"), self.grace.email);
    }

    async fn keys_and_files_work(&self) {
        let (app, key) = (&self.app, self.acme.key());
        let token = app.anon().with_api_key(app.app_id(), &self.token);
        token.get("/account/tenant/user").await.expect(200);
        directory(app, &self.directory).get("/scim/v2/Users").await.expect(200);
        let path = self.file.replace(HERE, "");
        assert_eq!(app.anon().get(&path).await.expect(200).bytes(), BYTES, "the address of a public file");
        let listed = key.get("/account/tenant/file").await.expect(200).json();
        let kept = listed.as_array().into_iter().flatten().find(|file| file["persisted"] == true).expect("the file");
        let signed = key.post("/account/tenant/file/signedUrl", json!({ "keys": [kept["key"]] })).await.expect(200);
        assert_eq!(app.anon().get(&signed.text("/0").replace(HERE, "")).await.expect(200).bytes(), BYTES);
    }

    async fn what_was_left_is_done(&self) {
        let (app, around) = (&self.app, &self.around);
        self.acme.key().put(&format!("/account/tenant/{}", self.acme.id), json!({ "name": "Later" })).await.expect(200);
        app.drain().await;
        let received = around.hooks.received();
        let last = received.last().expect("a webhook");
        assert_eq!(webhooks::signatures_of(last, &self.secret), 1, "signed with the same secret");
        let tenants = app.key().get("/account/tenant").await.expect(200).json();
        let late = tenants.as_array().into_iter().flatten().find(|tenant| tenant["name"] == "Late");
        let late = late.and_then(|tenant| tenant["id"].as_str()).expect("the import went on");
        let people = app.key().header("x-tenant-id", late).get("/account/tenant/user").await.expect(200).json();
        assert_eq!(people.as_array().map(Vec::len), Some(41));
        let names = app.key().get(&format!("/event-log/names?appId={}", app.app_id())).await.expect(200).json();
        let event = names.as_array().into_iter().flatten().find(|event| event["eventName"] == LATE);
        assert_eq!(event.map(|event| &event["count"]), Some(&json!(1)), "{names}");
        app.advance(Duration::from_mins(10)).await;
        let there: Vec<Value> = around.payments.all("sub");
        assert!(there.iter().any(|one| one["cancel_at_period_end"] == true), "the provider was told: {there:?}");
    }

    async fn the_trail_holds(&self) {
        let path = format!("/admin/apps/{}/events/audit/verify", self.app.app_id());
        let trail = self.app.operator().get(&path).await.expect(200);
        assert_eq!(trail.at("/ok"), json!(true), "{}", trail.body());
    }
}
