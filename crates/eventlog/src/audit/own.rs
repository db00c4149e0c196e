//! From facts to entries. One reader of the outbox writes each fact into its app's log in the transaction that moves its
//! cursor, so that there is an entry if and only if the change committed.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{ActorKind, AppId, Error, Result};
use serde_json::{Map, Value};
use spine::{
    Fact, Signal,
    outbox::{audit_entry, webhook_event},
};
use store::Tx;
use tenancy::apps::{self, EVENTS};

use super::chain;
use crate::{
    ingest::{ArrivedEvent, OWN_SOURCE, keep},
    keeping,
    names::{self, OWN_PREFIX},
};

/// Writes facts down. `due` is rung once there is something to fold, `erasures` once there is something to erase.
pub(crate) fn consume(tx: &mut Tx<'_>, due: &Signal, erasures: &Signal, facts: &[Fact]) -> Result<()> {
    let mut of_apps: BTreeMap<AppId, Vec<&Fact>> = BTreeMap::new();
    for fact in facts {
        if let Some(app) = fact.app {
            of_apps.entry(app).or_default().push(fact);
        }
    }
    for (app, facts) in of_apps {
        // What is told of a deleted app goes with it.
        if apps::exists(tx, app)? {
            write_down(tx, app, &facts)?;
            facts.iter().try_for_each(|fact| keeping::release(tx, erasures, app, fact))?;
        }
    }
    let due = due.clone();
    tx.on_commit(move || due.wake());
    Ok(())
}

fn write_down(tx: &mut Tx<'_>, app: AppId, facts: &[&Fact]) -> Result<()> {
    let named: BTreeSet<String> = facts.iter().map(|fact| format!("{OWN_PREFIX}{}", fact.kind)).collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    names::register(tx, app, &named)?;
    let mut events = Vec::with_capacity(facts.len());
    for fact in facts {
        events.push(ArrivedEvent {
            id: audit_entry(fact.id),
            name: format!("{OWN_PREFIX}{}", fact.kind),
            at: fact.at.as_micros(),
            source: Some(OWN_SOURCE.to_owned()),
            ingest_id: None,
            tenant: fact.tenant,
            parameters: serde_json::to_string(&parameters(fact)).map_err(Error::internal)?,
        });
    }
    chain::append(tx, app, &events)?;
    keep(tx, app, &events)
}

/// Who, from where, in which workspace, and what the fact says.
fn parameters(fact: &Fact) -> Map<String, Value> {
    let actor = &fact.author.actor;
    let mut parameters = Map::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            parameters.insert(name.to_owned(), value.into());
        }
    };
    put("actorType", serde_json::to_value(actor.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)));
    put("actorId", Some(actor.id.clone()));
    put("actorName", actor.name.clone());
    put("requestId", fact.author.request.clone());
    put("ip", fact.author.address.map(|address| address.to_string()));
    put("workspaceId", fact.tenant.map(|tenant| tenant.to_string()));
    let published = !fact.quiet && EVENTS.contains(&fact.kind.as_str());
    // No identifier by its name: nobody follows it from event to event.
    put("webhookEvent", published.then(|| webhook_event(fact.id).to_string()));
    let Value::Object(members) = &fact.data else { return parameters };
    let person_acted = acted(fact, members);
    for (name, value) in members {
        let name = match name.as_str() {
            "userId" if !person_acted => "targetUserId",
            "email" if !person_acted => "targetEmail",
            name => name,
        };
        parameters.insert(name.to_owned(), value.clone());
    }
    parameters
}

/// Whether the person that a fact is about did it themselves.
fn acted(fact: &Fact, members: &Map<String, Value>) -> bool {
    let actor = &fact.author.actor;
    if actor.kind != ActorKind::User {
        return false;
    }
    match members.get("userId").and_then(Value::as_str) {
        Some(person) => person == actor.id,
        None => actor.email.is_some() && members.get("email").and_then(Value::as_str) == actor.email.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Actor, AppId, Author, TenantId, Timestamp, UserId};
    use serde_json::json;
    use spine::FactId;

    use super::*;

    fn fact(actor: Actor, data: Value) -> Fact {
        Fact {
            id: FactId::from_u128(1),
            position: 1,
            kind: "member.changed".to_owned(),
            app: Some(AppId::from_u128(1)),
            tenant: Some(TenantId::from_u128(2)),
            data,
            at: Timestamp::from_seconds(0),
            author: Author { actor, address: "192.0.2.1".parse().ok(), request: Some("req_1".to_owned()) },
            quiet: false,
        }
    }

    #[test]
    fn a_person_is_named_as_such_only_where_they_acted() {
        let (ada, bob) = (UserId::from_u128(1), UserId::from_u128(2));
        let data = json!({ "userId": ada, "email": "ada@example.com", "roles": ["x"] });
        let own = parameters(&fact(Actor::user(ada), data.clone()));
        assert_eq!((&own["userId"], &own["email"]), (&json!(ada), &json!("ada@example.com")));
        let others = parameters(&fact(Actor::user(bob), data.clone()));
        assert_eq!((&others["targetUserId"], &others["targetEmail"]), (&json!(ada), &json!("ada@example.com")));
        assert!(!others.contains_key("userId") && !others.contains_key("email"));
        let by_key = parameters(&fact(Actor::operator_key(Some("Ada".to_owned())), data));
        assert_eq!((&by_key["actorId"], &by_key["actorType"]), (&json!("operator"), &json!("operator_key")));
        assert_eq!((&by_key["ip"], &by_key["requestId"]), (&json!("192.0.2.1"), &json!("req_1")));
        assert_eq!((&by_key["workspaceId"], &by_key["roles"]), (&json!(TenantId::from_u128(2)), &json!(["x"])));
    }
}
