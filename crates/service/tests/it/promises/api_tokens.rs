//! Two promises about tokens, put to the test at random and in races: a token never does more than its record says, and
//! once a revocation was answered no use succeeds.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kernel::Entropy;
use serde_json::json;
use testkit::{
    Caller, EngineName, TestApp,
    api_tokens::{app_token, bearer_of, introspect},
    members::{member, workspace},
    on_both_engines,
};

on_both_engines!(no_token_does_more_than_its_record_says);

mod under_load {
    testkit::on_both_engines!(no_use_succeeds_once_the_revocation_was_answered);
    use super::no_use_succeeds_once_the_revocation_was_answered;
}

const KEYS: [&str; 5] = ["APP_READ", "APP_WRITE", "TENANT_READ", "TENANT_WRITE", "USER_READ"];
const APP: &str = "/account/api-token/app";
const WORKSPACE: &str = "/account/api-token/workspace";

/// A token that was made, with what it may do.
struct Known {
    caller: Caller,
    token: String,
    id: String,
    holds: BTreeSet<&'static str>,
    scoped: bool,
    /// The token that made it.
    granter: Option<usize>,
    revoked: bool,
}

impl Known {
    fn may(&self, privilege: &str, in_app: bool) -> u16 {
        match () {
            () if self.revoked => 401,
            () if !self.holds.contains(privilege) || (in_app && self.scoped) => 403,
            () => 200,
        }
    }
}

/// What a token made ends with it, and so on down.
fn revoke(tokens: &mut [Known], chosen: usize) {
    tokens[chosen].revoked = true;
    let children = (0..tokens.len()).filter(|at| tokens[*at].granter == Some(chosen) && !tokens[*at].revoked);
    for child in children.collect::<Vec<_>>() {
        revoke(tokens, child);
    }
}

async fn no_token_does_more_than_its_record_says(app: TestApp) {
    let tenant = workspace(&app).await;
    let owner = member(&app, tenant, "OWNER").await;
    let random = Entropy::seeded_for_tests(7);
    let pick = |below: usize| usize::from(random.bytes::<1>()[0]) % below;
    let mut tokens: Vec<Known> = Vec::new();
    for _ in 0..60 {
        let wanted: Vec<&'static str> = KEYS.into_iter().filter(|_| pick(2) == 0).collect();
        let wanted = if wanted.is_empty() { vec![KEYS[pick(5)]] } else { wanted };
        // The app's key in one case of four, a token otherwise.
        let granter = (!tokens.is_empty() && pick(4) > 0).then(|| pick(tokens.len()));
        match pick(6) {
            0 if !tokens.is_empty() => {
                let chosen = pick(tokens.len());
                let status = if tokens[chosen].revoked { 404 } else { 200 };
                app.key().delete(&format!("{APP}/{}", tokens[chosen].id)).await.expect(status);
                revoke(&mut tokens, chosen);
            }
            kind => {
                let scoped = kind < 3;
                let (path, privilege) = if scoped { (WORKSPACE, "TENANT_WRITE") } else { (APP, "APP_WRITE") };
                let caller = granter.map_or_else(|| app.key(), |granter| tokens[granter].caller.clone());
                let body = json!({ "name": "x", "privileges": wanted, "tenantUserId": owner.member });
                let made = caller.header("x-tenant-id", &tenant.to_string()).post(path, body).await;
                let expected = match granter.map(|granter| &tokens[granter]) {
                    Some(granter) if granter.may(privilege, !scoped) != 200 => granter.may(privilege, !scoped),
                    Some(granter) if !wanted.iter().all(|key| granter.holds.contains(key)) => 403,
                    _ => 201,
                };
                let made = made.expect(expected);
                if expected == 201 {
                    tokens.push(Known {
                        caller: bearer_of(&app, &made),
                        token: made.text("/token"),
                        id: made.text("/record/id"),
                        holds: wanted.into_iter().collect(),
                        scoped,
                        granter,
                        revoked: false,
                    });
                }
            }
        }
    }
    for token in &tokens {
        token.caller.get("/account/app").await.expect(token.may("APP_READ", true));
        let inside = token.caller.header("x-tenant-id", &tenant.to_string());
        inside.get(WORKSPACE).await.expect(token.may("TENANT_READ", false));
        let told = introspect(&app, &token.token).await;
        let privileges: BTreeSet<&str> =
            told["privileges"].as_array().into_iter().flatten().filter_map(|key| key.as_str()).collect();
        assert_eq!(told["active"], !token.revoked);
        assert!(privileges == token.holds || token.revoked && privileges.is_empty(), "{told}");
    }
}

async fn use_until_refused(token: Caller, revoked: Arc<AtomicBool>) -> usize {
    for uses in 0.. {
        // Read before the request starts: only then must it fail.
        let must_fail = revoked.load(Ordering::SeqCst);
        let status = token.get("/account/app").await.status();
        assert!(status == 401 || status == 200 && !must_fail, "answered {status} after the revocation: {must_fail}");
        if status == 401 {
            return uses;
        }
    }
    unreachable!("the loop ends with a refusal")
}

async fn no_use_succeeds_once_the_revocation_was_answered(app: TestApp) {
    let node = app.another_node().await;
    let mut uses = 0;
    let rounds = if app.site().engine() == EngineName::Postgres { 1_000 } else { 200 };
    for _ in 0..rounds {
        let made = app_token(&app, &["APP_READ"]).await;
        let revoked = Arc::new(AtomicBool::new(false));
        let users = [&app, &node, &node]
            .map(|node| tokio::spawn(use_until_refused(bearer_of(node, &made), Arc::clone(&revoked))));
        app.key().delete(&format!("{APP}/{}", made.text("/record/id"))).await.expect(200);
        revoked.store(true, Ordering::SeqCst);
        for user in users {
            uses += user.await.expect("nobody got through");
        }
    }
    assert!(uses > 0, "no use was ever faster than the revocation: this proves nothing");
}
