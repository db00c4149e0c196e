//! A Stripe-compatible payment provider. What is to be done there is a row first ([`intents`]), then a call between
//! transactions, then its outcome; what it tells is read from it again ([`callbacks`]), so that order does not matter.

pub(crate) mod callbacks;
mod calls;
mod client;
pub(crate) mod endpoints;
pub mod events;
mod form;
pub(crate) mod intents;
pub mod invoice;
pub(super) mod leaving;
mod link;
mod meters;
mod objects;
#[cfg(test)]
mod properties;
mod store;

use ::store::Tx;
use kernel::{AppId, Code, Error, Result, TenantId};
use tenancy::{
    apps,
    credentials::{self, Credential},
};

pub(crate) use client::Account;
pub use client::StripeApi;
pub use form::ApiForm;
pub(crate) use intents::{Intent, Update, Work};

use super::is_sandbox;
use crate::{
    Billing,
    subscriptions::{Agreement, Subscription},
};

/// What a workspace has there, if anything.
pub(crate) fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<store::AtProvider>> {
    store::at_provider(tx, app, tenant)
}

/// Follows a change of the subscription: one that is not renewed there any more is ended there.
pub(crate) fn follow(tx: &mut Tx<'_>, app: AppId, before: Option<&Agreement>, after: &Subscription) -> Result<()> {
    if before.is_none() || after.agreement.runs_at_provider() {
        return Ok(());
    }
    let Some(there) = store::at_provider(tx, app, after.tenant)? else { return Ok(()) };
    store::delete_at_provider(tx, app, after.tenant)?;
    store::supersede_updates(tx, app, after.tenant)?;
    intents::leave_to_job(tx, app, after.tenant, Work::End { subscription: there.subscription })
}

/// A subscription that was about to end there goes on by the app's word.
pub(crate) fn resume(tx: &mut Tx<'_>, app: AppId, after: &Subscription) -> Result<()> {
    let Some(there) = store::at_provider(tx, app, after.tenant)? else { return Ok(()) };
    store::supersede_updates(tx, app, after.tenant)?;
    let work = Work::Update { subscription: there.subscription, how: Update::Reactivate };
    intents::leave_to_job(tx, app, after.tenant, work)
}

impl Billing {
    /// The account of an app, also while its payments are switched off: what runs there can still be canceled.
    pub(crate) async fn account(&self, app: AppId) -> Result<Account> {
        let tenancy = self.tenancy.clone();
        let found = self.tenancy.db.read(move |tx| {
            apps::get(tx, app)?;
            credentials::find(tx, &tenancy, app, Credential::PayproviderSecretKey)
        });
        match found.await? {
            Some(key) if !is_sandbox(&key) => Ok(self.stripe.account(key)),
            _ => Err(Error::new(Code::ProviderFailed, "This app has no key of its payment provider any more.")),
        }
    }
}
