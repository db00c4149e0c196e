//! An installation with something in every table that an app has rows in, and all that can be read in it: what a move has to
//! bring to the other side.

mod going_on;
mod reading;
mod rooms;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use service::{Options, ProviderSettings, Providers, ResponseMode};
use store::{Owner, Table, testing::statement};
use tenancy::federation::Provider;
use testkit::{
    Caller, DirectoryCaller, IdentityProvider, OpenIdProvider, Person, Receiver, TestApp, Tokens, Workspace, factors,
    passkeys::{self, Device},
    payments::PaymentProvider,
    webhooks,
};

pub(super) use reading::{Answers, assert_same};

/// Whoever stands beside the service: moved or not, it finds them where they were.
#[derive(Clone)]
pub(super) struct Neighbours {
    pub(super) payments: Arc<PaymentProvider>,
    pub(super) social: Arc<OpenIdProvider>,
    pub(super) staff: Arc<IdentityProvider>,
    pub(super) hooks: Arc<Receiver>,
    sink: Arc<Receiver>,
}

impl Neighbours {
    async fn start() -> Self {
        Self {
            payments: Arc::new(PaymentProvider::start().await),
            social: Arc::new(OpenIdProvider::start().await),
            staff: Arc::new(IdentityProvider::new("https://idp.example/")),
            hooks: Arc::new(Receiver::start().await),
            sink: Arc::new(Receiver::start().await),
        }
    }

    /// For every installation that the app is in.
    pub(super) fn known_to(&self, options: &mut Options) {
        options.payprovider_url = self.payments.url().to_owned();
        let settings = ProviderSettings {
            name: "Acme".into(),
            issuer: Some(self.social.issuer.clone()),
            scopes: "openid email profile".into(),
            verified_claim: "email_verified".into(),
            response_mode: ResponseMode::Query,
            ..ProviderSettings::default()
        };
        options.providers = Providers::new([(Provider::SocialOne, settings)]);
    }
}

/// Who is there, and what they hold.
pub(super) struct Filled {
    pub(super) app: TestApp,
    pub(super) around: Neighbours,
    pub(super) acme: Workspace,
    /// Signs in with a password or a passkey.
    pub(super) ada: Person,
    pub(super) device: Device,
    pub(super) held: Tokens,
    /// Signs in with a second factor, of which this is the secret.
    pub(super) bob: Person,
    pub(super) authenticator: String,
    /// Comes through this connection of the workspace.
    pub(super) grace: Person,
    pub(super) connection: String,
    /// A key that a workspace has, a directory's token, and the secret that signs webhooks.
    pub(super) token: String,
    pub(super) directory: String,
    pub(super) secret: String,
    /// Of a public file with [`BYTES`].
    pub(super) file: String,
    /// A login that waits for the choice of a workspace.
    pub(super) under_way: String,
    erasure: String,
    /// A key that may see what a deletion would take along.
    mighty: String,
    /// A member of two workspaces.
    carl: Value,
}

pub(super) const BYTES: &[u8] = b"some bytes";
/// An event that waits while everything moves.
const LATE: &str = "late";

/// Tables that stay empty here, with the reason.
const EMPTY: &[(&str, &str)] = &[
    ("provider_endpoints", "until the provider is told of an address, which has to be one with https"),
    ("saml_keys", "those of today are the installation's, and of no app"),
];

