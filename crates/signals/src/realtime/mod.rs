//! The realtime channel: server-sent events that tell a member's app when to look again.
//!
//! Signals about state come from facts, through a follower on every node, and carry the fact's position as their id: a
//! stream that was cut off goes on behind the last one it has seen, on any node. A stream ends as soon as its member is
//! disabled or removed, or its login is over.

mod endings;
mod http;
mod hub;
mod news;
mod resume;
mod stream;
mod token;
mod usage;

use std::sync::Arc;

use bytes::Bytes;
use kernel::{AppId, Result, TenantId, Timestamp, UserId};
use serde::Serialize;
use serde_json::Value;
use tenancy::standing::SignedInAs;

pub(crate) use http::routes;
pub(crate) use hub::Hub;
pub(crate) use news::{FOLLOWER, hear};
pub(crate) use stream::EventStream;
pub(crate) use usage::tell_usage;

/// What streams tell.
pub const EVENTS: [&str; 6] =
    ["user.state_changed", "entitlements.changed", "quota.updated", "usage.recorded", "flags.changed", RESYNC];
/// More was missed than can be told: read the state again.
const RESYNC: &str = "resync";

/// Who hears a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    App,
    Workspace(TenantId),
    Member(TenantId, UserId),
    /// The members who have a role, by its key and the one that it had before.
    Role {
        key: String,
        former: Option<String>,
    },
}

/// Something that streams are told.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    /// The position of its fact; none of what may be lost.
    pub(crate) id: Option<i64>,
    pub(crate) name: &'static str,
    pub(crate) app: AppId,
    pub(crate) audience: Audience,
    pub(crate) data: Value,
    pub(crate) at: Timestamp,
}

/// Whose stream it is.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) app: AppId,
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    /// The role's key.
    pub(crate) role: String,
    /// The `sid` of the login.
    pub(crate) login: Arc<str>,
}

impl Listener {
    fn signed_in_as(&self) -> SignedInAs<'_> {
        SignedInAs { app: self.app, tenant: self.tenant, user: self.user, login: &self.login }
    }
}

impl Signal {
    pub(crate) fn is_for(&self, listener: &Listener) -> bool {
        self.app == listener.app
            && match &self.audience {
                Audience::App => true,
                Audience::Workspace(tenant) => *tenant == listener.tenant,
                Audience::Member(tenant, user) => *tenant == listener.tenant && *user == listener.user,
                Audience::Role { key, former } => *key == listener.role || former.as_ref() == Some(&listener.role),
            }
    }

    /// As it goes over the wire to streams of this workspace.
    pub(crate) fn to_frame(&self, workspace: TenantId) -> Result<Bytes> {
        let user = match self.audience {
            Audience::Member(_, user) => Some(user),
            _ => None,
        };
        let message =
            Message { name: self.name, workspace_id: workspace, user_id: user, data: &self.data, at: self.at };
        frame(self.id, &message)
    }
}

/// What a stream begins with when more was missed than can be told.
pub(crate) fn resync(workspace: TenantId, at: Timestamp) -> Result<Bytes> {
    let nothing = Value::Object(serde_json::Map::new());
    frame(None, &Message { name: RESYNC, workspace_id: workspace, user_id: None, data: &nothing, at })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    workspace_id: TenantId,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    data: &'a Value,
    at: Timestamp,
}

/// Fields `data` and, where it can be resumed, `id`. JSON has no line breaks of its own, so one line holds it.
fn frame(id: Option<i64>, message: &Message<'_>) -> Result<Bytes> {
    let data = serde_json::to_string(message).map_err(kernel::Error::internal)?;
    Ok(Bytes::from(match id {
        Some(id) => format!("id: {id}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }))
}
