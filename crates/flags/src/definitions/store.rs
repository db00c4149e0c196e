//! The SQL of flags, groups and their versions.

use std::collections::HashMap;

use kernel::{AppId, Error, Page, Result, Timestamp};
use serde_json::Value;
use spine::emit;
use store::{FromRow, Json, Row, Tx, args, row, sql};

use super::{
    Action, AppDefinitions, CompiledApp, Compiler, FlagRecord, GroupRecord, Versioned, VersionedRecord,
    bodies::{check_flag, check_group, check_group_unused},
    diff::Difference,
};
use crate::{
    facts::{FlagChange, FlagChanged, FlagGroupChanged},
    model::{Definition, FlagId, FlagKind, GroupDefinition, GroupKind},
};

impl<D: Versioned> FromRow for VersionedRecord<D> {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            definition: row.get::<Json<_>>("definition")?.0,
            version: row.get("version")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

const REVISION: &str = "SELECT revision FROM flag_revisions WHERE app_id = $1";
const FLAGS: &str =
    "SELECT id, definition, version, created_at, updated_at FROM flags WHERE app_id = $1 ORDER BY id DESC";
const GROUPS: &str =
    "SELECT id, definition, version, created_at, updated_at FROM flag_groups WHERE app_id = $1 ORDER BY id DESC";

/// One app's definitions, newest first. To be called in a snapshot: several statements make one view.
pub(crate) fn load_app(tx: &mut Tx<'_>, app: AppId) -> Result<AppDefinitions> {
    let revision: Option<(i64,)> = tx.opt(REVISION, &args![app])?;
    Ok(AppDefinitions {
        revision: revision.map_or(0, |(revision,)| revision),
        flags: tx.all(FLAGS, &args![app])?,
        groups: tx.all(GROUPS, &args![app])?,
    })
}

const ALL_REVISIONS: &str = "SELECT app_id, revision FROM flag_revisions";
const ALL_FLAGS: &str = "SELECT app_id, id, definition FROM flags";
const ALL_GROUPS: &str = "SELECT app_id, id, definition, version, created_at, updated_at FROM flag_groups";

/// An app's flags as stored, still to be read: most of the work of loading is there.
#[derive(Default)]
pub(crate) struct StoredApp {
    revision: i64,
    groups: Vec<GroupRecord>,
    flags: Vec<(FlagId, String)>,
}

impl StoredApp {
    pub(crate) fn compile(&self) -> Result<CompiledApp> {
        let mut compiler = Compiler::new(self.revision, &self.groups, self.flags.len());
        for (id, definition) in &self.flags {
            compiler.add(*id, &serde_json::from_str(definition).map_err(Error::internal)?);
        }
        Ok(compiler.finish())
    }
}

/// Every app's flags. To be called in a scan.
pub(crate) fn load_all(tx: &mut Tx<'_>) -> Result<HashMap<AppId, StoredApp>> {
    let mut apps: HashMap<AppId, StoredApp> = HashMap::new();
    tx.each(ALL_REVISIONS, &[], &mut |row| {
        apps.entry(row.get("app_id")?).or_default().revision = row.get("revision")?;
        Ok(())
    })?;
    tx.each(ALL_GROUPS, &[], &mut |row| {
        apps.entry(row.get("app_id")?).or_default().groups.push(GroupRecord::from_row(row)?);
        Ok(())
    })?;
    tx.each(ALL_FLAGS, &[], &mut |row| {
        apps.entry(row.at(0)?).or_default().flags.push((row.at(1)?, row.at(2)?));
        Ok(())
    })?;
    Ok(apps)
}

const ADVANCE: &str = "INSERT INTO flag_revisions (app_id, revision) VALUES ($1, $2 + 1) ON CONFLICT (app_id) \
                       DO UPDATE SET revision = excluded.revision WHERE flag_revisions.revision = $2";

/// Moves the app's revision on from `seen`; false when somebody else has.
pub(super) fn advance(tx: &mut Tx<'_>, app: AppId, seen: i64) -> Result<bool> {
    tx.changes_one(ADVANCE, &args![app, seen])
}

const PUT_FLAG: &str = "INSERT INTO flags (id, app_id, key, definition, version, created_at, updated_at) \
                        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE \
                        SET definition = excluded.definition, version = excluded.version, updated_at = excluded.updated_at";
const PUT_GROUP: &str = "INSERT INTO flag_groups (id, app_id, key, definition, version, created_at, updated_at) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE \
                         SET definition = excluded.definition, version = excluded.version, updated_at = excluded.updated_at";

fn put<D: Versioned>(tx: &mut Tx<'_>, sql: &'static str, app: AppId, record: &VersionedRecord<D>) -> Result<()> {
    let VersionedRecord { id, definition, version, created_at, updated_at } = record;
    tx.run(sql, &args![*id, app, definition.key(), Json(definition), *version, *created_at, *updated_at])
}

impl Versioned for Definition {
    type Kind = FlagKind;
    const NAME: &'static str = "flag";

    fn key(&self) -> &str {
        &self.key
    }

    fn among(app: &AppDefinitions) -> &Vec<FlagRecord> {
        &app.flags
    }

