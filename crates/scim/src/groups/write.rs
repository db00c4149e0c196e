//! Creating, changing and removing groups, with what follows for the teams and roles of their members.

use std::collections::HashSet;

use ::store::Tx;
use kernel::{Code, Error, MemberId, Name, Problems, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use spine::emit;
use tenancy::{
    facts::Change,
    members::provisioning,
    roles::{self, OWNER, Role},
};
use web::{Validate, from_value};

use super::{Group, ScimGroupId, get, store};
use crate::{
    directory::Directory,
    facts::ScimGroupChanged,
    http::Versions,
    patch::{self, PatchOperation},
    schema::GROUP,
    users::{self, ExternalId},
};

/// Groups of one workspace at most.
const MOST: i64 = 5_000;

/// What a body says of a group, by the schema's names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GroupBody {
    display_name: Name,
    external_id: Option<ExternalId>,
    #[schemars(length(max = 100_000))]
    members: Option<Vec<MemberBody>>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct MemberBody {
    value: String,
}

impl Validate for GroupBody {}

impl GroupBody {
    /// The users that it names, each once; 400 for whatever is not one of this workspace.
    fn members(&self, tx: &mut Tx<'_>, directory: &Directory) -> Result<Option<HashSet<MemberId>>> {
        let Some(members) = &self.members else { return Ok(None) };
        let ids: Vec<Option<MemberId>> = members.iter().map(|member| member.value.parse().ok()).collect();
        let given: Vec<MemberId> = ids.iter().flatten().copied().collect();
        let users = provisioning::find_all(tx, directory.app(), directory.tenant, &given)?;
        let known: HashSet<MemberId> = users.into_iter().map(|user| user.id).collect();
        let mut problems = Problems::new();
        for (place, id) in ids.iter().enumerate() {
            let is_known = id.is_some_and(|id| known.contains(&id));
            problems.check(&format!("members[{place}].value"), is_known, "is not the id of a user of this workspace");
        }
        problems.finish()?;
        Ok(Some(known))
    }
}

fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

pub(crate) fn create(tx: &mut Tx<'_>, directory: &Directory, body: &Map<String, Value>) -> Result<Group> {
    let body: GroupBody = from_value(&Value::Object(body.clone()))?;
    let (app, tenant) = (directory.app(), directory.tenant);
    directory.hold(tx)?;
    is_free(tx, directory, &body.display_name, None)?;
    if store::count(tx, app, tenant)? >= MOST {
        return Err(Error::new(Code::Conflict, format!("A workspace has at most {MOST} groups.")));
    }
    let members = body.members(tx, directory)?.unwrap_or_default();
    let group = Group {
        id: tx.new_id(),
        display_name: body.display_name.trim().to_owned(),
        external_id: body.external_id.map(String::from),
        role_id: None,
        version: 1,
        created_at: tx.now(),
    };
    store::insert(tx, app, tenant, &group, &key(&group.display_name))?;
    set_members(tx, directory, &group, &HashSet::new(), &members)?;
    tell(tx, directory, &group, Change::Created)?;
    Ok(group)
}

fn is_free(tx: &mut Tx<'_>, directory: &Directory, name: &str, except: Option<ScimGroupId>) -> Result<()> {
    match store::is_named(tx, directory.app(), directory.tenant, &key(name), except)? {
        true => {
            Err(Error::new(Code::GroupExists, format!("Another group of this workspace is already called {name}.")))
        }
        false => Ok(()),
    }
}

/// Members stay as they are when nothing is said of them.
pub(crate) fn replace(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: ScimGroupId,
    versions: &Versions,
    body: &Map<String, Value>,
) -> Result<Group> {
    directory.hold(tx)?;
    let before = get(tx, directory, id)?;
    versions.allow(&before.written(&directory.base()))?;
    let members = current(tx, directory, id)?;
    change(tx, directory, &before, &members, body)
}

pub(crate) fn patch(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: ScimGroupId,
    versions: &Versions,
    operations: &[PatchOperation],
) -> Result<Group> {
    directory.hold(tx)?;
    let before = get(tx, directory, id)?;
    versions.allow(&before.written(&directory.base()))?;
    let members = current(tx, directory, id)?;
    let mut content = before.written(&directory.base()).body;
    let mut ids: Vec<&MemberId> = members.iter().collect();
    ids.sort_unstable();
    content.insert("members".to_owned(), ids.iter().map(|id| json!({ "value": id })).collect());
    patch::apply(&GROUP, &mut content, operations)?;
    let mut body = GROUP.read(&Value::Object(content))?;
    // Removed members are none, not those there were.
    body.entry("members").or_insert_with(|| json!([]));
    change(tx, directory, &before, &members, &body)
}

fn current(tx: &mut Tx<'_>, directory: &Directory, id: ScimGroupId) -> Result<HashSet<MemberId>> {
    let ids = store::member_ids(tx, directory.app(), directory.tenant, id)?;
    let users = provisioning::find_all(tx, directory.app(), directory.tenant, &ids)?;
    Ok(users.into_iter().map(|user| user.id).collect())
}

fn change(
    tx: &mut Tx<'_>,
    directory: &Directory,
    before: &Group,
    members: &HashSet<MemberId>,
    body: &Map<String, Value>,
) -> Result<Group> {
    let body: GroupBody = from_value(&Value::Object(body.clone()))?;
    is_free(tx, directory, &body.display_name, Some(before.id))?;
    let wanted = body.members(tx, directory)?.unwrap_or_else(|| members.clone());
    let after = Group {
        display_name: body.display_name.trim().to_owned(),
        external_id: body.external_id.map(String::from),
        ..before.clone()
    };
    if after == *before && wanted == *members {
        return Ok(after);
    }
    let after = Group { version: before.version + 1, ..after };
    store::update(tx, directory.app(), directory.tenant, &after, &key(&after.display_name))?;
    if after.display_name != before.display_name {
        for member in sorted(members.intersection(&wanted)) {
            move_team(tx, directory, member, Some(&before.display_name), Some(&after.display_name))?;
        }
    }
    let gone: HashSet<MemberId> = members.difference(&wanted).copied().collect();
    for member in sorted(gone.iter()) {
        leave(tx, directory, before, member)?;
    }
    set_members(tx, directory, &after, members, &wanted)?;
    tell(tx, directory, &after, Change::Updated)?;
    Ok(after)
}

/// In one order, so that tests and facts are repeatable.
fn sorted<'a>(members: impl Iterator<Item = &'a MemberId>) -> Vec<MemberId> {
    let mut members: Vec<MemberId> = members.copied().collect();
    members.sort_unstable();
    members
}

