//! Plans as customers see them, in memory: they change seldom, and everybody who is about to choose one asks for them.

use std::sync::Arc;

use kernel::{AppId, Currency, Page, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Number;
use spine::{Cached, News};
use store::{Db, Tx};

use super::{Interval, Plan, Price, PriceId};

/// Apps whose plans are remembered.
const REMEMBERED: usize = 1_000;

/// A plan as customers see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedPlan {
    pub key: String,
    pub name: String,
    pub description: String,
    pub trial: bool,
    pub trial_days: Option<u32>,
    pub prices: Vec<OfferedPrice>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedPrice {
    pub id: PriceId,
    pub amount: Number,
    pub currency: Currency,
    pub recurrence_interval: Interval,
}

impl From<Plan> for OfferedPlan {
    fn from(plan: Plan) -> Self {
        let Plan { key, name, description, trial, trial_days, prices, .. } = plan;
        let offered = |Price { id, amount, interval }| OfferedPrice {
            id,
            amount: amount.to_major(),
            currency: amount.currency,
            recurrence_interval: interval,
        };
        Self { key, name, description, trial, trial_days, prices: prices.into_iter().map(offered).collect() }
    }
}

/// What apps offer, newest first. Cheap to clone.
#[derive(Clone)]
pub struct Offers {
    db: Db,
    by_app: Cached<AppId, Arc<Vec<OfferedPlan>>>,
}

impl Offers {
    pub fn new(db: Db) -> Self {
        Self { db, by_app: Cached::new(REMEMBERED) }
    }

    pub async fn list(&self, app: AppId, page: Page) -> Result<Vec<OfferedPlan>> {
        let offers = self.by_app.get_or_read(app, |app| self.read(app)).await?;
        Ok(page.of(offers.iter().cloned()))
    }

    async fn read(&self, app: AppId) -> Result<Arc<Vec<OfferedPlan>>> {
        let plans = self.db.snapshot(move |tx| super::list(tx, app, Page::ALL)).await?;
        Ok(Arc::new(plans.into_iter().map(OfferedPlan::from).collect()))
    }

    /// The transaction changes the app's plans: the next one who asks reads them again.
    pub fn will_change(&self, tx: &mut Tx<'_>, app: AppId) {
        let by_app = self.by_app.clone();
        tx.on_commit(move || by_app.invalidate(&app));
    }

    /// What another node changed.
    pub(crate) fn hear(&self, news: News<'_>) {
        match news {
            News::Fact(fact) => fact.app.iter().for_each(|app| self.by_app.invalidate(app)),
            News::Gap => self.by_app.flush(),
        }
    }
}
