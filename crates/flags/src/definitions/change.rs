//! How a change is made: seen, decided, compiled, committed if nothing moved meanwhile.

use std::sync::Arc;

use kernel::{AppId, Authored, Error, Result};
use spine::emit;
use store::{Db, Tx};
use tenancy::apps;

use super::{
    Action, AppDefinitions, Versioned, VersionedRecord,
    diff::differences,
    headers::Actor,
    store::{self as rows, VersionRow},
};
use crate::{
    facts::{FlagChange, FlagsChanged},
    memory::Memory,
};

/// Makes changes to apps' flags and groups. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Changes {
    pub(crate) db: Db,
    pub(crate) memory: Memory,
}

/// What a decision comes to.
pub(super) enum Change<D: Versioned> {
    Put {
        record: VersionedRecord<D>,
        action: Action,
        version: VersionRow,
    },
    Delete(VersionedRecord<D>),
    /// The update says what is so already.
    Nothing(VersionedRecord<D>),
}

/// Somebody else may change the app's flags between the look and the commit; nobody loses that race this often.
const ATTEMPTS: usize = 50;

impl Changes {
    /// The same, for changes in somebody's name.
    pub(super) fn by(&self, who: &impl Authored) -> Self {
        Self { db: self.db.by(who), memory: self.memory.clone() }
    }

    /// The app's definitions as of now; 404 without the app.
    pub(super) async fn look(&self, app: AppId) -> Result<AppDefinitions> {
        let found = self.db.snapshot(move |tx| {
            if !apps::exists(tx, app)? {
                return Ok(None);
            }
            rows::load_app(tx, app).map(Some)
        });
        found.await?.ok_or_else(|| Error::not_found("app"))
    }

    /// Makes the change that `decide` chooses in view of the app's definitions; answers with the record it is about and
    /// the definitions after it.
    pub(super) async fn make<D: Versioned>(
        &self,
        app: AppId,
        decide: impl Fn(&AppDefinitions) -> Result<Change<D>> + Send,
    ) -> Result<(VersionedRecord<D>, AppDefinitions)> {
        for _ in 0..ATTEMPTS {
            let seen = self.look(app).await?;
            let change = match decide(&seen)? {
                Change::Nothing(record) => return Ok((record, seen)),
                change => Arc::new(change),
            };
            if let Some(after) = self.commit(app, seen, vec![Arc::clone(&change) as Arc<dyn Storable>]).await? {
                return Ok((change.record().clone(), after));
            }
        }
        Err(too_quick())
    }

    /// The same for several changes at once: all of them are made, or none. Answers with what `decide` says beside them.
    pub(super) async fn make_all<T: Send>(
        &self,
        app: AppId,
        decide: impl Fn(&AppDefinitions) -> Result<(Vec<Arc<dyn Storable>>, T)> + Send,
    ) -> Result<T> {
        for _ in 0..ATTEMPTS {
            let seen = self.look(app).await?;
            let (changes, answer) = decide(&seen)?;
            if changes.is_empty() || self.commit(app, seen, changes).await?.is_some() {
                return Ok(answer);
            }
        }
        Err(too_quick())
    }

    /// The definitions after the changes; `None` when somebody else was faster.
    async fn commit(
        &self,
        app: AppId,
        mut seen: AppDefinitions,
        changes: Vec<Arc<dyn Storable>>,
    ) -> Result<Option<AppDefinitions>> {
        let revision = seen.revision;
        changes.iter().for_each(|change| change.apply_to(&mut seen));
        seen.revision += 1;
        let compiled = Arc::new(seen.compile());
        let memory = self.memory.clone();
        let committed = self.db.write(move |tx| {
            apps::hold(tx, app)?;
            if !rows::advance(tx, app, revision)? {
                return Ok(false);
            }
            changes.iter().try_for_each(|change| change.store(tx, app))?;
            emit(tx, app, &FlagsChanged { revision: revision + 1 })?;
            let (memory, compiled) = (memory.clone(), Arc::clone(&compiled));
            tx.on_commit(move || memory.put(app, compiled));
            Ok(true)
        });
        Ok(committed.await?.then_some(seen))
    }
}

fn too_quick() -> Error {
    Error::new(kernel::Code::Overloaded, "The app's flags are changing too quickly. Try again.")
}

/// A change of a flag or of a group.
pub(super) trait Storable: Send + Sync {
    fn apply_to(&self, definitions: &mut AppDefinitions);
    fn store(&self, tx: &mut Tx<'_>, app: AppId) -> Result<()>;
}

impl<D: Versioned> Change<D> {
    /// The record with a new definition, one version on from the one before.
    pub(super) fn put(
        before: Option<&D>,
        record: VersionedRecord<D>,
        action: Action,
        Actor(actor): &Actor,
    ) -> Result<Self> {
        let json = |definition: &D| serde_json::to_value(definition).map_err(Error::internal);
        let definition = json(&record.definition)?;
        let diff = match before {
            Some(before) => differences(&json(before)?, &definition),
            None => Vec::new(),
        };
        let version = VersionRow {
            subject: record.id.to_string(),
            version: record.version,
            action,
            changed_by: actor.clone(),
            changed_at: record.updated_at,
            definition,
            diff,
        };
        Ok(Self::Put { record, action, version })
    }

    fn record(&self) -> &VersionedRecord<D> {
        match self {
            Self::Put { record, .. } | Self::Delete(record) | Self::Nothing(record) => record,
        }
    }
}

impl<D: Versioned> Storable for Change<D> {
    fn apply_to(&self, definitions: &mut AppDefinitions) {
        let records = D::among_mut(definitions);
        match self {
            Self::Put { record, .. } => match records.iter_mut().find(|known| known.id == record.id) {
                Some(known) => *known = record.clone(),
                None => records.push(record.clone()),
            },
            Self::Delete(record) => records.retain(|known| known.id != record.id),
            Self::Nothing(_) => {}
        }
    }

    fn store(&self, tx: &mut Tx<'_>, app: AppId) -> Result<()> {
        match self {
            Self::Put { record, action, version } => {
                D::put(tx, app, record)?;
                rows::insert_version(tx, app, version)?;
                D::tell(tx, app, record, action.change())
            }
            Self::Delete(record) => {
                D::delete(tx, app, record)?;
                rows::delete_versions(tx, app, &record.id.to_string())?;
                D::tell(tx, app, record, FlagChange::Deleted)
            }
            Self::Nothing(_) => Ok(()),
        }
    }
}
