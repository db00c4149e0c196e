//! Repeating a delivery: the same event under a new id, to where its endpoint points now.

use ::store::Tx;
use kernel::{AppId, Error, Result, TenantId};
use spine::{Signal, emit};

use super::{DeliveryId, DeliveryRow, Unsent, delivery_of, store};
use crate::{
    endpoints,
    events::{ReplayedEventId, renamed},
    facts::DeliveryReplayed,
};

/// Repeats a delivery of the app, or of one workspace of it. 409 where there is nothing to send to.
pub(super) fn replay(
    tx: &mut Tx<'_>,
    due: &Signal,
    app: AppId,
    within: Option<TenantId>,
    id: DeliveryId,
) -> Result<DeliveryId> {
    let seen = |delivery: &DeliveryRow| within.is_none() || delivery.tenant == within;
    let delivery = delivery_of(tx, app, id)?.filter(seen).ok_or_else(|| Error::not_found("delivery"))?;
    let url = endpoints::current_url(tx, app, delivery.endpoint)?;
    let replay_id = again(tx, &delivery, &url)?;
    emit(tx, (app, delivery.tenant), &DeliveryReplayed { delivery_id: id, replay_id })?;
    let due = due.clone();
    tx.on_commit(move || due.wake());
    Ok(replay_id)
}

/// A new delivery of the same event.
pub(super) fn again(tx: &mut Tx<'_>, delivery: &DeliveryRow, url: &str) -> Result<DeliveryId> {
    let event: ReplayedEventId = tx.new_id();
    let event_id = event.to_string();
    let payload = renamed(&delivery.payload, &event_id)?;
    let unsent = Unsent {
        app: delivery.app,
        tenant: delivery.tenant,
        endpoint: delivery.endpoint,
        due: true,
        event_id,
        event_type: &delivery.event_type,
        position: delivery.position,
        fact: delivery.fact,
        target_url: url.to_owned(),
        payload,
    };
    let [replay] = store::insert(tx, &[unsent])?[..] else { return Err(Error::internal("one delivery")) };
    store::note_replay(tx, delivery.app, delivery.id, replay)?;
    Ok(replay)
}
