//! What a fact is.

use kernel::{Actor, AppId, Author, Error, Result, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use store::{FromRow, Row};

id_kinds! {
    /// One entry of the outbox.
    FactId(FactEntry) = "fact";
}

/// The content of facts of one kind. Declared with [`facts!`](crate::facts), which also registers it.
pub trait FactKind: Serialize + DeserializeOwned + JsonSchema {
    /// `noun.verbed`: "app.created".
    const KIND: &'static str;
}

/// What a fact belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactScope {
    Installation,
    App(AppId),
    Workspace(AppId, TenantId),
}

/// The scope of facts of no app.
#[derive(Clone, Copy, Debug)]
pub struct Installation;

impl From<Installation> for FactScope {
    fn from(_: Installation) -> Self {
        Self::Installation
    }
}

impl From<AppId> for FactScope {
    fn from(app: AppId) -> Self {
        Self::App(app)
    }
}

impl From<(AppId, TenantId)> for FactScope {
    fn from((app, tenant): (AppId, TenantId)) -> Self {
        Self::Workspace(app, tenant)
    }
}

impl From<(AppId, Option<TenantId>)> for FactScope {
    fn from((app, tenant): (AppId, Option<TenantId>)) -> Self {
        tenant.map_or(Self::App(app), |tenant| Self::Workspace(app, tenant))
    }
}

impl FactScope {
    pub(super) fn app(self) -> Option<AppId> {
        match self {
            Self::Installation => None,
            Self::App(app) | Self::Workspace(app, _) => Some(app),
        }
    }

    pub(super) fn tenant(self) -> Option<TenantId> {
        match self {
            Self::Installation | Self::App(_) => None,
            Self::Workspace(_, tenant) => Some(tenant),
        }
    }
}

/// A fact that committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub id: FactId,
    /// Its place among all facts: 1, 2, 3, … without holes.
    pub position: i64,
    pub kind: String,
    pub app: Option<AppId>,
    pub tenant: Option<TenantId>,
    pub data: Value,
    /// Business time of the transaction that emitted it.
    pub at: Timestamp,
    /// In whose name it was emitted.
    pub author: Author,
    /// Whether servers outside are not told of it.
    pub quiet: bool,
}

impl Fact {
    pub fn is<T: FactKind>(&self) -> bool {
        self.kind == T::KIND
    }

    /// The content, when the fact is of this kind.
    pub fn read<T: FactKind>(&self) -> Result<Option<T>> {
        if self.is::<T>() { T::deserialize(&self.data).map(Some).map_err(Error::internal) } else { Ok(None) }
    }
}

impl FromRow for Fact {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let payload: String = row.get("payload")?;
        Ok(Self {
            id: row.get("id")?,
            position: row.get("position")?,
            kind: row.get("kind")?,
            app: row.get("app_id")?,
            tenant: row.get("tenant_id")?,
            data: serde_json::from_str(&payload).map_err(Error::internal)?,
            at: row.get("created_at")?,
            author: author(row)?,
            quiet: row.get("quiet")?,
        })
    }
}

/// The columns that hold an author.
pub(super) fn columns(author: &Author) -> Result<(String, Option<String>, Option<String>)> {
    let actor = serde_json::to_string(&author.actor).map_err(Error::internal)?;
    Ok((actor, author.address.map(|address| address.to_string()), author.request.clone()))
}

fn author(row: &Row<'_>) -> Result<Author> {
    let (actor, address): (Option<String>, Option<String>) = (row.get("actor")?, row.get("address")?);
    Ok(Author {
        actor: match actor {
            Some(actor) => serde_json::from_str(&actor).map_err(Error::internal)?,
            None => Actor::system(),
        },
        address: address.map(|address| address.parse()).transpose().map_err(Error::internal)?,
        request: row.get("request_id")?,
    })
}

/// The facts after a position, in order.
pub(super) const AFTER: &str = "SELECT id, position, kind, app_id, tenant_id, payload, created_at, actor, address, request_id, quiet \
                                FROM outbox WHERE position > $1 ORDER BY position LIMIT $2";
/// The same up to another position and of some kinds only.
pub(super) const AFTER_OF: &str = "SELECT id, position, kind, app_id, tenant_id, payload, created_at, actor, address, request_id, quiet \
                                   FROM outbox WHERE position > $1 AND position <= $2 AND kind = ANY($3) \
                                   ORDER BY position LIMIT $4";
