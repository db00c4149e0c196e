//! What a fact is.

use std::borrow::Cow;

use kernel::{AppId, Error, Result, TenantId, Timestamp, id_kinds};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use store::{FromRow, Row};

id_kinds! {
    /// One entry of the outbox.
    FactId(FactEntry) = "fact";
}

/// The content of facts of one kind, for those who prefer types to JSON.
pub trait FactKind: Serialize + DeserializeOwned {
    /// `noun.verbed`: "app.created".
    const KIND: &'static str;
}

/// A fact to be emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFact {
    pub kind: Cow<'static, str>,
    pub app: Option<AppId>,
    pub tenant: Option<TenantId>,
    pub data: Value,
}

impl NewFact {
    pub fn new(kind: impl Into<Cow<'static, str>>, data: Value) -> Self {
        Self { kind: kind.into(), app: None, tenant: None, data }
    }

    pub fn of<T: FactKind>(content: &T) -> Result<Self> {
        Ok(Self::new(T::KIND, serde_json::to_value(content).map_err(Error::internal)?))
    }

    #[must_use]
    pub fn app(self, app: AppId) -> Self {
        Self { app: Some(app), ..self }
    }

    #[must_use]
    pub fn tenant(self, tenant: TenantId) -> Self {
        Self { tenant: Some(tenant), ..self }
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
}

impl Fact {
    /// The content, when the fact is of this kind.
    pub fn read<T: FactKind>(&self) -> Result<Option<T>> {
        if self.kind != T::KIND {
            return Ok(None);
        }
        T::deserialize(&self.data).map(Some).map_err(Error::internal)
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
        })
    }
}

/// The facts after a position, in order.
pub(super) const AFTER: &str = "SELECT id, position, kind, app_id, tenant_id, payload, created_at FROM outbox \
                                WHERE position > $1 ORDER BY position LIMIT $2";
/// The same up to another position and of some kinds only.
pub(super) const AFTER_OF: &str = "SELECT id, position, kind, app_id, tenant_id, payload, created_at FROM outbox \
                                   WHERE position > $1 AND position <= $2 AND kind = ANY($3) \
                                   ORDER BY position LIMIT $4";
