//! The sender's SQL: who has something due, claims, outcomes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ::store::{Json, Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};
use spine::{emit, lease};
use tenancy::{
    Tenancy,
    alerts::{self, Alert},
    apps,
};
use vault::Keyring;

use super::{Answered, Parcel, lines::Left, turns::Plan};
use crate::{
    deliveries::{Attempt, DeliveryId, DeliveryStatus, ENDPOINT_DELETED, PAUSES, WEBHOOK_DISABLED},
    endpoints::{self, EndpointId, is_of_profile},
    facts::EndpointGivenUp,
    secrets::{self, SigningSecret},
};

/// One step per endpoint, not per delivery: an endpoint may have very many.
const WAITING: &str = "WITH RECURSIVE waiting (endpoint_id) AS ( \
     SELECT (SELECT endpoint_id FROM webhook_deliveries WHERE lease_owner IS NULL AND next_attempt_at IS NOT NULL \
             ORDER BY endpoint_id LIMIT 1) \
     UNION ALL \
     SELECT (SELECT next.endpoint_id FROM webhook_deliveries AS next WHERE next.endpoint_id > waiting.endpoint_id \
             AND next.lease_owner IS NULL AND next.next_attempt_at IS NOT NULL ORDER BY next.endpoint_id LIMIT 1) \
     FROM waiting WHERE waiting.endpoint_id IS NOT NULL) \
     SELECT waiting.endpoint_id, (SELECT first.next_attempt_at FROM webhook_deliveries AS first \
         WHERE first.endpoint_id = waiting.endpoint_id AND first.lease_owner IS NULL \
         AND first.next_attempt_at IS NOT NULL ORDER BY first.next_attempt_at LIMIT 1) AS due_at \
     FROM waiting WHERE waiting.endpoint_id IS NOT NULL";
const ABANDONED: &str =
    "SELECT id FROM webhook_deliveries WHERE lease_owner IS NOT NULL AND lease_until < {db_now} LIMIT 1";
const FREE_ABANDONED: &str = "UPDATE webhook_deliveries SET lease_owner = NULL, lease_until = NULL \
                              WHERE lease_owner IS NOT NULL AND lease_until < {db_now}";
const CLAIMED_DUE: &str = "SELECT min(next_attempt_at) FROM webhook_deliveries WHERE lease_owner IS NOT NULL";

/// Who waits.
pub(super) struct Waiting {
    /// Endpoints with something due, in the order of their ids.
    pub(super) due: Vec<EndpointId>,
    /// Whether somebody's claims have run out.
    pub(super) abandoned: bool,
}

fn endpoints_waiting(tx: &mut Tx<'_>) -> Result<Vec<(EndpointId, Option<Timestamp>)>> {
    tx.all(WAITING, &[])
}

pub(super) fn waiting(tx: &mut Tx<'_>) -> Result<Waiting> {
    let now = tx.now();
    let due = endpoints_waiting(tx)?.into_iter().filter(|(_, at)| at.is_some_and(|at| at <= now));
    Ok(Waiting { due: due.map(|(endpoint, _)| endpoint).collect(), abandoned: tx.exists(ABANDONED, &[])? })
}

pub(super) fn free_abandoned(tx: &mut Tx<'_>) -> Result<()> {
    tx.run(FREE_ABANDONED, &[])
}

/// The earliest delivery that waits, also when somebody has it in hand.
pub(super) fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let free = endpoints_waiting(tx)?.into_iter().filter_map(|(_, at)| at).min();
    let (claimed,): (Option<Timestamp>,) = tx.one(CLAIMED_DUE, &[])?;
    Ok(free.into_iter().chain(claimed).min())
}

/// A delivery that this node took in order to send it.
pub(super) struct Claimed {
    pub(super) claim: Claim,
    pub(super) parcel: Parcel,
}

