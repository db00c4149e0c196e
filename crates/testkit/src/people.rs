//! People who sign in to the first app: made by its key, with a password that they chose through the mailed link.

use kernel::{MemberId, TenantId, UserId};
use serde_json::{Value, json};
use vault::passwords::{DigestAlgorithm, Imported, Pepper, PepperPosition};

use crate::{Answer, Caller, TestApp};

/// A page of the first app.
pub const PAGE: &str = "http://localhost:3000";
const PASSWORD: &str = "violet harbour lamp";

/// Somebody with a password and a workspace.
#[derive(Clone)]
pub struct Person {
    app: TestApp,
    pub email: String,
    pub password: String,
    pub user: UserId,
    pub tenant: TenantId,
    pub member: MemberId,
}

/// What a person holds after signing in.
#[derive(Clone, Debug)]
pub struct Tokens {
    pub access: String,
    pub refresh: String,
    pub id: String,
}

impl Tokens {
    #[track_caller]
    pub fn of(answer: &Answer) -> Self {
        let text = |name: &str| answer.text(&format!("/{name}_token"));
        Self { access: text("access"), refresh: text("refresh"), id: text("id") }
    }
}

impl TestApp {
    /// A script on a page of the first app.
    pub fn page(&self) -> Caller {
        self.anon().header("origin", PAGE)
    }

    /// The OWNER of a new workspace.
    pub async fn owner(&self, email: &str) -> Person {
        let owner = json!({ "email": email, "firstName": "Ada", "lastName": "Lovelace" });
        let body = json!({ "owner": owner, "name": format!("Workspace of {email}") });
        let tenant: TenantId = self.key().post("/account/tenant", body).await.expect(200).id("/id");
        self.invited(email, tenant).await
    }

    /// A further member of a workspace, who got an invitation.
    pub async fn member(&self, email: &str, tenant: TenantId, role: &str) -> Person {
        let caller = self.key().header("x-tenant-id", &tenant.to_string());
        let body = json!({ "username": email, "role": role, "firstName": "Bob", "lastName": "Byron" });
        caller.post("/account/tenant/user", body).await.expect(201);
        self.invited(email, tenant).await
    }

    async fn invited(&self, email: &str, tenant: TenantId) -> Person {
        self.drain().await;
        let token = self.mailed_token(email);
        let body = json!({ "token": token, "password": PASSWORD });
        // Whoever has a password keeps it.
        let set = self.anon().put("/auth/auth/password", body).await;
        assert!(matches!(set.status(), 200 | 401), "{set:?}");
        let caller = self.key().header("x-tenant-id", &tenant.to_string());
        let users = caller.get("/account/tenant/user").await.expect(200);
        let users = users.json();
        let me = users.as_array().into_iter().flatten().find(|user| user["email"] == email).expect("in the list");
        let id = |name: &str| me[name].as_str().expect("an id").to_owned();
        let (user, member) = (id("userId").parse().expect("a user"), id("id").parse().expect("a member"));
        let (email, password) = (email.to_owned(), PASSWORD.to_owned());
        self.drain().await;
        Person { app: self.clone(), email, password, user, tenant, member }
    }

    /// Begins a login of somebody, whoever they are: the `sid` of access tokens that a test signs by itself.
    pub fn begin_login(&self, user: UserId) -> String {
        let service = self.service();
        let core = service.core();
        let app = core.tenancy.apps.get(self.app_id()).expect("the first app is known");
        let started = core.db.write(move |tx| {
            tenancy::logins::start(tx, &app, user, false, tx.now(), None, tenancy::logins::Reach::EVERYTHING)
        });
        // On a thread of its own: waiting here would take wake-ups that are meant for what this task does beside it.
        let runtime = tokio::runtime::Handle::current();
        let login = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(started)).join());
        login.expect("the thread lives").expect("a login can be begun").id.to_string()
    }

    /// The token of the last link that was mailed to somebody.
    #[track_caller]
    pub fn mailed_token(&self, email: &str) -> String {
        let link = self.mailed_link(email);
        link.rsplit_once("token=").map(|(_, token)| token.to_owned()).expect("the link has a token")
    }

    /// The last link with a token that was mailed to somebody.
    #[track_caller]
    pub fn mailed_link(&self, email: &str) -> String {
        let mails = self.mails();
        let mut links = mails.iter().rev().filter(|mail| mail.to.contains(email)).flat_map(|mail| mail.links());
        links.find(|link| link.contains("token=")).expect("a link with a token")
    }
}

impl Person {
    /// The body of a login with the password.
    pub fn credentials(&self) -> Value {
        let app = self.app.app_id();
        json!({ "username": self.email, "password": self.password, "appId": app, "mode": "sdk" })
    }

    /// Shows the password.
    pub async fn log_in(&self) -> Answer {
        self.app.page().post("/auth/auth/authenticate", self.credentials()).await
    }

    /// Signs in to the person's first workspace.
    pub async fn sign_in(&self) -> Tokens {
        let session = self.log_in().await.expect(200).text("/session");
        Tokens::of(&self.exchange(&session).await.expect(200))
    }

    /// Exchanges a login session for tokens of the person's first workspace.
    pub async fn exchange(&self, session: &str) -> Answer {
        let body =
            json!({ "session": session, "tenantUserId": self.member, "appId": self.app.app_id(), "mode": "sdk" });
        self.app.page().post("/auth/token/direct", body).await
    }

    /// The person with a fresh access token.
    pub async fn signed_in(&self) -> Caller {
        self.app.anon().with_access_token(self.app.app_id(), &self.sign_in().await.access)
    }
}

/// Somebody whose password's digest was made by another system, with a pepper; the body of their login.
pub async fn imported(app: &TestApp, email: &str) -> Value {
    let owner = app.owner("owner@example.com").await;
    let body = json!({ "username": email, "muteNotifications": true });
    let bob = app.key().in_workspace(owner.tenant).post("/account/tenant/user", body).await.expect(201);
    let (app_id, user) = (app.app_id(), bob.id("/userId"));
    let service = app.service();
    let keyring = service.core().keyring.clone();
    let imported = Imported {
        algorithm: DigestAlgorithm::Sha1,
        value: "c88e9c67041a74e0357befdff93f87dde0904214".into(),
        pepper: Some(Pepper { value: "salt".into(), position: PepperPosition::End }),
    };
    let stored = service
        .core()
        .db
        .write(move |tx| identity::login::credentials::import(tx, &keyring, app_id, &[(user, &imported)]));
    stored.await.expect("imports");
    json!({ "username": email, "password": "password", "appId": app_id, "mode": "sdk" })
}
