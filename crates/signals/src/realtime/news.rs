//! From facts to signals: what each means for the streams.

use kernel::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use spine::{Fact, FactKind as _, News, Reader};
use tenancy::facts::{
    AppDeleted, LoginEnded, MemberData, PersonRemoved, PrivilegeChanged, RoleChanged, SessionsEnded, TenantDeleted,
    TenantUpdated, TenantUserDeleted, TenantUserUpdated,
};

use super::{Audience, Hub, Listener, Signal};

/// Those that become a signal.
pub(super) const TOLD: &[&str] = &[
    TenantUserUpdated::KIND,
    RoleChanged::KIND,
    PrivilegeChanged::KIND,
    TenantUpdated::KIND,
    "flags.changed",
    "entitlements.changed",
    "subscription.created",
    "subscription.plan_changed",
    "subscription.trial_started",
    "subscription.trial_ended",
    "subscription.past_due",
    "subscription.reactivated",
    "subscription.canceled",
];

/// Keeps the streams of this node in step with what any node commits. It hears all facts: their positions are the streams'.
pub(crate) const FOLLOWER: Reader = Reader::of_all("realtime");

/// What the streams are told of a fact.
pub(super) fn signals_of(fact: &Fact) -> Vec<Signal> {
    let Some(app) = fact.app else { return Vec::new() };
    let signal = |name: &'static str, audience: Audience, data: Value| Signal {
        id: fact.position,
        name,
        app,
        audience,
        data,
        at: fact.at,
    };
    let changed =
        |audience: Audience, reason: &str| vec![signal("user.state_changed", audience, json!({ "reason": reason }))];
    match (fact.kind.as_str(), fact.tenant) {
        (TenantUserUpdated::KIND, _) => match MemberData::deserialize(&fact.data) {
            Ok(member) => changed(Audience::Member(member.workspace_id, member.user_id), "member"),
            Err(_) => Vec::new(),
        },
        (RoleChanged::KIND, _) => match fact.data["key"].as_str() {
            Some(role) => changed(Audience::Role(role.to_owned()), "role"),
            None => Vec::new(),
        },
        // Which roles had it is not told.
        (PrivilegeChanged::KIND, _) if fact.data["change"] != "created" => changed(Audience::App, "role"),
        (TenantUpdated::KIND, Some(tenant)) => changed(Audience::Workspace(tenant), "workspace"),
        ("flags.changed", _) => vec![signal("flags.changed", Audience::App, fact.data.clone())],
        ("entitlements.changed", Some(tenant)) => {
            vec![signal("entitlements.changed", Audience::Workspace(tenant), fact.data.clone())]
        }
        (kind, Some(tenant)) if kind.starts_with("subscription.") && TOLD.contains(&kind) => {
            changed(Audience::Workspace(tenant), "plan")
        }
        _ => Vec::new(),
    }
}

/// Tells the streams of this node, and ends those whose time is over.
pub(crate) fn hear(hub: &Hub, news: News<'_>) {
    let News::Fact(fact) = news else {
        // They come back by id, and are told to read everything.
        return hub.end_all();
    };
    hub.tell(fact.position, &signals_of(fact));
    if let Err(error) = end(hub, fact) {
        // What cannot be read might have ended any of them.
        tracing::warn!(kind = fact.kind, ?error, "a fact could not be read; all streams are ended");
        hub.end_all();
    }
}

fn end(hub: &Hub, fact: &Fact) -> Result<()> {
    let Some(app) = fact.app else { return Ok(()) };
    if let Some(TenantUserUpdated(member)) = fact.read()? {
        hub.end_if(app, |listener| {
            let is_theirs = is_of(listener, &member);
            if is_theirs {
                listener.role.clone_from(&member.role);
            }
            is_theirs && !member.enabled
        });
    } else if let Some(TenantUserDeleted(member)) = fact.read()? {
        hub.end_if(app, |listener| is_of(listener, &member));
    } else if let Some(LoginEnded { session_id, .. }) = fact.read()? {
        let login = session_id.to_string();
        hub.end_if(app, |listener| *listener.login == *login);
    } else if let Some(SessionsEnded { user_id }) = fact.read()? {
        hub.end_if(app, |listener| listener.user == user_id);
    } else if let Some(PersonRemoved { user_id }) = fact.read()? {
        hub.end_if(app, |listener| listener.user == user_id);
    } else if fact.is::<TenantDeleted>() {
        hub.end_if(app, |listener| Some(listener.tenant) == fact.tenant);
    } else if fact.is::<AppDeleted>() {
        hub.end_if(app, |_| true);
    } else if let Some(identity::facts::SignedOut { user_id }) = fact.read()? {
        // Which logins came from that browser is not told. Those that still count come back.
        hub.end_if(app, |listener| listener.user == user_id);
    }
    Ok(())
}

fn is_of(listener: &Listener, member: &MemberData) -> bool {
    listener.tenant == member.workspace_id && listener.user == member.user_id
}