/// What its outcome is written by.
#[derive(Clone)]
pub(super) struct Claim {
    id: DeliveryId,
    app: AppId,
    pub(super) endpoint: EndpointId,
    /// The number of the attempt under way.
    attempt: i64,
    /// Those before it.
    attempts: Vec<Attempt>,
}

/// What is read of a delivery in order to send it.
struct Chosen {
    id: DeliveryId,
    app: AppId,
    endpoint: EndpointId,
    event_id: String,
    event_type: String,
    target_url: String,
    payload: String,
    made: i64,
    attempts: Vec<Attempt>,
    due_at: Timestamp,
}

row! {
    Chosen = "webhook_deliveries" {
        id,
        app: "app_id",
        endpoint: "endpoint_id",
        event_id,
        event_type,
        target_url,
        payload,
        made,
        attempts as Json,
        due_at: "next_attempt_at",
    }
}

impl Chosen {
    fn claimed(self, secrets: Arc<[SigningSecret]>) -> Claimed {
        let Self { id, app, endpoint, event_id, event_type, target_url: url, payload: body, made, attempts, .. } = self;
        Claimed {
            claim: Claim { id, app, endpoint, attempt: made + 1, attempts },
            parcel: Parcel { event_id, event_type, url, body, secrets },
        }
    }
}

const CHOOSE: &str = sql!(
    "SELECT ",
    Chosen::COLUMNS,
    " FROM webhook_deliveries WHERE endpoint_id = $1 AND lease_owner IS NULL AND next_attempt_at <= $2 \
     ORDER BY next_attempt_at, id LIMIT $3 {claim}"
);
const CLAIM: &str = "UPDATE webhook_deliveries SET attempt = made + 1, lease_owner = row_owner, \
                     lease_until = {db_now} + row_lease FROM {rows} WHERE webhook_deliveries.id = row_id";
const DROP: &str = "UPDATE webhook_deliveries SET status = 'dlq', attempt = CASE WHEN made = 0 THEN 1 ELSE made END, \
                    last_error = $2, next_attempt_at = NULL, finished_at = $3, lease_owner = NULL, lease_until = NULL \
                    WHERE id = ANY($1)";

/// Claims what the plan says, in the order in which it became due. What must not be sent any more ends here.
pub(super) fn claim(
    tx: &mut Tx<'_>,
    keyring: &Keyring,
    owner: &str,
    plan: &Plan,
    length: Duration,
) -> Result<Vec<Claimed>> {
    let now = tx.now();
    let mut chosen: Vec<Chosen> = Vec::new();
    for (endpoint, share) in plan {
        let share = i64::try_from(*share).unwrap_or(i64::MAX);
        chosen.extend(tx.all::<Chosen>(CHOOSE, &args![*endpoint, now, share])?);
    }
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    chosen.sort_unstable_by_key(|delivery| (delivery.due_at, delivery.id));
    let endpoints: Vec<EndpointId> = plan.iter().map(|(endpoint, _)| *endpoint).collect();
    let states = endpoints::states(tx, &endpoints)?;
    let verdict = |delivery: &Chosen| match states.get(&delivery.endpoint) {
        None => Some(ENDPOINT_DELETED),
        // A first attempt was decided on when the event happened.
        Some(false) if delivery.made > 0 => Some(WEBHOOK_DISABLED),
        Some(_) => None,
    };
    for reason in [ENDPOINT_DELETED, WEBHOOK_DISABLED] {
        let dropped: Vec<DeliveryId> =
            chosen.iter().filter(|delivery| verdict(delivery) == Some(reason)).map(|delivery| delivery.id).collect();
        if !dropped.is_empty() {
            tx.run(DROP, &args![dropped, reason, now])?;
        }
    }
    chosen.retain(|delivery| verdict(delivery).is_none());
    let claims: Vec<_> = chosen.iter().map(|delivery| (delivery.id, owner, lease::micros(length))).collect();
    tx.insert_all(CLAIM, ["row_id", "row_owner", "row_lease"], &claims)?;
    let secrets = secrets_of(tx, keyring, &endpoints)?;
    let with_secrets = |delivery: Chosen| {
        let secrets = secrets.get(&delivery.endpoint).cloned().unwrap_or_default();
        delivery.claimed(secrets)
    };
    Ok(chosen.into_iter().map(with_secrets).collect())
}