/// Adds those who are not in the group yet.
fn set_members(
    tx: &mut Tx<'_>,
    directory: &Directory,
    group: &Group,
    members: &HashSet<MemberId>,
    wanted: &HashSet<MemberId>,
) -> Result<()> {
    for member in sorted(wanted.difference(members)) {
        store::add_member(tx, directory.app(), directory.tenant, group.id, member)?;
        move_team(tx, directory, member, None, Some(&group.display_name))?;
    }
    Ok(())
}

fn leave(tx: &mut Tx<'_>, directory: &Directory, group: &Group, member: MemberId) -> Result<()> {
    store::remove_member(tx, directory.app(), directory.tenant, group.id, member)?;
    move_team(tx, directory, member, Some(&group.display_name), None)
}

/// Puts one team in the place of another, and gives the user the role that follows from their groups now.
fn move_team(
    tx: &mut Tx<'_>,
    directory: &Directory,
    member: MemberId,
    former: Option<&str>,
    next: Option<&str>,
) -> Result<()> {
    let user = provisioning::get(tx, directory.app(), directory.tenant, member)?;
    let mut teams: Vec<String> = user.teams;
    teams.retain(|team| Some(team.as_str()) != former);
    if let Some(next) = next.filter(|next| !teams.iter().any(|team| team == next)) {
        teams.push(next.to_owned());
    }
    let teams = teams.iter().map(|team| team.parse::<Name>().map_err(Error::internal)).collect::<Result<Vec<_>>>()?;
    users::save_roles(tx, directory, member, None, Some(teams))
}

pub(crate) fn remove(tx: &mut Tx<'_>, directory: &Directory, id: ScimGroupId, versions: &Versions) -> Result<()> {
    directory.hold(tx)?;
    let group = get(tx, directory, id)?;
    versions.allow(&group.written(&directory.base()))?;
    for member in sorted(current(tx, directory, id)?.iter()) {
        leave(tx, directory, &group, member)?;
    }
    store::delete(tx, directory.app(), directory.tenant, id)?;
    tell(tx, directory, &group, Change::Deleted)
}

/// Gives a group the role that its members have from now on, or takes it away; the group with the role. Not for directories: the
/// caller gives what they hold themselves.
pub(crate) fn set_role(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: ScimGroupId,
    role: Option<&str>,
) -> Result<(Group, Option<Role>)> {
    directory.hold(tx)?;
    let before = get(tx, directory, id)?;
    let role = role.map(|key| roles::assign(tx, directory.app(), Some(key))).transpose()?;
    if let Some(role) = &role {
        if role.key == OWNER {
            return Err(Error::invalid("role", "cannot be OWNER"));
        }
        directory.authority.may_give(role)?;
    }
    let after = Group { role_id: role.as_ref().map(|role| role.id), ..before.clone() };
    if after == before {
        return Ok((after, role));
    }
    let after = Group { version: before.version + 1, ..after };
    store::update(tx, directory.app(), directory.tenant, &after, &key(&after.display_name))?;
    for member in sorted(current(tx, directory, id)?.iter()) {
        users::save_roles(tx, directory, member, None, None)?;
    }
    tell(tx, directory, &after, Change::Updated)?;
    Ok((after, role))
}

fn tell(tx: &mut Tx<'_>, directory: &Directory, group: &Group, change: Change) -> Result<()> {
    let fact = ScimGroupChanged { group_id: group.id, display_name: group.display_name.clone(), change };
    emit(tx, (directory.app(), directory.tenant), &fact)
}
