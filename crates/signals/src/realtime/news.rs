//! From facts to signals: what each means for the streams.

use billing::facts::{
    EntitlementsChanged, SubscriptionCanceled, SubscriptionCreated, SubscriptionPastDue, SubscriptionPlanChanged,
    SubscriptionReactivated, SubscriptionTrialEnded, SubscriptionTrialStarted, SubscriptionUpdated,
};
use serde::Deserialize;
use serde_json::{Value, json};
use spine::{Fact, FactKind as _, News, Reader};
use store::Db;
use tenancy::facts::{
    AppChanged, AppCredentialsChanged, MemberData, PrivilegeChanged, RoleChanged, TenantUpdated, TenantUserUpdated,
};

use super::{Audience, Hub, Signal, endings};

/// Those that become a signal.
pub(super) const TOLD: &[&str] = &[
    TenantUserUpdated::KIND,
    RoleChanged::KIND,
    PrivilegeChanged::KIND,
    TenantUpdated::KIND,
    FLAGS_CHANGED,
    EntitlementsChanged::KIND,
    SubscriptionCreated::KIND,
    SubscriptionPlanChanged::KIND,
    SubscriptionTrialStarted::KIND,
    SubscriptionTrialEnded::KIND,
    SubscriptionPastDue::KIND,
    SubscriptionReactivated::KIND,
    SubscriptionCanceled::KIND,
    SubscriptionUpdated::KIND,
    AppChanged::KIND,
    AppCredentialsChanged::KIND,
];
/// Of a room that this one does not know.
const FLAGS_CHANGED: &str = "flags.changed";

/// Keeps the streams of this node in step with what any node commits. It hears all facts: their positions are the streams'.
pub(crate) const FOLLOWER: Reader = Reader::of_all("realtime");

/// What the streams are told of a fact.
pub(super) fn signals_of(fact: &Fact) -> Vec<Signal> {
    let Some(app) = fact.app else { return Vec::new() };
    let signal = |name: &'static str, audience: Audience, data: Value| Signal {
        id: Some(fact.position),
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
        (RoleChanged::KIND, _) => match fact.read() {
            Ok(Some(RoleChanged { key, former_key, .. })) => {
                changed(Audience::Role { key, former: former_key }, "role")
            }
            _ => Vec::new(),
        },
        // Whether somebody is paid decides what tokens say of payments that are missing.
        (AppChanged::KIND | AppCredentialsChanged::KIND, _) if switches_provider(fact) => {
            changed(Audience::App, "plan")
        }
        // Which roles had it is not told.
        (PrivilegeChanged::KIND, _) if fact.data["change"] != "created" => changed(Audience::App, "role"),
        (TenantUpdated::KIND, Some(tenant)) => changed(Audience::Workspace(tenant), "workspace"),
        (FLAGS_CHANGED, _) => vec![signal(FLAGS_CHANGED, Audience::App, fact.data.clone())],
        (EntitlementsChanged::KIND, Some(tenant)) => {
            vec![signal(EntitlementsChanged::KIND, Audience::Workspace(tenant), fact.data.clone())]
        }
        (kind, Some(tenant)) if kind.starts_with("subscription.") && TOLD.contains(&kind) => {
            changed(Audience::Workspace(tenant), "plan")
        }
        _ => Vec::new(),
    }
}

/// Whether the app has another way to be paid, or none any more.
fn switches_provider(fact: &Fact) -> bool {
    if let Ok(Some(AppChanged { settings })) = fact.read() {
        return settings.iter().any(|setting| setting == "payproviderEnabled");
    }
    match fact.read() {
        Ok(Some(AppCredentialsChanged { names })) => names.iter().any(|name| name == "payproviderSecretKey"),
        _ => false,
    }
}

/// Tells the streams of this node, and ends those whose time is over.
pub(crate) fn hear(hub: &Hub, db: &Db, news: News<'_>) {
    let News::Fact(fact) = news else {
        // They come back by id, and are told to read everything.
        return hub.end_all();
    };
    hub.tell(fact.position, &signals_of(fact));
    if let Err(error) = endings::hear(hub, db, fact) {
        // What cannot be read might have ended any of them.
        tracing::warn!(kind = fact.kind, ?error, "a fact could not be read; all streams are ended");
        hub.end_all();
    }
}
