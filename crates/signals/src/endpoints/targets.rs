//! The endpoints as of the last fact that was turned into deliveries, and how many deliveries in a row did not arrive.

use std::collections::HashMap;

use ::store::{Json, Tx, args, row, sql};
use kernel::{AppId, Result};

use super::{EndpointId, is_of_profile};

/// An endpoint as an event finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub endpoint: EndpointId,
    /// Only the endpoint of a profile can have none.
    pub url: Option<String>,
    pub enabled: bool,
    pub events: Vec<String>,
}

row! { Target = "webhook_targets" { endpoint: "endpoint_id", url, enabled, events as Json } }

impl Target {
    /// Whether it takes events of this type.
    pub fn takes(&self, event_type: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|name| name == event_type)
    }
}

const OF_APP: &str = sql!(
    "SELECT ",
    Target::COLUMNS,
    " FROM webhook_targets WHERE app_id = $1 AND url IS NOT NULL ORDER BY endpoint_id"
);
/// A new URL and enabling set the count to 0.
const APPLY: &str = "INSERT INTO webhook_targets (endpoint_id, app_id, url, enabled, events, exhausted) \
     VALUES ($1, $2, $3, $4, $5, 0) ON CONFLICT (endpoint_id) DO UPDATE SET exhausted = CASE \
     WHEN webhook_targets.url IS DISTINCT FROM excluded.url OR (excluded.enabled AND NOT webhook_targets.enabled) \
     THEN 0 ELSE webhook_targets.exhausted END, \
     url = excluded.url, enabled = excluded.enabled, events = excluded.events";

/// The app's endpoints that have somewhere to send to.
pub(crate) fn of_app(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<Target>> {
    tx.all(OF_APP, &args![app])
}

/// These are the endpoint's values from here on.
pub(crate) fn apply(tx: &mut Tx<'_>, app: AppId, target: &Target) -> Result<()> {
    let Target { endpoint, url, enabled, events } = target;
    tx.run(APPLY, &args![*endpoint, app, url, *enabled, Json(events)])
}

/// The endpoint of a profile that was there before this room was, unless it is known by now.
pub(crate) fn backfill(tx: &mut Tx<'_>, app: AppId, target: &Target) -> Result<()> {
    let Target { endpoint, url, enabled, events } = target;
    tx.run(
        "INSERT INTO webhook_targets (endpoint_id, app_id, url, enabled, events, exhausted) \
         VALUES ($1, $2, $3, $4, $5, 0) ON CONFLICT (endpoint_id) DO NOTHING",
        &args![*endpoint, app, url, *enabled, Json(events)],
    )
}

pub(crate) fn forget(tx: &mut Tx<'_>, app: AppId, endpoint: EndpointId) -> Result<()> {
    tx.run("DELETE FROM webhook_targets WHERE app_id = $1 AND endpoint_id = $2", &args![app, endpoint])
}

pub(crate) fn forget_app(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("DELETE FROM webhook_targets WHERE app_id = $1", &args![app])
}

/// Which of these endpoints there are, and whether they are enabled.
pub(crate) fn states(tx: &mut Tx<'_>, endpoints: &[EndpointId]) -> Result<HashMap<EndpointId, bool>> {
    let rows: Vec<(EndpointId, bool)> =
        tx.all("SELECT endpoint_id, enabled FROM webhook_targets WHERE endpoint_id = ANY($1)", &args![endpoints])?;
    Ok(rows.into_iter().collect())
}

/// So many deliveries in a row may fail for good.
pub(crate) const MOST_EXHAUSTED: i64 = 50;

/// Locks the row by writing it, so that nobody counts beside.
const COUNT: &str = "UPDATE webhook_targets SET exhausted = exhausted WHERE endpoint_id = $1 RETURNING exhausted";
const SET_COUNT: &str = "UPDATE webhook_targets SET exhausted = $2 WHERE endpoint_id = $1";
const RESET: &str = "UPDATE webhook_targets SET exhausted = 0 WHERE endpoint_id = ANY($1) AND exhausted <> 0";

/// Counts deliveries that ended, each delivered or not, in the order in which they did. The endpoints that have just failed
/// once too often.
pub(crate) fn count_ended(tx: &mut Tx<'_>, ended: &[(EndpointId, bool)]) -> Result<Vec<EndpointId>> {
    let mut by_endpoint: HashMap<EndpointId, Vec<bool>> = HashMap::new();
    for (endpoint, delivered) in ended {
        by_endpoint.entry(*endpoint).or_default().push(*delivered);
    }
    let (well, mut failing): (Vec<_>, Vec<_>) =
        by_endpoint.into_iter().partition(|(_, ended)| ended.iter().all(|delivered| *delivered));
    let mut well: Vec<EndpointId> = well.into_iter().map(|(endpoint, _)| endpoint).collect();
    // In one order for everybody, so that two senders do not wait for each other.
    well.sort_unstable();
    failing.sort_unstable_by_key(|(endpoint, _)| *endpoint);
    if !well.is_empty() {
        tx.run(RESET, &args![well])?;
    }
    let mut given_up = Vec::new();
    for (endpoint, ended) in failing {
        let Some((before,)) = tx.opt::<(i64,)>(COUNT, &args![endpoint])? else { continue };
        let (after, reached) = counted(before, &ended);
        tx.run(SET_COUNT, &args![endpoint, after])?;
        if reached {
            given_up.push(endpoint);
        }
    }
    Ok(given_up)
}

/// The count after these, and whether it reached the limit on the way.
fn counted(before: i64, ended: &[bool]) -> (i64, bool) {
    ended.iter().fold((before, false), |(count, reached), delivered| match delivered {
        true => (0, reached),
        false => (count + 1, reached || count + 1 == MOST_EXHAUSTED),
    })
}

/// An endpoint that was disabled because too many deliveries in a row did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    pub app: AppId,
    /// `None` for that of the app's profile.
    pub endpoint: Option<EndpointId>,
}

/// Up to 100 of them.
pub(crate) fn given_up(tx: &mut Tx<'_>) -> Result<Vec<GivenUp>> {
    const GIVEN_UP: &str = "SELECT app_id, endpoint_id FROM webhook_targets WHERE NOT enabled AND exhausted >= $1 \
                            ORDER BY endpoint_id LIMIT 100";
    let rows: Vec<(AppId, EndpointId)> = tx.all(GIVEN_UP, &args![MOST_EXHAUSTED])?;
    let view = |(app, endpoint): (AppId, EndpointId)| GivenUp {
        app,
        endpoint: (!is_of_profile(endpoint, app)).then_some(endpoint),
    };
    Ok(rows.into_iter().map(view).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fiftieth_in_a_row_is_one_too_many() {
        assert_eq!(counted(48, &[false]), (49, false));
        assert_eq!(counted(49, &[false]), (50, true));
        assert_eq!(counted(50, &[false]), (51, false), "it was told before");
        assert_eq!(counted(49, &[true, false]), (1, false));
        assert_eq!(counted(48, &[false, false, true]), (0, true), "in the order in which they ended");
    }
}
