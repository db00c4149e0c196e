//! Feature flags.

use serde_json::Value;

use crate::TestApp;

pub fn flags(app: &TestApp) -> String {
    format!("/admin/apps/{}/flags", app.app_id())
}

pub fn groups(app: &TestApp) -> String {
    format!("/admin/apps/{}/flag-groups", app.app_id())
}

/// Makes a flag and answers with its path.
pub async fn flag(app: &TestApp, body: Value) -> String {
    let made = app.operator().post(&flags(app), body).await.expect(201);
    format!("{}/{}", flags(app), made.text("/id"))
}
