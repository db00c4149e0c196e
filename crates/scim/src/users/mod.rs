//! Users: the members of the workspace and those whom it has invited. What a directory says of them beyond that (its own id for
//! them, the role they have without their groups) is a row here.

pub(crate) mod http;
mod store;
mod write;

use std::collections::{HashMap, HashSet};

use ::store::Tx;
use kernel::{AppId, Error, MemberId, Result, TenantId};
use serde_json::{Map, Value, json};
use spine::Fact;
use tenancy::{
    facts::{InvitationDeleted, TenantUserDeleted},
    members::{Listed, provisioning},
    roles::RoleId,
};

pub(crate) use store::UserRow;
pub(crate) use write::{ExternalId, create, patch, remove, replace, save_roles};

use crate::{
    directory::Directory,
    groups::{self, ScimGroupId},
    listing::{Gathered, Page, Query},
    resource::Written,
    schema::USER,
};

/// Users read at once while all of a workspace are looked through.
const CHUNK: i64 = 500;

/// A user with all that a directory is told of them.
#[derive(Clone, Debug)]
pub(crate) struct ScimUser {
    pub(crate) listed: Listed,
    pub(crate) row: UserRow,
    pub(crate) groups: Vec<(ScimGroupId, String)>,
    /// Whether the workspace knows them by their address alone: their names are none of its business until they come.
    pub(crate) reserved: bool,
}

impl ScimUser {
    /// What can be written, for a patch.
    pub(crate) fn content(&self) -> Map<String, Value> {
        let Listed { email, first_name, last_name, enabled, role, .. } = &self.listed;
        let mut content = Map::new();
        if let Some(external) = &self.row.external_id {
            content.insert("externalId".to_owned(), json!(external));
        }
        content.insert("userName".to_owned(), json!(email));
        let has_names = !(first_name.is_empty() && last_name.is_empty());
        if has_names && !self.reserved {
            let mut name = Map::new();
            for (part, value) in [("familyName", last_name), ("givenName", first_name)] {
                if !value.is_empty() {
                    name.insert(part.to_owned(), json!(value));
                }
            }
            content.insert("name".to_owned(), Value::Object(name));
        }
        content.insert("active".to_owned(), json!(enabled));
        content.insert("roles".to_owned(), json!([{ "value": role, "primary": true }]));
        content
    }

    pub(crate) fn written(&self, base: &str) -> Written {
        let mut body = Map::new();
        body.insert("schemas".to_owned(), json!([USER.urn]));
        body.insert("id".to_owned(), json!(self.listed.id));
        body.extend(self.content());
        let address = json!({ "value": self.listed.email, "type": "work", "primary": true });
        body.insert("emails".to_owned(), json!([address]));
        if !self.groups.is_empty() {
            let groups = self.groups.iter().map(|(id, name)| {
                json!({ "value": id, "$ref": format!("{base}/Groups/{id}"), "display": name, "type": "direct" })
            });
            body.insert("groups".to_owned(), groups.collect());
        }
        let location = format!("{base}/Users/{}", self.listed.id);
        Written::new(body, USER.name, &self.listed.created_at.to_string(), location, None)
    }
}

pub(crate) fn get(tx: &mut Tx<'_>, directory: &Directory, id: MemberId) -> Result<ScimUser> {
    let listed = provisioning::get(tx, directory.app(), directory.tenant, id)?;
    let mut users = complete(tx, directory, vec![listed], true)?;
    users.pop().ok_or_else(|| Error::internal("a user was lost"))
}

/// Adds what this room knows of the users.
fn complete(tx: &mut Tx<'_>, directory: &Directory, listed: Vec<Listed>, with_groups: bool) -> Result<Vec<ScimUser>> {
    let (app, tenant) = (directory.app(), directory.tenant);
    let ids: Vec<MemberId> = listed.iter().map(|user| user.id).collect();
    let mut rows: HashMap<MemberId, UserRow> = store::find_all(tx, app, tenant, &ids)?.into_iter().collect();
    let mut groups = if with_groups { groups::of_users(tx, app, tenant, &ids)? } else { HashMap::new() };
    let reserved: HashSet<MemberId> = provisioning::vouched(tx, app, tenant)?.into_iter().collect();
    let user = |listed: Listed| ScimUser {
        row: rows.remove(&listed.id).unwrap_or_default(),
        groups: groups.remove(&listed.id).unwrap_or_default(),
        reserved: reserved.contains(&listed.id),
        listed,
    };
    Ok(listed.into_iter().map(user).collect())
}