    fn among_mut(app: &mut AppDefinitions) -> &mut Vec<FlagRecord> {
        &mut app.flags
    }

    fn check(&self, app: &AppDefinitions) -> Result<()> {
        check_flag(self, app)
    }

    fn check_unused(&self, _: &AppDefinitions) -> Result<()> {
        Ok(())
    }

    /// A key that now has a flag is no longer a discovery.
    fn put(tx: &mut Tx<'_>, app: AppId, flag: &FlagRecord) -> Result<()> {
        put(tx, PUT_FLAG, app, flag)?;
        let key = &flag.definition.key;
        tx.run("DELETE FROM flag_discoveries WHERE app_id = $1 AND key = $2", &args![app, key])
    }

    /// With what is known of its use.
    fn delete(tx: &mut Tx<'_>, app: AppId, flag: &FlagRecord) -> Result<()> {
        let key = &flag.definition.key;
        tx.run("DELETE FROM flags WHERE app_id = $1 AND id = $2", &args![app, flag.id])?;
        tx.run("DELETE FROM flag_evaluations WHERE app_id = $1 AND key = $2", &args![app, key])?;
        tx.run("DELETE FROM flag_last_uses WHERE app_id = $1 AND key = $2", &args![app, key])?;
        tx.run("DELETE FROM flag_call_sites WHERE app_id = $1 AND key = $2", &args![app, key])
    }

    fn tell(tx: &mut Tx<'_>, app: AppId, flag: &FlagRecord, change: FlagChange) -> Result<()> {
        let (key, version) = (flag.definition.key.clone(), flag.version);
        emit(tx, app, &FlagChanged { flag_id: flag.id, key, version, change })
    }
}

impl Versioned for GroupDefinition {
    type Kind = GroupKind;
    const NAME: &'static str = "flag group";

    fn key(&self) -> &str {
        &self.key
    }

    fn among(app: &AppDefinitions) -> &Vec<GroupRecord> {
        &app.groups
    }

    fn among_mut(app: &mut AppDefinitions) -> &mut Vec<GroupRecord> {
        &mut app.groups
    }

    fn check(&self, app: &AppDefinitions) -> Result<()> {
        check_group(self, app)
    }

    fn check_unused(&self, app: &AppDefinitions) -> Result<()> {
        check_group_unused(self, app)
    }

    fn put(tx: &mut Tx<'_>, app: AppId, group: &GroupRecord) -> Result<()> {
        put(tx, PUT_GROUP, app, group)
    }

    fn delete(tx: &mut Tx<'_>, app: AppId, group: &GroupRecord) -> Result<()> {
        tx.run("DELETE FROM flag_groups WHERE app_id = $1 AND id = $2", &args![app, group.id])
    }

    fn tell(tx: &mut Tx<'_>, app: AppId, group: &GroupRecord, change: FlagChange) -> Result<()> {
        let (key, version) = (group.definition.key.clone(), group.version);
        emit(tx, app, &FlagGroupChanged { group_id: group.id, key, version, change })
    }
}

/// One change of a flag or group.
#[derive(Clone, Debug)]
pub(super) struct VersionRow {
    pub(super) subject: String,
    pub(super) version: i64,
    pub(super) action: Action,
    pub(super) changed_by: String,
    pub(super) changed_at: Timestamp,
    pub(super) definition: Value,
    pub(super) diff: Vec<Difference>,
}

row! {
    VersionRow = "flag_versions" {
        subject: "subject_id",
        version,
        action,
        changed_by,
        changed_at,
        definition as Json,
        diff as Json,
    }
}

const INSERT_VERSION: &str = "INSERT INTO flag_versions \
                              (subject_id, version, app_id, action, changed_by, changed_at, definition, diff) \
                              VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub(super) fn insert_version(tx: &mut Tx<'_>, app: AppId, row: &VersionRow) -> Result<()> {
    let VersionRow { subject, version, action, changed_by, changed_at, definition, diff } = row;
    tx.run(
        INSERT_VERSION,
        &args![subject, *version, app, *action, changed_by, *changed_at, Json(definition), Json(diff)],
    )
}

pub(super) fn delete_versions(tx: &mut Tx<'_>, app: AppId, subject: &str) -> Result<()> {
    tx.run("DELETE FROM flag_versions WHERE app_id = $1 AND subject_id = $2", &args![app, subject])
}

const VERSIONS: &str = sql!(
    "SELECT ",
    VersionRow::COLUMNS,
    " FROM flag_versions WHERE app_id = $1 AND subject_id = $2 ORDER BY version DESC LIMIT $3 OFFSET $4"
);

/// Newest first.
pub(super) fn versions(tx: &mut Tx<'_>, app: AppId, subject: &str, page: Page) -> Result<Vec<VersionRow>> {
    tx.all(VERSIONS, &args![app, subject, page.limit_or_all(), page.offset()])
}

const VERSION: &str =
    sql!("SELECT ", VersionRow::COLUMNS, " FROM flag_versions WHERE app_id = $1 AND subject_id = $2 AND version = $3");

pub(super) fn version(tx: &mut Tx<'_>, app: AppId, subject: &str, version: i64) -> Result<Option<VersionRow>> {
    tx.opt(VERSION, &args![app, subject, version])
}