/// What signs for each of these endpoints.
fn secrets_of(
    tx: &mut Tx<'_>,
    keyring: &Keyring,
    endpoints: &[EndpointId],
) -> Result<HashMap<EndpointId, Arc<[SigningSecret]>>> {
    let mut of: HashMap<EndpointId, Vec<SigningSecret>> = HashMap::new();
    for (endpoint, secret) in secrets::signing(tx, keyring, endpoints)? {
        of.entry(endpoint).or_default().push(secret);
    }
    Ok(of.into_iter().map(|(endpoint, secrets)| (endpoint, secrets.into())).collect())
}

/// An attempt that has ended.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) claim: Claim,
    pub(super) at: Timestamp,
    pub(super) until: Timestamp,
    pub(super) outcome: Outcome,
}

#[derive(Clone)]
pub(super) enum Outcome {
    Answered(Answered),
    /// Nothing was sent: the claim is given back.
    Unsent,
    /// Something may have been sent: the claim runs out, and then the attempt is repeated.
    Unknown,
}

impl Ended {
    fn answered(&self) -> Option<&Answered> {
        match &self.outcome {
            Outcome::Answered(answered) => Some(answered),
            Outcome::Unsent | Outcome::Unknown => None,
        }
    }

    /// What it was for the endpoint's line.
    pub(super) fn left(&self) -> Left {
        match &self.outcome {
            Outcome::Answered(Answered { error: None, latency_ms, .. }) => {
                Left::Acknowledged(Duration::from_millis(u64::try_from(*latency_ms).unwrap_or(u64::MAX)))
            }
            Outcome::Answered(_) | Outcome::Unknown => Left::Failed,
            Outcome::Unsent => Left::Unsent,
        }
    }

    /// Once its outcome is written.
    pub(super) fn count(&self) {
        let Some(answered) = self.answered() else { return };
        let outcome = match (&answered.error, self.status()) {
            (None, _) => "delivered",
            (Some(_), DeliveryStatus::DeadLetter) => "given_up",
            (Some(_), _) => "failed",
        };
        metrics::counter!("tenantry_webhook_attempts_total", "outcome" => outcome).increment(1);
        #[expect(clippy::cast_precision_loss, reason = "ten seconds in milliseconds")]
        metrics::histogram!("tenantry_webhook_attempt_seconds").record(answered.latency_ms as f64 / 1_000.0);
    }

    fn pause(&self) -> Option<Duration> {
        usize::try_from(self.claim.attempt - 1).ok().and_then(|index| PAUSES.get(index)).copied()
    }

    fn status(&self) -> DeliveryStatus {
        match (self.answered(), self.pause()) {
            (Some(Answered { error: None, .. }), _) => DeliveryStatus::Delivered,
            (_, Some(_)) => DeliveryStatus::Failed,
            (_, None) => DeliveryStatus::DeadLetter,
        }
    }
}

/// Only while the claim is held: whoever has it now will tell. The rows are named so that none is a column's.
const FINISH: &str = "UPDATE webhook_deliveries SET status = new_status, made = attempt, attempts = new_attempts, \
     response_code = new_code, last_error = new_error, next_attempt_at = new_due, finished_at = new_end, \
     delivered_at = CASE WHEN new_status = 'delivered' THEN new_end ELSE NULL END, \
     lease_owner = NULL, lease_until = NULL FROM {rows} \
     WHERE webhook_deliveries.id = row_id AND lease_owner = row_owner AND attempt = row_attempt RETURNING row_id";
