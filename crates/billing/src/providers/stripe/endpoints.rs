//! The address for callbacks, registered at the provider when an app gets a secret key without a webhook secret, so that nobody
//! has to do it there by hand. A fact notes it, a job does it.

use std::time::Duration;

use ::store::{Tx, args};
use kernel::{AppId, Code, Error, Result, Secret, Timestamp};
use spine::{Fact, FactKind as _, Job, Reader, Worked, emit};
use tenancy::{
    Tenancy, apps,
    credentials::{self, Credential},
    facts::AppCredentialsChanged,
};

use super::{
    events::EVENTS,
    intents::Stuck,
    store::{self, ENDPOINTS_DUE, NEXT_ENDPOINT},
};
use crate::{Billing, providers::is_sandbox};

pub(crate) const READER: Reader = Reader::of("provider-endpoints", &[AppCredentialsChanged::KIND]);

/// Apps per run.
const BATCH: i64 = 20;
/// Tries before it is left to the app.
const MOST_ATTEMPTS: u32 = 8;

/// Notes an app that needs an address at its provider.
pub(crate) fn hear(tx: &mut Tx<'_>, tenancy: &Tenancy, fact: &Fact) -> Result<()> {
    let (Some(changed), Some(app)) = (fact.read::<AppCredentialsChanged>()?, fact.app) else { return Ok(()) };
    let concerns = changed.names.iter().any(|name| name == Credential::PayproviderSecretKey.as_str());
    if concerns && tenancy.base_url.starts_with("https://") && is_wanted(tx, tenancy, app)? {
        store::put_endpoint(tx, app)?;
    }
    Ok(())
}

fn is_wanted(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId) -> Result<bool> {
    if credentials::is_set(tx, app, Credential::PayproviderWebhookSecret)? {
        return Ok(false);
    }
    let key = credentials::find(tx, tenancy, app, Credential::PayproviderSecretKey)?;
    Ok(key.is_some_and(|key| !is_sandbox(&key)))
}

/// Registers addresses for callbacks.
pub struct Registering(pub Billing);

impl Job for Registering {
    fn name(&self) -> &'static str {
        "provider-endpoints"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run(&self) -> Result<Worked> {
        let db = &self.0.tenancy.db;
        let now = db.clock().now();
        let due = db.read(move |tx| tx.all::<(AppId, u32)>(ENDPOINTS_DUE, &args![now, BATCH])).await?;
        for (app, attempts) in due.iter().copied() {
            let Err(stuck) = self.0.register_endpoint(app).await else { continue };
            let is_over = matches!(stuck, Stuck::Refused(_)) || attempts >= MOST_ATTEMPTS;
            let error = Error::from(stuck);
            tracing::warn!(%app, ?error, "the address for callbacks was not registered at the payment provider");
            let is_over = is_over || error.code() == Code::NotFound;
            let write = db.write(move |tx| {
                if is_over {
                    return store::delete_endpoint(tx, app).map(|_| ());
                }
                store::postpone_endpoint(tx, app, tx.now().plus(Duration::from_mins(1 << attempts.min(8))))
            });
            write.await?;
        }
        Ok(Worked::some_if(!due.is_empty()))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.0.tenancy.db.get_one(NEXT_ENDPOINT, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

impl Billing {
    async fn register_endpoint(&self, app: AppId) -> Result<(), Stuck> {
        let account = self.account(app).await?;
        let url = format!("{}/account/payprovider/webhook/{app}", self.tenancy.base_url);
        let key = format!("tenantry-endpoint-{app}-{}", account.fingerprint());
        let made = account.create_endpoint(&url, &EVENTS, &key).await?;
        let (tenancy, secret) = (self.tenancy.clone(), made.secret.map(Secret::new));
        let write = self.tenancy.db.write(move |tx| {
            apps::hold(tx, app)?;
            let is_due = store::delete_endpoint(tx, app)?;
            let Some(secret) = secret.as_ref().filter(|_| is_due) else { return Ok(()) };
            if credentials::is_set(tx, app, Credential::PayproviderWebhookSecret)? {
                return Ok(());
            }
            credentials::set(tx, &tenancy, app, Credential::PayproviderWebhookSecret, secret)?;
            emit(tx, app, &AppCredentialsChanged { names: vec!["payproviderWebhookSecret".to_owned()] })
        });
        Ok(write.await?)
    }
}