/// A page of the workspace's users.
pub(crate) fn list(tx: &mut Tx<'_>, directory: &Directory, query: &Query) -> Result<Page> {
    let (app, tenant, base) = (directory.app(), directory.tenant, directory.base());
    let with_groups = query.needs("groups");
    if query.is_plain() {
        let total = provisioning::count(tx, app, tenant)?;
        let listed = provisioning::from_place(tx, app, tenant, query.start - 1, query.count)?;
        let users = complete(tx, directory, listed, with_groups)?;
        return Ok(Page { total, resources: users.iter().map(|user| user.written(&base)).collect() });
    }
    let mut gathered = Gathered::new(query);
    if let Some(listed) = found_by_index(tx, app, tenant, query)? {
        complete(tx, directory, listed, with_groups)?.iter().for_each(|user| gathered.add(user.written(&base)));
        return Ok(gathered.page());
    }
    let mut last = None;
    loop {
        let listed = provisioning::after(tx, app, tenant, last, CHUNK)?;
        let Some(newest) = listed.last() else { return Ok(gathered.page()) };
        last = Some(newest.id);
        complete(tx, directory, listed, with_groups)?.iter().for_each(|user| gathered.add(user.written(&base)));
    }
}

/// The few users that can fit a filter on what is unique, which is what directories ask for most.
fn found_by_index(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, query: &Query) -> Result<Option<Vec<Listed>>> {
    let Some(filter) = &query.filter else { return Ok(None) };
    if let Some(address) = filter.equals("userName") {
        return Ok(Some(provisioning::find_by_address(tx, app, tenant, address)?.into_iter().collect()));
    }
    let ids = match (filter.equals("id"), filter.equals("externalId")) {
        (Some(id), _) => id.parse().into_iter().collect(),
        (None, Some(external)) => store::by_external_id(tx, app, tenant, external)?,
        (None, None) => return Ok(None),
    };
    provisioning::find_all(tx, app, tenant, &ids).map(Some)
}

pub(crate) fn row(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: MemberId) -> Result<UserRow> {
    let found = store::find_all(tx, app, tenant, &[id])?;
    Ok(found.into_iter().next().map(|(_, row)| row).unwrap_or_default())
}

/// Forgets what a directory said of somebody who is gone, however they went.
pub(crate) fn forget_gone(tx: &mut Tx<'_>, fact: &Fact) -> Result<()> {
    let gone = match (fact.read::<TenantUserDeleted>()?, fact.read::<InvitationDeleted>()?) {
        (Some(TenantUserDeleted(member)), _) => Some((member.workspace_id, member.tenant_user_id)),
        (_, Some(InvitationDeleted { invitation, .. })) => Some((invitation.workspace_id, invitation.tenant_user_id)),
        _ => None,
    };
    let (Some(app), Some((tenant, id))) = (fact.app, gone) else { return Ok(()) };
    // An address that was changed may have left an invitation under the same id.
    match provisioning::find_all(tx, app, tenant, &[id])?.is_empty() {
        true => forget(tx, app, tenant, id),
        false => Ok(()),
    }
}

fn forget(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: MemberId) -> Result<()> {
    groups::forget_user(tx, app, tenant, id)?;
    store::delete(tx, app, tenant, id)
}

/// The role that a user has without their groups.
pub(crate) fn own_role(user: &Listed, row: &UserRow) -> RoleId {
    match (row.given_role_id, row.former_role_id) {
        (Some(given), Some(former)) if given == user.role_id => former,
        // Somebody gave them another one by hand since.
        _ => user.role_id,
    }
}
