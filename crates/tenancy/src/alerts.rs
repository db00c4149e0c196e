//! Mail to those who run an app, about what they would not notice by themselves: a receiver of webhooks that was switched
//! off, a payment provider that refuses its key.

use ::store::Tx;
use kernel::Result;
use spine::{NewMail, queue_mail};

use web::Escaped;

use crate::{App, Tenancy, mails, members};

/// What there is to say, as plain text.
#[derive(Clone, Debug)]
pub struct Alert {
    pub subject: String,
    pub text: String,
}

/// Queues the alert to the OWNERs of the app's `operatorTenantId`; it leaves once `tx` has committed. How many will get
/// it: where there is nobody, the log says so.
pub fn queue(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, alert: &Alert) -> Result<usize> {
    let recipients = match app.profile.operator_tenant_id {
        Some(tenant) => members::owner_addresses(tx, app.id, tenant)?,
        None => Vec::new(),
    };
    let subject = mails::header_line(&format!("[{}] {}", app.profile.name, alert.subject));
    for to in &recipients {
        let mail = NewMail {
            app: Some(app.id),
            to: to.clone(),
            from_name: "Tenantry".into(),
            from_address: None,
            reply_to: None,
            subject: subject.clone(),
            text: alert.text.clone(),
            html: format!("<div style=\"white-space: pre-wrap\">{}</div>", Escaped(&alert.text)),
        };
        queue_mail(tx, &tenancy.keyring, &mail)?;
    }
    if recipients.is_empty() {
        let app = app.id;
        tx.on_commit(move || tracing::warn!(%app, subject, "operator mail for nobody: set operatorTenantId"));
    }
    Ok(recipients.len())
}
