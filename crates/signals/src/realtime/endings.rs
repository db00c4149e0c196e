//! Which streams end. What a fact says about a member or a login may be out of date by the time it is heard: somebody
//! can have been enabled again, and a stream opened since. So the streams it is about are checked again, and those end
//! whose member or login does not count now. A workspace or an app that was deleted does not come back.

use kernel::Result;
use spine::Fact;
use store::Db;
use tenancy::{
    facts::{
        AppDeleted, LoginEnded, MemberData, PersonRemoved, RoleChanged, SessionsEnded, TenantDeleted,
        TenantUserDeleted, TenantUserUpdated,
    },
    standing,
};

use super::{Hub, Listener, hub::Doubted};

/// Ends the streams that a fact ends.
pub(super) fn hear(hub: &Hub, db: &Db, fact: &Fact) -> Result<()> {
    let Some(app) = fact.app else { return Ok(()) };
    if fact.is::<AppDeleted>() {
        hub.end_if(app, |_| true);
        return Ok(());
    }
    if fact.is::<TenantDeleted>() {
        hub.end_if(app, |listener| Some(listener.tenant) == fact.tenant);
        return Ok(());
    }
    for doubted in doubted(hub, fact)? {
        tokio::spawn(check(hub.clone(), db.clone(), doubted));
    }
    Ok(())
}

/// The streams whose member or login a fact is about.
fn doubted(hub: &Hub, fact: &Fact) -> Result<Vec<Doubted>> {
    let Some(app) = fact.app else { return Ok(Vec::new()) };
    Ok(if let Some(TenantUserUpdated(member)) = fact.read()? {
        hub.doubt(app, |listener| {
            let is_theirs = is_of(listener, &member);
            if is_theirs {
                listener.role.clone_from(&member.role);
            }
            is_theirs && !member.enabled
        })
    } else if let Some(RoleChanged { key, former_key: Some(former), .. }) = fact.read()? {
        hub.doubt(app, |listener| {
            if listener.role == former {
                listener.role.clone_from(&key);
            }
            false
        })
    } else if let Some(TenantUserDeleted(member)) = fact.read()? {
        hub.doubt(app, |listener| is_of(listener, &member))
    } else if let Some(LoginEnded { session_id, .. }) = fact.read()? {
        let login = session_id.to_string();
        hub.doubt(app, |listener| *listener.login == *login)
    } else if let Some(SessionsEnded { user_id }) = fact.read()? {
        hub.doubt(app, |listener| listener.user == user_id)
    } else if let Some(PersonRemoved { user_id }) = fact.read()? {
        hub.doubt(app, |listener| listener.user == user_id)
    } else if let Some(identity::facts::SignedOut { user_id }) = fact.read()? {
        // Which logins came from that browser is not told.
        hub.doubt(app, |listener| listener.user == user_id)
    } else {
        Vec::new()
    })
}

fn is_of(listener: &Listener, member: &MemberData) -> bool {
    listener.tenant == member.workspace_id && listener.user == member.user_id
}

async fn check(hub: Hub, db: Db, doubted: Doubted) {
    match standing::membership(&db, doubted.listener.signed_in_as()).await {
        Ok(Some(_)) => {}
        Ok(None) => hub.end(&doubted),
        Err(error) => {
            // The client comes back, and is checked then.
            tracing::warn!(?error, "a stream is ended because its login could not be checked");
            hub.end(&doubted);
        }
    }
}
