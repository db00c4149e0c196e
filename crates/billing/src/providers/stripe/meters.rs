//! Usage at the provider: totals of metered metrics, each a meter that takes the newest value.

use kernel::{AppId, Result};

use super::{client::Account, intents::Stuck, store::Place};
use crate::{Billing, usage::Total};

/// Totals are asked for by whole minutes.
const MINUTE: i64 = 60;

impl Billing {
    /// Sends a total and reads back what the provider makes of it; `None` when it has none.
    pub(crate) async fn push_total(&self, app: AppId, customer: &str, total: &Total) -> Result<Option<i64>, Stuck> {
        let account = self.account(app).await?;
        let (event, meter) = self.meter(&account, app, &total.metric).await?;
        let now = self.tenancy.db.clock().now();
        let (start, end) = (total.period.start.as_seconds(), total.period.end.as_seconds());
        // Of a period that is over, its last moment.
        let at = now.as_seconds().min(end - 1);
        let tag = tag(&format!("{customer}:{}:{start}", total.metric));
        let key = format!("tenantry-usage-{tag}-{}", now.as_micros());
        account.send_total(&event, customer, total.used, at, &key).await?;
        let (from, until) = (start.div_euclid(MINUTE) * MINUTE, (end + MINUTE - 1).div_euclid(MINUTE) * MINUTE);
        let seen = account.totals(&meter, customer, from, until).await?;
        #[expect(clippy::cast_possible_truncation, reason = "a counter fits into the 53 bits of a double")]
        Ok(seen.data.first().map(|summary| summary.aggregated_value as i64))
    }

    /// The name of the meter's events, and its id.
    pub(super) async fn meter(&self, account: &Account, app: AppId, metric: &str) -> Result<(String, String), Stuck> {
        let event = format!("tenantry_{}", tag(&format!("{app}:{metric}")));
        let place = Place { app, account: account.fingerprint(), kind: "meter", key: metric.to_owned() };
        if let Some(known) = self.known_object(&place).await? {
            return Ok((event, known));
        }
        let made = account.create_meter(&event, metric).await?;
        self.note_object(&place, &made.id, None).await?;
        Ok((event, made.id))
    }
}

fn tag(text: &str) -> String {
    vault::hash_token(text).chars().take(32).collect()
}
