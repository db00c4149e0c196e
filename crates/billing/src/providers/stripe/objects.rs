//! Customers, products, prices and tax rates at the provider: made when they are first needed, each once.

use kernel::{AppId, Page, Result, TenantId};
use tenancy::{members, workspaces};

use super::{
    client::Account,
    intents::{Bought, Overage, Stuck},
    store::{self, Place},
};
use crate::{Billing, catalog::taxes};

impl Billing {
    /// What stands for something of ours at the provider, if it was made there before.
    pub(super) async fn known_object(&self, place: &Place) -> Result<Option<String>> {
        let place = place.clone();
        self.tenancy.db.read(move |tx| store::object(tx, &place)).await
    }

    pub(super) async fn note_object(&self, place: &Place, id: &str, about: Option<&Bought>) -> Result<()> {
        let (place, id, about) = (place.clone(), id.to_owned(), about.cloned());
        self.tenancy.db.write(move |tx| store::put_object(tx, &place, &id, about.as_ref())).await
    }

    pub(super) async fn customer(&self, account: &Account, app: AppId, tenant: TenantId) -> Result<String, Stuck> {
        let place = account.fingerprint();
        let read = self.tenancy.db.read(move |tx| {
            let known = store::customer(tx, app, tenant, &place)?;
            let owner = members::owner_addresses(tx, app, tenant)?.into_iter().next();
            Ok((known, workspaces::get(tx, app, tenant)?.name, owner))
        });
        let (known, name, owner) = read.await?;
        if let Some(known) = known {
            return Ok(known);
        }
        let made = account.create_customer(&name, owner.as_deref(), tenant).await?;
        let place = account.fingerprint();
        let noted = self.tenancy.db.write(move |tx| {
            store::put_customer(tx, app, tenant, &place, &made.id)?;
            store::customer(tx, app, tenant, &place)
        });
        noted.await?.ok_or_else(|| kernel::Error::internal("a customer was noted and is not there").into())
    }

    pub(super) async fn price(&self, account: &Account, app: AppId, bought: &Bought) -> Result<String, Stuck> {
        let amount = bought.amount();
        let key = format!("{} {} {} {}", bought.price_id, amount.minor, amount.currency, bought.interval);
        let price = Place { app, account: account.fingerprint(), kind: "price", key };
        if let Some(known) = self.known_object(&price).await? {
            return Ok(known);
        }
        let product = self.product(account, app, bought).await?;
        let made = account.create_price(&product, &bought.price_id, amount, bought.interval).await?;
        self.note_object(&price, &made.id, Some(bought)).await?;
        Ok(made.id)
    }

    async fn product(&self, account: &Account, app: AppId, bought: &Bought) -> Result<String, Stuck> {
        let place = Place { app, account: account.fingerprint(), kind: "product", key: bought.plan_id.clone() };
        if let Some(known) = self.known_object(&place).await? {
            return Ok(known);
        }
        let made = account.create_product(&bought.plan_name, &bought.plan_id).await?;
        self.note_object(&place, &made.id, None).await?;
        Ok(made.id)
    }

    /// What is metered beside a plan: a price for each metric that costs something beyond its limit.
    pub(super) async fn overage_prices(
        &self,
        account: &Account,
        app: AppId,
        bought: &Bought,
    ) -> Result<Vec<String>, Stuck> {
        let mut prices = Vec::with_capacity(bought.overages.len());
        for overage in &bought.overages {
            let Overage { metric, limit, unit } = overage;
            let (currency, interval) = (bought.amount().currency, bought.interval);
            let key = format!("{} {metric} {limit} {unit} {currency} {interval}", bought.plan_id);
            let place = Place { app, account: account.fingerprint(), kind: "overage", key };
            if let Some(known) = self.known_object(&place).await? {
                prices.push(known);
                continue;
            }
            let (_, meter) = self.meter(account, app, metric).await?;
            let product = self.product(account, app, bought).await?;
            let made = account.create_overage_price(&product, &meter, bought, overage).await?;
            self.note_object(&place, &made.id, None).await?;
            prices.push(made.id);
        }
        Ok(prices)
    }

    /// The app's taxes, of which the provider takes that of the customer's country.
    pub(super) async fn tax_rates(&self, account: &Account, app: AppId) -> Result<Vec<String>, Stuck> {
        let all = Page { limit: None, offset: None };
        let taxes = self.tenancy.db.read(move |tx| taxes::list(tx, app, all)).await?;
        let mut rates = Vec::with_capacity(taxes.len());
        for tax in taxes {
            let key = format!("{} {} {}", tax.id, tax.percentage, tax.country_code);
            let place = Place { app, account: account.fingerprint(), kind: "tax", key };
            rates.push(match self.known_object(&place).await? {
                Some(known) => known,
                None => {
                    let made = account.create_tax_rate(&tax).await?;
                    self.note_object(&place, &made.id, None).await?;
                    made.id
                }
            });
        }
        Ok(rates)
    }
}
