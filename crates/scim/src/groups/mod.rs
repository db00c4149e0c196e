//! Groups: the teams of a workspace that its directory keeps. A group's name is an entry in its members' `teams`. A group may carry
//! a role, which the workspace's own callers give it: its members have the strongest of their groups' roles, never OWNER,
//! and their former one when they leave. Only what a directory says makes somebody a member of a group, whatever their
//! `teams` say.

pub(crate) mod http;
pub(crate) mod plan;
mod roles;
pub(crate) mod roles_http;
mod store;
mod write;

use std::collections::HashMap;

use ::store::Tx;
use kernel::{AppId, Error, MemberId, Result, TenantId, Timestamp, id_kinds};
use serde_json::{Map, Value, json};
use tenancy::{
    members::provisioning,
    roles::{self as app_roles, Role, RoleId},
};

pub(crate) use store::of_users;
pub(crate) use write::{change, create, set_role};

use crate::{
    directory::Directory,
    listing::{Gathered, Page, Query},
    resource::Written,
    schema::GROUP,
};

id_kinds! {
    /// A group that a directory keeps.
    ScimGroupId(ScimGroupKind) = "scimgroup";
}

/// Members that one page of a list has at most, in all its groups together; a page with more is cut, and has one group at least.
const MOST_ON_A_PAGE: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) id: ScimGroupId,
    pub(crate) display_name: String,
    pub(crate) external_id: Option<String>,
    pub(crate) role_id: Option<RoleId>,
    pub(crate) version: i64,
    pub(crate) created_at: Timestamp,
}

impl Group {
    fn written(&self, base: &str) -> Written {
        let mut body = Map::new();
        body.insert("schemas".to_owned(), json!([GROUP.urn]));
        body.insert("id".to_owned(), json!(self.id));
        if let Some(external) = &self.external_id {
            body.insert("externalId".to_owned(), json!(external));
        }
        body.insert("displayName".to_owned(), json!(self.display_name));
        let location = format!("{base}/Groups/{}", self.id);
        Written::new(body, GROUP.name, &self.created_at.to_string(), location, Some(self.version))
    }
}

fn with_members(written: &mut Written, base: &str, members: &[MemberId]) {
    let entry = |id: &MemberId| json!({ "value": id, "$ref": format!("{base}/Users/{id}") });
    if !members.is_empty() {
        written.body.insert("members".to_owned(), Value::Array(members.iter().map(entry).collect()));
    }
}

pub(crate) fn get(tx: &mut Tx<'_>, directory: &Directory, id: ScimGroupId) -> Result<Group> {
    let found = store::find(tx, directory.app(), directory.tenant, id)?;
    found.ok_or_else(|| Error::not_found("group in this workspace"))
}

/// The group as it goes over the wire, with its members if they are asked for.
pub(crate) fn show(tx: &mut Tx<'_>, directory: &Directory, group: &Group, members: bool) -> Result<Written> {
    let base = directory.base();
    let mut written = group.written(&base);
    if members {
        with_members(&mut written, &base, &members_of(tx, directory, group.id)?);
    }
    Ok(written)
}

/// Those who are users of the workspace: what is left of others is about to be deleted.
fn members_of(tx: &mut Tx<'_>, directory: &Directory, group: ScimGroupId) -> Result<Vec<MemberId>> {
    let ids = store::member_ids(tx, directory.app(), directory.tenant, group)?;
    let users = provisioning::find_all(tx, directory.app(), directory.tenant, &ids)?;
    Ok(users.into_iter().map(|user| user.id).collect())
}

/// A page of the workspace's groups.
pub(crate) fn list(tx: &mut Tx<'_>, directory: &Directory, query: &Query) -> Result<Page> {
    let base = directory.base();
    let decides = query.decides_by("members");
    let mut gathered = Gathered::new(query);
    for group in store::list(tx, directory.app(), directory.tenant)? {
        gathered.add(show(tx, directory, &group, decides)?);
    }
    let mut page = gathered.page();
    if decides || !query.selection.has(query.schema, "members") {
        return Ok(page);
    }
    let (mut shown, mut groups) = (0, 0);
    for written in &mut page.resources {
        let id = written.body.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        let members = id.map_or_else(|| Ok(Vec::new()), |id| members_of(tx, directory, id))?;
        if groups > 0 && shown + members.len() > MOST_ON_A_PAGE {
            break;
        }
        (shown, groups) = (shown + members.len(), groups + 1);
        with_members(written, &base, &members);
    }
    page.resources.truncate(groups);
    Ok(page)
}

/// The strongest role that a user's groups give them, if any.
pub(crate) fn strongest_role(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, member: MemberId) -> Result<Option<Role>> {
    let mut given = Vec::new();
    for id in store::roles_of(tx, app, tenant, member)? {
        // A role may have gone since no member of its group held it.
        given.extend(app_roles::find(tx, app, id)?);
    }
    Ok(roles::strongest(given))
}

/// Takes a user who is gone out of their groups.
pub(crate) fn forget_user(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, member: MemberId) -> Result<()> {
    let groups: HashMap<MemberId, Vec<(ScimGroupId, String)>> = of_users(tx, app, tenant, &[member])?;
    for (group, _) in groups.into_values().flatten() {
        store::remove_member(tx, app, tenant, group, member)?;
        store::bump(tx, app, tenant, group)?;
    }
    Ok(())
}
