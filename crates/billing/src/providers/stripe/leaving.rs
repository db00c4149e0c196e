//! How a workspace leaves whoever it pays, before it is deleted. Calls take their time, and somebody may buy meanwhile: the
//! transaction that deletes asks [`is_settled`] under the workspace's lock, and where something was begun since, all of this is
//! done again.

use ::store::Tx;
use kernel::{AppId, Code, Error, Result, TenantId};

use super::{Work, callbacks::ignore_unknown, client::CallFailure, store};
use crate::{Billing, providers::store as sessions};

/// What was set to end at the provider, and what was known of it then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    ends: Option<(String, i64)>,
}

/// Whether a workspace still has nothing at the provider but what was settled. Call it under the workspace's lock. What is to be
/// done becomes a checkout, and a checkout becomes a subscription: looked at in this order, nothing is missed on its way.
pub fn is_settled(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, settled: &Settled) -> Result<bool> {
    if store::is_anything_waiting(tx, app, tenant)? || !sessions::open_sessions(tx, app, tenant)?.is_empty() {
        return Ok(false);
    }
    let there = store::at_provider(tx, app, tenant)?;
    Ok(there.map(|there| (there.subscription, there.revision)) == settled.ends)
}

impl Billing {
    /// What a workspace pays for ends with its period, without refund or proration, and nobody can pay for it any more.
    pub async fn leave(&self, app: AppId, tenant: TenantId) -> Result<Settled> {
        self.tenancy.db.write(move |tx| store::drop_checkouts(tx, app, tenant)).await?;
        self.close_checkouts(app, tenant).await?;
        // The rows of these go with the workspace, so that no job could finish them.
        let waiting = self.tenancy.db.read(move |tx| store::changes_waiting(tx, app, tenant)).await?;
        for intent in &waiting {
            match self.carry_out(intent).await {
                // Refused, so that it is over; or the provider cannot be reached, which the last call will find too.
                Err(_) if matches!(intent.work, Work::Update { .. }) => {}
                outcome => drop(outcome?),
            }
        }
        let Some(there) = self.tenancy.db.read(move |tx| store::at_provider(tx, app, tenant)).await? else {
            return Ok(Settled::default());
        };
        let key = format!("tenantry-leave-{tenant}-{}", self.tenancy.db.entropy().base62(16));
        match self.account(app).await?.cancel_at_period_end(&there.subscription, true, &key).await {
            Ok(_) | Err(CallFailure::Missing) => Ok(Settled { ends: Some((there.subscription, there.revision)) }),
            Err(CallFailure::Refused(reason)) => {
                let message = format!("The payment provider refused to cancel the subscription: {reason}");
                Err(Error::new(Code::SubscriptionNotCancelled, message))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// A checkout that was paid already is taken over.
    async fn close_checkouts(&self, app: AppId, tenant: TenantId) -> Result<()> {
        let open = self.tenancy.db.read(move |tx| sessions::open_sessions(tx, app, tenant)).await?;
        for id in open {
            match self.account(app).await {
                // A session of the sandbox, or of an account that nobody knows any more.
                Err(error) if error.code() == Code::ProviderFailed => {}
                account => match account?.expire_session(&id, &self.once("expire", &id)).await {
                    Ok(_) | Err(CallFailure::Missing) => {}
                    Err(CallFailure::Refused(_)) => ignore_unknown(self.take_over_session(app, &id).await.map(|_| ()))?,
                    Err(failure) => return Err(failure.into()),
                },
            }
            self.tenancy.db.write(move |tx| sessions::close_session(tx, app, &id)).await?;
        }
        Ok(())
    }

    /// Closes a checkout that was made for somebody who has left meanwhile.
    pub(super) async fn close_unwanted(&self, app: AppId, session: &str) -> Result<()> {
        match self.account(app).await?.expire_session(session, &self.once("expire", session)).await {
            Ok(_) | Err(CallFailure::Missing | CallFailure::Refused(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// A key for a call that may be made again with another outcome.
    fn once(&self, what: &str, id: &str) -> String {
        format!("tenantry-{what}-{id}-{}", self.tenancy.db.entropy().base62(16))
    }
}
