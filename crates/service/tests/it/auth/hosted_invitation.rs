//! `/auth/login/invitation`: how somebody who was invited agrees, or does not.

use serde_json::{Value, json};
use testkit::{
    Caller, Person, TestApp, Workspace, facts,
    hosted::{mailed, sign_in, signed_in},
    on_both_engines,
};

on_both_engines!(
    somebody_signed_in_joins_with_one_click,
    somebody_known_signs_in_and_joins,
    somebody_new_chooses_a_password_and_is_in,
    anybody_with_the_link_may_decline,
    nobody_joins_in_anothers_name,
    an_invitation_that_is_over_says_so,
);

const USERS: &str = "/account/tenant/user";
const PAGE: &str = "/auth/login/invitation";

struct Invited {
    acme: Workspace,
    token: Caller,
    path: String,
}

async fn invited(app: &TestApp, email: &str) -> Invited {
    let acme = app.workspace("acme").await;
    let token = acme.token(&["USER_READ", "USER_WRITE"]).await;
    let id = token.post(USERS, json!({ "username": email })).await.expect(201).text("/id");
    Invited { acme, token, path: format!("{USERS}/{id}") }
}

impl Invited {
    async fn status(&self) -> Value {
        self.token.get(&self.path).await.expect(200).at("/status")
    }
}

async fn bob(app: &TestApp) -> Person {
    app.owner("bob@corp.example").await
}

async fn somebody_signed_in_joins_with_one_click(app: TestApp) {
    let bob = bob(&app).await;
    let invited = invited(&app, &bob.email).await;
    let link = mailed(&app, &bob.email).await;
    let mut browser = signed_in(&app, &bob).await;
    browser.open(&link).await.sees(200, "acme").sees(200, "You are signed in as bob@corp.example.");
    assert_eq!(invited.status().await, "invited", "looking changes nothing");
    let mut again = browser.clone();
    browser.submit(PAGE, &[("answer", "join")]).await.sees(200, "Choose a workspace").sees(200, "acme");
    assert_eq!(invited.status().await, "active");
    // Somebody who clicks twice sees the same.
    again.submit(PAGE, &[("answer", "join")]).await.sees(200, "Choose a workspace");
}

async fn somebody_known_signs_in_and_joins(app: TestApp) {
    let bob = bob(&app).await;
    let invited = invited(&app, &bob.email).await;
    let mut browser = app.browser();
    browser.open(&mailed(&app, &bob.email).await).await.sees(200, "Join a workspace").sees(200, "acme");
    // Nobody is signed in, so that there is nobody who could join.
    let mut form = browser.form(PAGE);
    form.push(("answer".into(), "join".into()));
    browser.post(PAGE, &form).await.sees(200, "Sign in to join");
    assert_eq!(invited.status().await, "invited");
    let address = browser.link("Sign in to join");
    browser.open(&address).await.sees(200, "bob@corp.example");
    sign_in(&mut browser, &bob).await;
    browser.sees(200, "You are signed in as bob@corp.example.").submit(PAGE, &[("answer", "join")]).await;
    assert_eq!(invited.status().await, "active");
    let id = invited.path.rsplit_once('/').expect("a path").1.to_owned();
    browser.sees(200, "Choose a workspace").submit("/auth/login/workspace", &[("member", &id)]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn somebody_new_chooses_a_password_and_is_in(app: TestApp) {
    let invited = invited(&app, "new@corp.example").await;
    let mut browser = app.browser();
    browser.open(&mailed(&app, "new@corp.example").await).await.sees(200, "Choose a password");
    browser.submit("/auth/login/set-password", &[("password", "violet harbour lamp")]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    assert_eq!(invited.status().await, "active");
}

async fn anybody_with_the_link_may_decline(app: TestApp) {
    let invited = invited(&app, "new@corp.example").await;
    let link = mailed(&app, "new@corp.example").await;
    let mut browser = app.browser();
    browser.open(&link).await;
    let decline = browser.link("Decline");
    browser.open(&decline).await.sees(200, "Join a workspace").submit(PAGE, &[("answer", "decline")]).await;
    browser.sees(200, "Invitation declined");
    invited.token.get(&invited.path).await.error(404, "NOT_FOUND");
    let told = facts::told(&app, "invitation.deleted").await;
    assert_eq!(told[0].1["declined"], true);
    browser.open(&link).await.sees(404, "This link no longer works");
    // Nobody was made of it, and the address can be invited again.
    let list = invited.acme.key().get(USERS).await.expect(200);
    assert_eq!(list.json().as_array().map(Vec::len), Some(1));
    invited.token.post(USERS, json!({ "username": "new@corp.example" })).await.expect(201);
}

async fn nobody_joins_in_anothers_name(app: TestApp) {
    let (bob, eve) = (bob(&app).await, app.owner("eve@evil.example").await);
    let invited = invited(&app, &bob.email).await;
    let link = mailed(&app, &bob.email).await;
    let mut browser = signed_in(&app, &eve).await;
    browser.open(&link).await.sees(200, "Sign in to join");
    let mut form = browser.form(PAGE);
    form.push(("answer".into(), "join".into()));
    browser.post(PAGE, &form).await.sees(200, "Sign in to join");
    // Nor does another page's form.
    let mut foreign = signed_in(&app, &bob).await;
    foreign.post(PAGE, &form).await.sees(403, "form");
    assert_eq!(invited.status().await, "invited");
}

async fn an_invitation_that_is_over_says_so(app: TestApp) {
    let bob = bob(&app).await;
    let invited = invited(&app, &bob.email).await;
    let link = mailed(&app, &bob.email).await;
    let mut browser = signed_in(&app, &bob).await;
    browser.open(&link).await.sees(200, "Join");
    invited.token.delete(&invited.path).await.expect(200);
    browser.submit(PAGE, &[("answer", "join")]).await.sees(404, "This link no longer works");
    browser.open(&link).await.sees(404, "This link no longer works");
    app.browser().open(&format!("{PAGE}?token=x")).await.sees(404, "This link no longer works");
}