impl Filled {
    pub(super) async fn new(app: TestApp) -> Self {
        let around = Neighbours::start().await;
        app.restart_with(|options| around.known_to(options)).await;
        let acme = app.workspace("acme").await;
        rooms::log_events(&app).await;
        rooms::set_up_app(&app).await;
        rooms::set_up_flags(&app).await;
        let carl = rooms::set_up_workspace(&app, &acme).await;
        rooms::buy_in_the_sandbox(&app).await;
        let elsewhere = rooms::buy_from_the_provider(&app, &around.payments).await;
        webhooks::hook(&app, &around.hooks, &["tenant.updated"]).await;
        let ada = app.owner("ada@example.com").await;
        let device = passkeys::with_passkey(&app, &ada).await;
        let (bob, authenticator) = factors::with_authenticator(&app, "bob@example.org").await;
        let (grace, connection) = rooms::come_through_providers(&app, &around, &ada).await;
        let directory = rooms::provision(&acme).await;
        let token = acme.token(&["USER_READ"]).await.header_sent("x-api-key");
        let file = rooms::upload(&app, &acme.key()).await;
        let secret = webhooks::secret(&app).await;
        for tenant in [acme.id, ada.tenant] {
            let renamed = json!({ "name": "Acme Ä 😀 \\" });
            app.key().put(&format!("/account/tenant/{tenant}"), renamed).await.expect(200);
        }
        let sink = json!({ "kind": "http", "url": around.sink.url("/sink") });
        operator(&app).put("events/sink", sink).await;
        let erased = format!("/admin/apps/{}/events/entities/userId/u8", app.app_id());
        let erasure = app.operator().delete(&erased).await;
        assert!(erasure.status() < 300, "{erasure:?}");
        let own = ada.signed_in().await;
        own.post("/billing/subscriptions", json!({})).await.expect(201);
        let wanted = json!({ "name": "t", "privileges": ["APP_READ"] });
        own.post("/account/api-token/me/app", wanted).await.expect(201);
        let mighty = app.key_with(&["TENANT_DELETE"]).await.header_sent("x-api-key");
        app.drain().await;
        let held = ada.sign_in().await;
        let under_way = ada.log_in().await.expect(200).text("/session");
        rooms::cancel_in_vain(&elsewhere, &around.payments).await;
        rooms::leave_undone(&app, &acme).await;
        let erasure = erasure.text("/jobId");
        Self {
            app,
            around,
            acme,
            ada,
            device,
            held,
            bob,
            authenticator,
            grace,
            connection,
            token,
            directory,
            secret,
            file,
            under_way,
            erasure,
            mighty,
            carl,
        }
    }

    /// What everybody is told, and one more event that nobody was told of. A table that a room adds later is empty here, and
    /// a route that it adds is not asked for what there is: both fail this.
    pub(super) async fn told_and_complete(&self) -> Answers {
        let mut told = self.steady_answers().await;
        Self::assert_read(&told);
        told.retain(|asked, _| !asked.ends_with(" /event-log/names"));
        rooms::log_one_more(&self.app).await;
        self.assert_complete().await;
        told
    }

    /// Nothing is left out without anybody noticing.
    async fn assert_complete(&self) {
        let empty: BTreeSet<&str> = self.empty_tables().await.into_iter().map(|table| table.name).collect();
        let excused: BTreeSet<&str> = EMPTY.iter().map(|(table, _)| *table).collect();
        assert_eq!(empty, excused, "tables without a row of the app, and those that may have none");
    }

    /// Tables whose rows belong to apps and move with them, but have none of this one.
    async fn empty_tables(&self) -> Vec<&'static Table> {
        let (mut empty, id) = (Vec::new(), self.app.app_id());
        let of_apps = |table: &&Table| table.purge_of(Owner::App).is_some() && table.stays.is_none();
        for table in service::TABLES.iter().flat_map(|(_, tables)| *tables).filter(of_apps) {
            let app = table.purge_of(Owner::App).expect("of an app").app;
            let count = statement(format!("SELECT count(*) FROM {} WHERE {} = $1", table.name, app.as_str()));
            let db = self.app.service().core().db.clone();
            if db.get_one::<(i64,)>(count, &[app.of(id)]).await.expect("counted") == Some((0,)) {
                empty.push(table);
            }
        }
        empty
    }

    pub(super) fn user(&self, tokens: &Tokens) -> Caller {
        self.app.anon().with_access_token(self.app.app_id(), &tokens.access)
    }
}

/// Calls below an app, as the operator makes them.
struct OperatorOf<'a>(&'a TestApp);

fn operator(app: &TestApp) -> OperatorOf<'_> {
    OperatorOf(app)
}

impl OperatorOf<'_> {
    fn path(&self, path: &str) -> String {
        format!("/admin/apps/{}/{path}", self.0.app_id())
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.0.operator().post(&self.path(path), body).await;
        assert!(answer.status() < 300, "{path}: {answer:?}");
        answer.json()
    }

    async fn put(&self, path: &str, body: Value) {
        let answer = self.0.operator().put(&self.path(path), body).await;
        assert!(answer.status() < 300, "{path}: {answer:?}");
    }
}

/// A directory's caller, of the service as it runs now.
pub(super) fn directory(app: &TestApp, token: &str) -> Caller {
    app.anon().header("authorization", token)
}

fn authorization(directory: &DirectoryCaller) -> String {
    directory.caller.header_sent("authorization")
}
