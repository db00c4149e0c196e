//! What routes and pages ask of whoever is paid: checkouts and portals, in the name of whoever asks.

use kernel::{AppId, Authored, Result, TenantId};
use store::Tx;
use tenancy::apps;

use super::{
    Provider,
    checkout::{self, CheckoutAnswer, CheckoutRequest},
    sandbox::portal,
};
use crate::{
    Billing,
    subscriptions::{self, Agreement},
};

impl Billing {
    /// Begins a checkout, or assigns the plan where nothing has to be paid.
    pub async fn checkout(
        &self,
        who: &impl Authored,
        (app, tenant): (AppId, TenantId),
        request: impl Fn(&mut Tx<'_>) -> Result<CheckoutRequest> + Send + 'static,
    ) -> Result<CheckoutAnswer> {
        let tenancy = self.tenancy.clone();
        let begun = self.tenancy.db.by(who).write(move |tx| {
            let app = apps::get(tx, app)?;
            let request = request(tx)?;
            checkout::begin(tx, &tenancy, &app, tenant, &request)
        });
        begun.await
    }

    /// The address of the provider's portal for what a workspace pays there; `None` when it pays nobody.
    pub async fn portal(&self, who: &impl Authored, app: AppId, tenant: TenantId) -> Result<Option<String>> {
        let tenancy = self.tenancy.clone();
        let opened = self.tenancy.db.by(who).write(move |tx| {
            let app = apps::get(tx, app)?;
            let subscription = subscriptions::find(tx, app.id, tenant)?;
            if !subscription.is_some_and(|found| Agreement::runs_at_provider(&found.agreement)) {
                return Ok(None);
            }
            match super::of(tx, &tenancy, &app)? {
                Provider::None => Ok(None),
                Provider::Sandbox => portal::open(tx, &tenancy, app.id, tenant, portal::OPEN_FOR).map(Some),
            }
        });
        opened.await
    }
}
