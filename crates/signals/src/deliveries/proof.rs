//! Proof that no event was forgotten: the facts that the outbox still holds are read again, and each that an endpoint takes
//! must have its delivery.

use std::collections::{BTreeMap, HashMap, HashSet};

use ::store::{Tx, args};
use kernel::{AppId, Result};
use spine::{Fact, outbox};

use super::{DeliveryId, consumer::Change};
use crate::{
    endpoints::{self, EndpointId, Target},
    events::EventDefinition,
    facts::{CONSUMED, CONSUMER},
};

/// Facts that are looked at, the newest ones.
const MOST: i64 = 20_000;
/// How far apart the clocks of nodes may be, in milliseconds.
const CLOCKS: u128 = 600_000;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Deliveries that there had to be.
    pub expected: usize,
    pub missing: Vec<Undelivered>,
}

/// An event without its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Undelivered {
    pub app: AppId,
    pub endpoint: EndpointId,
    /// The fact's, in the outbox.
    pub position: i64,
}

/// Compares facts with deliveries, in a snapshot.
pub fn prove(tx: &mut Tx<'_>) -> Result<Proof> {
    let facts = outbox::passed_by(tx, CONSUMER.name, &CONSUMED, MOST)?;
    let mut of_apps: BTreeMap<AppId, Vec<&Fact>> = BTreeMap::new();
    for fact in &facts {
        if let Some(app) = fact.app {
            of_apps.entry(app).or_default().push(fact);
        }
    }
    let mut proof = Proof::default();
    for (app, facts) in of_apps {
        let targets = endpoints::of_app(tx, app)?;
        let expected = expected(app, &facts, targets)?;
        if let (false, Some(first)) = (expected.is_empty(), facts.first()) {
            let made = made_since(tx, app, first)?;
            proof.expected += expected.len();
            proof.missing.extend(expected.into_iter().filter(|one| !made.contains(&(one.endpoint, one.position))));
        }
    }
    Ok(proof)
}

/// The deliveries that an app's facts must have. Where an endpoint pointed before the first change that is known is not
/// known, unless nothing changed.
fn expected(app: AppId, facts: &[&Fact], now: Vec<Target>) -> Result<Vec<Undelivered>> {
    let changes = facts.iter().map(|fact| Change::read(fact, app)).collect::<Result<Vec<_>>>()?;
    let changed: HashSet<EndpointId> = changes
        .iter()
        .filter_map(|change| match change {
            Some(Change::Applies(target)) => Some(target.endpoint),
            Some(Change::Deleted(endpoint)) => Some(*endpoint),
            Some(Change::AppDeleted) | None => None,
        })
        .collect();
    let unchanged = now.into_iter().filter(|target| !changed.contains(&target.endpoint));
    let mut targets: HashMap<EndpointId, Target> = unchanged.map(|target| (target.endpoint, target)).collect();
    let mut expected = Vec::new();
    for (fact, change) in facts.iter().zip(changes) {
        match change {
            Some(Change::Applies(target)) => {
                targets.insert(target.endpoint, target);
            }
            Some(Change::Deleted(endpoint)) => {
                targets.remove(&endpoint);
                expected.retain(|one: &Undelivered| one.endpoint != endpoint);
            }
            // Its deliveries go with it.
            Some(Change::AppDeleted) => return Ok(Vec::new()),
            None if fact.quiet || EventDefinition::find(&fact.kind).is_none() => {}
            None => {
                let taking = targets.values().filter(|target| target.url.is_some() && target.takes(&fact.kind));
                expected.extend(taking.map(|to| Undelivered { app, endpoint: to.endpoint, position: fact.position }));
            }
        }
    }
    Ok(expected)
}

/// Endpoint and position of the deliveries that can be of a fact or of later ones. Ids begin with the time.
fn made_since(tx: &mut Tx<'_>, app: AppId, first: &Fact) -> Result<HashSet<(EndpointId, i64)>> {
    let millis = (first.id.as_u128() >> 80).saturating_sub(CLOCKS);
    let oldest = DeliveryId::from_u128(millis << 80);
    let made: Vec<(EndpointId, i64)> = tx.all(
        "SELECT endpoint_id, position FROM webhook_deliveries WHERE app_id = $1 AND id >= $2",
        &args![app, oldest],
    )?;
    Ok(made.into_iter().collect())
}
