//! How a change is made: seen, decided, compiled, committed if nothing moved meanwhile.

use std::sync::Arc;

use kernel::{AppId, Error, Result};
use serde::Serialize;
use spine::{NewFact, emit};
use store::{Db, Tx};

use super::{
    AppDefinitions, Author, CHANGED, FlagRecord, GroupRecord,
    diff::differences,
    store::{self as rows, VersionRow},
};
use crate::memory::Memory;

/// Makes changes to apps' flags and groups. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Changes {
    pub(crate) db: Db,
    pub(crate) memory: Memory,
}

/// What a decision comes to.
#[derive(Clone)]
pub(super) enum Change {
    PutFlag {
        flag: FlagRecord,
        version: VersionRow,
    },
    PutGroup {
        group: GroupRecord,
        version: VersionRow,
    },
    DeleteFlag(FlagRecord),
    DeleteGroup(GroupRecord),
    /// The update says what is so already.
    Nothing,
}

/// Somebody else may change the app's flags between the look and the commit; nobody loses that race this often.
const ATTEMPTS: usize = 50;

impl Changes {
    /// The app's definitions as of now; 404 without the app.
    pub(super) async fn look(&self, app: AppId) -> Result<AppDefinitions> {
        let found = self.db.snapshot(move |tx| {
            if !rows::app_exists(tx, app)? {
                return Ok(None);
            }
            rows::load_app(tx, app).map(Some)
        });
        found.await?.ok_or_else(|| Error::not_found("app"))
    }

    /// Makes the change that `decide` chooses in view of the app's definitions, and answers with what it answers.
    pub(super) async fn make<T>(
        &self,
        app: AppId,
        decide: impl Fn(&AppDefinitions) -> Result<(Change, T)> + Send,
    ) -> Result<T> {
        for _ in 0..ATTEMPTS {
            let mut seen = self.look(app).await?;
            let (change, answer) = decide(&seen)?;
            if matches!(change, Change::Nothing) {
                return Ok(answer);
            }
            let revision = seen.revision;
            change.apply_to(&mut seen);
            seen.revision += 1;
            let compiled = Arc::new(seen.compile());
            let memory = self.memory.clone();
            let committed = self.db.write(move |tx| {
                tx.lock(&format!("app:{app}"))?;
                if !rows::app_exists(tx, app)? {
                    return Err(Error::not_found("app"));
                }
                if !rows::advance(tx, app, revision)? {
                    return Ok(false);
                }
                change.store(tx, app)?;
                emit(tx, &NewFact::new(CHANGED, serde_json::json!({ "revision": revision + 1 })).app(app))?;
                let (memory, compiled) = (memory.clone(), Arc::clone(&compiled));
                tx.on_commit(move || memory.put(app, compiled));
                Ok(true)
            });
            if committed.await? {
                return Ok(answer);
            }
        }
        Err(Error::new(kernel::Code::Overloaded, "The app's flags are changing too fast; try again."))
    }
}

impl Change {
    fn apply_to(&self, definitions: &mut AppDefinitions) {
        match self {
            Self::PutFlag { flag, .. } => match definitions.flags.iter_mut().find(|known| known.id == flag.id) {
                Some(known) => *known = flag.clone(),
                None => definitions.flags.push(flag.clone()),
            },
            Self::PutGroup { group, .. } => match definitions.groups.iter_mut().find(|known| known.id == group.id) {
                Some(known) => *known = group.clone(),
                None => definitions.groups.push(group.clone()),
            },
            Self::DeleteFlag(flag) => definitions.flags.retain(|known| known.id != flag.id),
            Self::DeleteGroup(group) => definitions.groups.retain(|known| known.id != group.id),
            Self::Nothing => {}
        }
    }

    fn store(&self, tx: &mut Tx<'_>, app: AppId) -> Result<()> {
        match self {
            Self::PutFlag { flag, version } => {
                rows::put_flag(tx, app, flag)?;
                rows::insert_version(tx, app, version)
            }
            Self::PutGroup { group, version } => {
                rows::put_group(tx, app, group)?;
                rows::insert_version(tx, app, version)
            }
            Self::DeleteFlag(flag) => rows::delete_flag(tx, app, flag),
            Self::DeleteGroup(group) => rows::delete_group(tx, app, group),
            Self::Nothing => Ok(()),
        }
    }

    /// The flag with a new definition, one version on.
    pub(super) fn put_flag(before: Option<&FlagRecord>, flag: FlagRecord, author: &Author) -> Result<Self> {
        let definition = before.map(|before| &before.definition);
        let version =
            version_row(flag.id.to_string(), definition, &flag.definition, flag.version, flag.updated_at, author)?;
        Ok(Self::PutFlag { flag, version })
    }

    pub(super) fn put_group(before: Option<&GroupRecord>, group: GroupRecord, author: &Author) -> Result<Self> {
        let definition = before.map(|before| &before.definition);
        let version =
            version_row(group.id.to_string(), definition, &group.definition, group.version, group.updated_at, author)?;
        Ok(Self::PutGroup { group, version })
    }
}

fn version_row<D: Serialize>(
    subject: String,
    before: Option<&D>,
    after: &D,
    version: i64,
    changed_at: kernel::Timestamp,
    author: &Author,
) -> Result<VersionRow> {
    let definition = serde_json::to_value(after).map_err(Error::internal)?;
    let diff = match before {
        Some(before) => differences(&serde_json::to_value(before).map_err(Error::internal)?, &definition),
        None => Vec::new(),
    };
    let action = author.action.as_str().to_owned();
    Ok(VersionRow { subject, version, action, changed_by: author.name.clone(), changed_at, definition, diff })
}