/// Another may take it at once, under the same number.
const GIVE_BACK: &str =
    "UPDATE webhook_deliveries SET lease_owner = NULL, lease_until = NULL WHERE id = ANY($1) AND lease_owner = $2";

/// Writes down what became of attempts, in the order in which they ended, and gives back what was not sent.
pub(super) fn finish(tx: &mut Tx<'_>, tenancy: &Tenancy, owner: &str, ended: &[Ended]) -> Result<()> {
    let unsent = ended.iter().filter(|ended| matches!(ended.outcome, Outcome::Unsent));
    let unsent: Vec<DeliveryId> = unsent.map(|ended| ended.claim.id).collect();
    if !unsent.is_empty() {
        tx.run(GIVE_BACK, &args![unsent, owner])?;
    }
    let mut outcomes = Vec::new();
    for ended in ended {
        let Some(answered) = ended.answered() else { continue };
        let (claim, status) = (&ended.claim, ended.status());
        let due = (status == DeliveryStatus::Failed).then(|| ended.pause()).flatten();
        let end = (status != DeliveryStatus::Failed).then_some(ended.until);
        let mut attempts = claim.attempts.clone();
        attempts.push(Attempt {
            attempt: claim.attempt,
            at: ended.at,
            response_code: answered.response_code,
            error: answered.error.clone(),
            latency_ms: answered.latency_ms,
        });
        outcomes.push((
            claim.id,
            owner,
            claim.attempt,
            status,
            Json(attempts),
            answered.response_code,
            answered.error.as_deref(),
            due.map(|pause| ended.until.plus(pause)),
            end,
        ));
    }
    if outcomes.is_empty() {
        return Ok(());
    }
    let names = [
        "row_id",
        "row_owner",
        "row_attempt",
        "new_status",
        "new_attempts",
        "new_code",
        "new_error",
        "new_due",
        "new_end",
    ];
    let held: Vec<(DeliveryId,)> = tx.insert_all_returning(FINISH, names, &outcomes)?;
    let held: std::collections::HashSet<DeliveryId> = held.into_iter().map(|(id,)| id).collect();
    let over: Vec<(EndpointId, bool)> = ended
        .iter()
        .filter(|ended| held.contains(&ended.claim.id))
        .filter_map(|ended| match ended.status() {
            DeliveryStatus::Delivered => Some((ended.claim.endpoint, true)),
            DeliveryStatus::DeadLetter => Some((ended.claim.endpoint, false)),
            DeliveryStatus::Pending | DeliveryStatus::Failed => None,
        })
        .collect();
    for endpoint in endpoints::count_ended(tx, &over)? {
        let app = ended.iter().find(|ended| ended.claim.endpoint == endpoint).map(|ended| ended.claim.app);
        if let Some(app) = app {
            give_up(tx, tenancy, app, endpoint)?;
        }
    }
    Ok(())
}

/// Turns the endpoint off and tells those who run the app.
fn give_up(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, endpoint: EndpointId) -> Result<()> {
    if !endpoints::disable(tx, tenancy, app, endpoint)? {
        return Ok(());
    }
    let named = (!is_of_profile(endpoint, app)).then_some(endpoint);
    emit(tx, app, &EndpointGivenUp { endpoint_id: named })?;
    let what = named.map_or_else(|| "The webhook".to_owned(), |id| format!("The webhook endpoint {id}"));
    let alert = Alert {
        subject: "A webhook was disabled".into(),
        text: format!(
            "{what} was disabled because {} deliveries in a row could not be delivered.\n\nEvents are kept meanwhile. \
             Check the receiver, enable the webhook again, and send what was missed with \
             POST /admin/apps/{app}/webhook/recover.\n",
            endpoints::MOST_EXHAUSTED
        ),
    };
    let app = apps::get(tx, app)?;
    alerts::queue(tx, tenancy, &app, &alert).map(|_| ())
}
