//! `/realtime/…`: how to connect, a token for it, and the stream.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    callers::{AnyMember, UserCaller},
    standing::{self, Membership},
};
use web::{Describe, Failure, Json, Operation, Params, Routes, Scope, State, optional_header, required_header};

use super::{
    EVENTS, Listener,
    hub::Joined,
    resume::{LastSeen, missed},
    stream::EventStream,
    token::{LIFETIME, StreamClaims, refused},
};
use crate::Signals;

pub(crate) fn routes() -> Routes<Signals> {
    Routes::new("Realtime")
        .get("/realtime/config", config, "Get how to connect to the realtime channel")
        .post("/realtime/authorize", authorize, "Get a token that opens streams for an hour")
        .get("/realtime/stream", stream, "Listen to what changes, as server-sent events")
        .description(
            "Each event's `data` is `{ type, workspaceId, userId?, data, at }`. Signals about state carry an `id`; sent back as \
             `Last-Event-ID` it continues the stream for five minutes, and a `resync` says that more was missed.",
        )
        .answers(401, "The token is not valid, or its member or login is not any more")
        .answers(503, "Too many streams are open on this node, or of this app, or the node is stopping")
        .any_origin()
}

/// The app that `x-app-id` names.
struct NamedApp;

impl FromRequestParts<Signals> for NamedApp {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, signals: &Signals) -> Result<Self, Failure> {
        let named = required_header(&parts.headers, "x-app-id")?;
        let app = named.parse().ok().filter(|app| signals.tenancy.apps.has(*app));
        let app = app.ok_or_else(|| Error::not_found("app"))?;
        Scope::of(&parts.extensions).set_app(app);
        Ok(Self)
    }
}

impl Describe for NamedApp {
    fn describe(operation: &mut Operation) {
        operation.header("x-app-id", true, "The app").failure(404, "There is no such app");
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RealtimeConfig {
    /// Always `sse`.
    transport: &'static str,
    url: String,
    authorize_url: String,
    /// The types of what is told.
    events: [&'static str; 6],
    /// A comment is sent so often; without one for twice the time the connection is broken.
    heartbeat_seconds: u64,
}

async fn config(_: NamedApp, State(signals): State<Signals>) -> Result<Json<RealtimeConfig>> {
    let base = &signals.tenancy.base_url;
    Ok(Json(RealtimeConfig {
        transport: "sse",
        url: format!("{base}/v1/realtime/stream"),
        authorize_url: format!("{base}/v1/realtime/authorize"),
        events: EVENTS,
        heartbeat_seconds: signals.settings.heartbeat.as_secs(),
    }))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Authorized {
    token: String,
    /// `app:<id>`, `tenant:<id>` and `user:<id>`: whose signals a stream hears.
    channels: [String; 3],
    /// Seconds.
    expires_in: u64,
}

async fn authorize(
    UserCaller(user, _): UserCaller<AnyMember>,
    State(signals): State<Signals>,
) -> Result<Json<Authorized>> {
    let claims = StreamClaims::of(&user, signals.db.clock().now());
    Ok(Json(Authorized {
        token: claims.sign(&signals.tenancy.keyring)?,
        channels: [format!("app:{}", user.app()), format!("tenant:{}", user.tenant()), format!("user:{}", user.user())],
        expires_in: LIFETIME.as_secs(),
    }))
}

#[derive(Deserialize, JsonSchema)]
struct StreamQuery {
    token: String,
}

/// What the client has seen before.
struct Resumed(Option<LastSeen>);

impl FromRequestParts<Signals> for Resumed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Signals) -> Result<Self, Failure> {
        // One that cannot be read is as good as one that is too old.
        let given = optional_header(&parts.headers, "last-event-id").unwrap_or(Some(""));
        Ok(Self(given.map(LastSeen::parse)))
    }
}

impl Describe for Resumed {
    fn describe(operation: &mut Operation) {
        operation.header("last-event-id", false, "The `id` of the last event that was received");
    }
}

async fn stream(
    State(signals): State<Signals>,
    Resumed(seen): Resumed,
    Params(query): Params<StreamQuery>,
) -> Result<EventStream> {
    let claims = StreamClaims::verify(&query.token, &signals.tenancy.keyring, signals.db.clock())?;
    let membership = current(&signals, &claims).await?;
    let listener = Listener {
        app: claims.aid,
        tenant: claims.tid,
        user: claims.sub,
        role: membership.role,
        login: Arc::from(claims.sid.as_str()),
    };
    let seen = match seen {
        Some(seen) => Some(seen.checked(&signals.db).await?),
        None => None,
    };
    let after = match seen {
        Some(LastSeen::Position(position)) => position,
        Some(LastSeen::Unknown) | None => 0,
    };
    let Joined { place, frames, position } = signals.hub.join(listener.clone(), after)?;
    // Looked at again: what ended in between was not told to a stream that was not there yet.
    let membership = current(&signals, &claims).await?;
    let listener = Listener { role: membership.role, ..listener };
    place.is_now(&listener);
    let missed = match seen {
        Some(seen) => missed(&signals.db, &listener, seen, position).await?,
        None => Vec::new(),
    };
    Ok(EventStream::new(missed, frames, signals.settings.heartbeat, Some(place)))
}

/// 401 unless the member and the login still count.
async fn current(signals: &Signals, claims: &StreamClaims) -> Result<Membership> {
    let membership = standing::membership(&signals.db, claims.signed_in_as()).await?;
    let app = signals.tenancy.apps.find(claims.aid).await?;
    membership.filter(|_| app.is_some()).ok_or_else(refused)
}
