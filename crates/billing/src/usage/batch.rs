//! `POST /usage/ingest/batch`: many events, of one workspace or, by a key of the whole app, of many.

use std::collections::HashSet;

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{AppId, Code, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::{LONGEST_LIST, Tx};
use tenancy::{
    Tenancy,
    callers::{AnyMember, KeyCaller, TenantWrite, UserOrKey},
    workspaces,
};
use web::{Access, Created, Describe, Entries, EntryError, Failure, Operation, State, from_value};

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

/// For the documentation only.
#[derive(JsonSchema)]
#[schemars(rename = "UsageBatch")]
#[expect(dead_code, reason = "names the form in the schema")]
pub(super) struct BatchBody {
    #[schemars(length(min = 1, max = LONGEST_LIST))]
    events: Vec<BatchedUsage>,
}

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

pub(super) async fn ingest_batch(
    caller: Metered,
    State(billing): State<Billing>,
    WantsRepresentation(represent): WantsRepresentation,
    Entries(entries, _): Entries<BatchBody>,
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
    let BatchedUsage { metric, value, idempotency_key, timestamp, workspace_id } = from_value(entry)?;
    let owner = match caller {
        Metered::Workspace(UserOrKey::Key(key)) if workspace_id.is_some_and(|named| named != key.tenant()) => {
            return Err(Error::new(Code::Forbidden, "workspaceId does not match the workspace of the request."));
        }
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
