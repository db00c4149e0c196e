//! Second factors.

use std::time::Duration;

use serde_json::{Value, json};
use totp_lite::{Sha1, totp_custom};

use crate::{Answer, Person, TestApp};

pub const PHONE: &str = "+49 170 1234567";

pub async fn post(app: &TestApp, route: &str, mut body: Value) -> Answer {
    body["mode"] = "sdk".into();
    app.page().post(&format!("/auth/auth/{route}"), body).await
}

/// The code that was last sent.
pub async fn sms(app: &TestApp) -> String {
    app.drain().await;
    let sms = app.sms();
    let last = sms.last().expect("an SMS");
    assert_eq!(last.to, "+491701234567");
    last.text.split(' ').next().expect("a code").to_owned()
}

/// Not the code.
pub fn other(code: &str) -> String {
    format!("{:06}", (code.parse::<u32>().expect("digits") + 1) % 1_000_000)
}

pub async fn require(app: &TestApp) {
    app.key().put("/account/app", json!({ "mfaEnabled": true })).await.expect(200);
}

/// The person with a phone as second factor; the backup code.
pub async fn with_phone(app: &TestApp, email: &str) -> (Person, String) {
    let person = app.owner(email).await;
    let session = person.log_in().await.expect(200).text("/session");
    let backup_code = set_up_sms(app, &session, PHONE).await;
    (person, backup_code)
}

/// Sets a phone up in a session; the backup code.
pub async fn set_up_sms(app: &TestApp, session: &str, phone: &str) -> String {
    post(app, "startMfaUserSetup", json!({ "session": session, "phoneNumber": phone })).await.expect(200);
    let body = json!({ "session": session, "mfaCode": sms(app).await });
    post(app, "finishMfaUserSetup", body).await.expect(200).text("/backupCode")
}

/// What an authenticator app shows for a secret so many steps from the service's time. Neither of the libraries is one
/// that the service uses.
pub fn shown(app: &TestApp, secret: &str, steps: i64) -> String {
    let now = app.now().as_seconds() + 30 * steps;
    let secret = data_encoding::BASE32_NOPAD.decode(secret.as_bytes()).expect("base32");
    totp_custom::<Sha1>(30, 6, &secret, now.try_into().expect("after 1970"))
}

/// The person with an authenticator app as second factor, set up a minute ago; its secret.
pub async fn with_authenticator(app: &TestApp, email: &str) -> (Person, String) {
    let person = app.owner(email).await;
    let session = person.log_in().await.expect(200).text("/session");
    let started = post(app, "startMfaUserSetup", json!({ "session": session, "method": "totp" })).await.expect(200);
    let secret = started.text("/secret");
    let body = json!({ "session": session, "mfaCode": shown(app, &secret, 0) });
    post(app, "finishMfaUserSetup", body).await.expect(200);
    app.advance(Duration::from_secs(60)).await;
    (person, secret)
}

/// Shows an authenticator app's code in a new login.
pub async fn log_in_with(app: &TestApp, person: &Person, code: &str) -> Answer {
    let session = person.log_in().await.expect(200).text("/session");
    post(app, "commitMfaCode", json!({ "session": session, "mfaCode": code })).await
}
