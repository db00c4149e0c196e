//! What flags and groups have in common: found by id, created under a key of their own, changed from a version that the
//! caller has seen, deleted, and brought back to an earlier version.

use kernel::{AppId, Code, Error, Id, IdKind, Page, Result, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use store::Tx;

use super::{
    Action, AppDefinitions,
    change::{Change, Changes},
    headers::{Actor, IfMatch},
    store::{VersionRow, version, versions},
    views::VersionView,
};

use crate::facts::FlagChange;

/// A definition that is kept with a version per change.
pub trait Versioned: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    type Kind: IdKind;
    const NAME: &'static str;

    fn key(&self) -> &str;
    fn among(app: &AppDefinitions) -> &Vec<VersionedRecord<Self>>;
    fn among_mut(app: &mut AppDefinitions) -> &mut Vec<VersionedRecord<Self>>;
    /// An error that tells everything that is wrong with it among the app's other definitions.
    fn check(&self, app: &AppDefinitions) -> Result<()>;
    /// An error while others need it.
    fn check_unused(&self, app: &AppDefinitions) -> Result<()>;
    fn put(tx: &mut Tx<'_>, app: AppId, record: &VersionedRecord<Self>) -> Result<()>;
    fn delete(tx: &mut Tx<'_>, app: AppId, record: &VersionedRecord<Self>) -> Result<()>;
    /// Emits what happened to it.
    fn tell(tx: &mut Tx<'_>, app: AppId, record: &VersionedRecord<Self>, change: FlagChange) -> Result<()>;
}

pub struct VersionedRecord<D: Versioned> {
    pub id: Id<D::Kind>,
    pub definition: D,
    /// Counts the changes.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl<D: Versioned> Clone for VersionedRecord<D> {
    fn clone(&self) -> Self {
        Self { definition: self.definition.clone(), ..*self }
    }
}

pub(super) fn find<D: Versioned>(app: &AppDefinitions, id: Id<D::Kind>) -> Result<&VersionedRecord<D>> {
    D::among(app).iter().find(|record| record.id == id).ok_or_else(|| Error::not_found(D::NAME))
}

/// Each answers with the record and the definitions that it is now among.
impl Changes {
    pub(super) async fn create<D: Versioned>(
        &self,
        app: AppId,
        definition: D,
        actor: &Actor,
    ) -> Result<(VersionedRecord<D>, AppDefinitions)> {
        let (id, now) = (self.db.ids().next(), self.db.clock().now());
        let record = VersionedRecord { id, definition, version: 1, created_at: now, updated_at: now };
        let create = |seen: &AppDefinitions| {
            record.definition.check(seen)?;
            let key = record.definition.key();
            if D::among(seen).iter().any(|other| other.definition.key() == key) {
                let message = format!("Another {} already has the key {key}.", D::NAME);
                return Err(Error::new(Code::FlagKeyTaken, message));
            }
            Change::put(None, record.clone(), Action::Created, actor)
        };
        self.make(app, create).await
    }

    pub(super) async fn update<D: Versioned>(
        &self,
        app: AppId,
        id: Id<D::Kind>,
        based_on: &IfMatch,
        actor: &Actor,
        change: impl Fn(&D) -> Result<D> + Send + Sync,
    ) -> Result<(VersionedRecord<D>, AppDefinitions)> {
        self.redefine(app, id, based_on, (Action::Updated, actor), change).await
    }

    pub(super) async fn delete<D: Versioned>(&self, app: AppId, id: Id<D::Kind>, based_on: &IfMatch) -> Result<()> {
        let delete = |seen: &AppDefinitions| {
            let record = find::<D>(seen, id)?;
            based_on.check(record.version)?;
            record.definition.check_unused(seen)?;
            Ok(Change::Delete(record.clone()))
        };
        self.make(app, delete).await.map(|_| ())
    }

    /// Newest first.
    pub(super) async fn history<D: Versioned>(
        &self,
        app: AppId,
        id: Id<D::Kind>,
        page: Page,
    ) -> Result<Vec<VersionView>> {
        find::<D>(&self.look(app).await?, id)?;
        let subject = id.to_string();
        let rows = self.db.read(move |tx| versions(tx, app, &subject, page)).await?;
        Ok(rows.into_iter().map(VersionView::from).collect())
    }

    pub(super) async fn roll_back<D: Versioned>(
        &self,
        app: AppId,
        id: Id<D::Kind>,
        wanted: i64,
        based_on: &IfMatch,
        actor: &Actor,
    ) -> Result<(VersionedRecord<D>, AppDefinitions)> {
        find::<D>(&self.look(app).await?, id)?;
        let subject = id.to_string();
        let found: Option<VersionRow> = self.db.read(move |tx| version(tx, app, &subject, wanted)).await?;
        let row = found.ok_or_else(|| Error::invalid("version", "is not one of its versions"))?;
        let definition: D = serde_json::from_value(row.definition).map_err(Error::internal)?;
        self.redefine(app, id, based_on, (Action::RolledBack, actor), |_| Ok(definition.clone())).await
    }

    async fn redefine<D: Versioned>(
        &self,
        app: AppId,
        id: Id<D::Kind>,
        based_on: &IfMatch,
        (action, actor): (Action, &Actor),
        define: impl Fn(&D) -> Result<D> + Send + Sync,
    ) -> Result<(VersionedRecord<D>, AppDefinitions)> {
        let redefine = |seen: &AppDefinitions| {
            let before = find::<D>(seen, id)?;
            based_on.check(before.version)?;
            let definition = define(&before.definition)?;
            definition.check(seen)?;
            if definition == before.definition {
                return Ok(Change::Nothing(before.clone()));
            }
            let (version, updated_at) = (before.version + 1, self.db.clock().now());
            let after = VersionedRecord { definition, version, updated_at, ..*before };
            Change::put(Some(&before.definition), after, action, actor)
        };
        self.make(app, redefine).await
    }
}
