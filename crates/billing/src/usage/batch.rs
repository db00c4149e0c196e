//! `POST /usage/ingest/batch`: many events, of one workspace or, by a key of the whole app, of many.

use std::collections::HashSet;

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use kernel::{AppId, Error, FieldProblem, Result, TenantId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{LONGEST_LIST, Tx};
use tenancy::{
    Tenancy,
    callers::{AnyMember, KeyCaller, TenantWrite, UserOrKey},
    workspaces,
};
use web::{Access, Created, Describe, Failure, MediaType, Operation, RawBody, State, Validate, from_json, not_json};

use super::{
    UsageRow,
    http::{IngestAnswer, WantsRepresentation, may_record, row},
    rules::{BatchedUsage, NewUsage},
};
use crate::Billing;

/// Whose events a batch has.
pub enum Metered {
    /// Those of one workspace.
    Workspace(UserOrKey<AnyMember, TenantWrite>),
    /// Those of an app's workspaces, each entry naming its own.
    App(AppId),
}

impl<S: AsRef<Tenancy> + Send + Sync> FromRequestParts<S> for Metered {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        if parts.headers.contains_key("x-api-key") && !parts.headers.contains_key("x-tenant-id") {
            let caller = KeyCaller::<TenantWrite>::from_request_parts(parts, state).await?;
            if caller.scoped_to().is_none() {
                return Ok(Self::App(caller.app_id()));
            }
        }
        Ok(Self::Workspace(UserOrKey::from_request_parts(parts, state).await?))
    }
}

impl Describe for Metered {
    fn describe(operation: &mut Operation) {
        operation.access(Access::UserOrKey { permission: None, privilege: Some("TENANT_WRITE") });
        operation.failure(404, "There is no such workspace here");
    }
}

/// The entries of a batch, not looked at yet.
pub struct Entries(Vec<Value>);

/// For the documentation only.
#[derive(JsonSchema)]
#[schemars(rename = "UsageBatch")]
#[expect(dead_code, reason = "names the form in the schema")]
struct BatchBody {
    #[schemars(length(min = 1, max = LONGEST_LIST))]
    events: Vec<BatchedUsage>,
}

impl<S: Sync> FromRequest<S> for Entries {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        if !matches!(MediaType::of(request.headers()), MediaType::Json) {
            return Err(not_json().into());
        }
        let RawBody(body) = RawBody::from_request(request, state).await?;
        let entries = match from_json::<AnyJson>(&body)?.0 {
            Value::Array(entries) => entries,
            Value::Object(mut members) => match members.remove("events") {
                Some(Value::Array(entries)) => entries,
                _ => return Err(Error::invalid("events", "must be a list of 1 to 1,000 events").into()),
            },
            _ => return Err(Error::invalid("body", "must be a list of events, or an object with `events`").into()),
        };
        if entries.is_empty() || entries.len() > LONGEST_LIST {
            return Err(Error::invalid("events", "must be a list of 1 to 1,000 events").into());
        }
        Ok(Self(entries))
    }
}

impl Describe for Entries {
    fn describe(operation: &mut Operation) {
        operation.body::<BatchBody>();
    }
}

/// Whatever JSON comes.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct AnyJson(Value);

impl Validate for AnyJson {}

#[derive(Serialize, JsonSchema)]
pub struct BatchAnswer {
    /// In the order of the events.
    results: Vec<EntryAnswer>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum EntryAnswer {
    Stored(Box<IngestAnswer>),
    Refused { error: EntryError },
}

/// What was wrong with one entry.
#[derive(Serialize, JsonSchema)]
pub struct EntryError {
    error: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<EntryProblem>,
}

#[derive(Serialize, JsonSchema)]
pub struct EntryProblem {
    field: String,
    message: String,
}

impl From<&Error> for EntryError {
    fn from(error: &Error) -> Self {
        let problem =
            |problem: &FieldProblem| EntryProblem { field: problem.field.clone(), message: problem.message.clone() };
        Self {
            error: error.code().as_str(),
            message: error.public().to_owned(),
            details: error.details().iter().map(problem).collect(),
        }
    }
}

pub(super) async fn ingest_batch(
    caller: Metered,
    State(billing): State<Billing>,
    WantsRepresentation(represent): WantsRepresentation,
    Entries(entries): Entries,
) -> Result<Created<BatchAnswer>> {
    if let Metered::Workspace(caller) = &caller {
        may_record(&billing, caller).await?;
    }
    let rows: Vec<Result<UsageRow>> = entries.iter().map(|entry| read(&caller, &billing, entry, represent)).collect();
    let rows = known(&billing, &caller, rows).await?;
    let right: Vec<UsageRow> = rows.iter().filter_map(|row| row.as_ref().ok()).cloned().collect();
    let mut stored = billing.usage.store_list(right).await?.into_iter();
    let mut results = Vec::with_capacity(rows.len());
    for row in rows {
        let outcome = match row {
            Ok(_) => stored.next().unwrap_or_else(|| Err(Error::internal("an event without an answer"))),
            Err(error) => Err(error),
        };
        results.push(match outcome {
            Ok(recorded) => EntryAnswer::Stored(Box::new(billing.tell(recorded).into())),
            Err(error) => EntryAnswer::Refused { error: (&error).into() },
        });
    }
    Ok(Created(BatchAnswer { results }))
}

fn read(caller: &Metered, billing: &Billing, entry: &Value, represent: bool) -> Result<UsageRow> {
    let bytes = serde_json::to_vec(entry).map_err(Error::internal)?;
    let BatchedUsage { metric, value, idempotency_key, timestamp, workspace_id } = from_json(&bytes)?;
    let owner = match caller {
        Metered::Workspace(caller) => (caller.app_id(), caller.tenant()),
        Metered::App(app) => {
            (*app, workspace_id.ok_or_else(|| Error::invalid("workspaceId", "is required without x-tenant-id"))?)
        }
    };
    let new = NewUsage { metric, value, idempotency_key, timestamp };
    row(owner, new, billing.tenancy.db.clock().now(), represent)
}

/// Refuses the entries of workspaces that the app does not have.
async fn known(billing: &Billing, caller: &Metered, rows: Vec<Result<UsageRow>>) -> Result<Vec<Result<UsageRow>>> {
    let Metered::App(app) = *caller else { return Ok(rows) };
    let named: HashSet<TenantId> = rows.iter().filter_map(|row| row.as_ref().ok()).map(|row| row.tenant).collect();
    let named: Vec<TenantId> = named.into_iter().collect();
    let read = move |tx: &mut Tx<'_>| workspaces::existing(tx, app, &named);
    let known: HashSet<TenantId> = billing.tenancy.db.read(read).await?.into_iter().collect();
    let judge = |row: Result<UsageRow>| {
        row.and_then(|row| if known.contains(&row.tenant) { Ok(row) } else { Err(Error::not_found("workspace")) })
    };
    Ok(rows.into_iter().map(judge).collect())
}
