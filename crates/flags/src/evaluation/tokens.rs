//! Access tokens in a context: who the user is and what the workspace has is read each time.

use kernel::{AppId, Result};
use tenancy::{Tenancy, callers::GRACE, standing};

use super::live;
use crate::{definitions::BillingReads, rules::Live};

/// What is known about the token's user and workspace; `None` when the token is not valid here.
pub(crate) async fn live(tenancy: &Tenancy, app: AppId, token: &str, reads: BillingReads) -> Result<Option<Live>> {
    let tokens = &tenancy.access_tokens;
    let genuine = tokens.verify(token).filter(|claims| claims.aid == app && tokens.check(claims, GRACE).is_ok());
    let Some(claims) = genuine else { return Ok(None) };
    let known = standing::signed_in_detailed(&tenancy.db, claims.signed_in_as()).await?;
    let Some(known) = known else { return Ok(None) };
    let tenant = known.standing.tenant;
    let mut live = live::attributes(known);
    if reads.billing {
        let read = tenancy.db.snapshot(move |tx| billing::live::of(tx, app, tenant, reads.usage));
        live.tenant.extend(live::billing(&read.await?));
    }
    Ok(Some(live))
}
