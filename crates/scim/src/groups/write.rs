//! Creating, changing and removing groups, with what follows for the teams and roles of their members: in steps of a few
//! users each, so that a directory with a large group keeps nobody else from writing. The group itself changes last and
//! every step can be repeated, so a request that was cut off is completed by sending it again.

use std::sync::Arc;

use ::store::Tx;
use kernel::{Code, Error, MemberId, Name, Result};
use spine::emit;
use tenancy::{
    facts::Change,
    members::{Listed, provisioning},
    roles::{self, OWNER, Role},
};

use super::{
    Group, ScimGroupId, get,
    plan::{self, Ending, Move, NewGroup, Plan},
    store,
};
use crate::{directory::Directory, facts::ScimGroupChanged, users};

/// Groups of one workspace at most.
const MOST: i64 = 5_000;

/// Users who move in one transaction.
const STEP: usize = 50;

/// How often a request is worked out again because another one changed the group meanwhile.
const ATTEMPTS: usize = 20;

/// Makes a group with its members.
pub(crate) async fn create(directory: &Directory, new: NewGroup) -> Result<Group> {
    let (own, new) = (directory.clone(), Arc::new(new));
    let first = Arc::clone(&new);
    let group = directory.tenancy.db.write(move |tx| insert(tx, &own, &first)).await?;
    if new.members.len() <= STEP {
        return Ok(group);
    }
    let (own, id) = (directory.clone(), group.id);
    change(directory, move |tx: &mut Tx<'_>| plan::joined(tx, &own, id, &new.members)).await
}

/// Works out what a request makes of a group and does it; the group as it is then, or was before it was deleted.
pub(crate) async fn change<P>(directory: &Directory, plan: P) -> Result<Group>
where
    P: Fn(&mut Tx<'_>) -> Result<Plan> + Clone + Send + 'static,
{
    for _ in 0..ATTEMPTS {
        let plan = directory.tenancy.db.scan(plan.clone()).await?;
        if let Some(group) = carry_out(directory, plan).await? {
            return Ok(group);
        }
    }
    Err(overtaken())
}

fn overtaken() -> Error {
    Error::new(Code::Conflict, "Other requests are changing this group at the same time. Send this one again.")
}

/// Nothing if another request changed the group before this one was done.
async fn carry_out(directory: &Directory, plan: Plan) -> Result<Option<Group>> {
    if plan.is_empty() {
        return Ok(Some(plan.before));
    }
    let (plan, mut at) = (Arc::new(plan), 0);
    loop {
        let (own, plan) = (directory.clone(), Arc::clone(&plan));
        match directory.tenancy.db.write(move |tx| step(tx, &own, &plan, at)).await? {
            Step::Next(next) => at = next,
            Step::Done(group) => return Ok(Some(group)),
            Step::Overtaken => return Ok(None),
        }
    }
}

enum Step {
    /// The place in the plan from which the next one continues.
    Next(usize),
    Done(Group),
    Overtaken,
}

fn step(tx: &mut Tx<'_>, directory: &Directory, plan: &Plan, at: usize) -> Result<Step> {
    let (app, tenant) = (directory.app(), directory.tenant);
    directory.hold(tx)?;
    let group = get(tx, directory, plan.before.id)?;
    // Each step before this one has counted as a change.
    if group.version != plan.before.version + i64::try_from(at / STEP).map_err(Error::internal)? {
        return Ok(Step::Overtaken);
    }
    if let Ending::Changed(after) = &plan.ending {
        is_free(tx, directory, &after.display_name, Some(after.id))?;
    }
    let end = plan.moves.len().min(at + STEP);
    let ids: Vec<MemberId> = plan.moves[at..end].iter().map(|(id, _)| *id).collect();
    let users = provisioning::find_all(tx, app, tenant, &ids)?;
    if users.len() < ids.len() {
        return Ok(Step::Overtaken);
    }
    for (user, (_, how)) in users.into_iter().zip(&plan.moves[at..end]) {
        move_user(tx, directory, plan, user, *how)?;
    }
    if end < plan.moves.len() {
        store::bump(tx, app, tenant, group.id)?;
        return Ok(Step::Next(end));
    }
    finish(tx, directory, &plan.ending, &group).map(Step::Done)
}

fn finish(tx: &mut Tx<'_>, directory: &Directory, ending: &Ending, group: &Group) -> Result<Group> {
    let (app, tenant) = (directory.app(), directory.tenant);
    match ending {
        Ending::Changed(after) => {
            let after = Group { version: group.version + 1, ..after.clone() };
            store::update(tx, app, tenant, &after, &key(&after.display_name))?;
            tell(tx, directory, &after, Change::Updated)?;
            Ok(after)
        }
        Ending::Deleted => {
            store::delete(tx, app, tenant, group.id)?;
            tell(tx, directory, group, Change::Deleted)?;
            Ok(group.clone())
        }
    }
}

fn insert(tx: &mut Tx<'_>, directory: &Directory, new: &NewGroup) -> Result<Group> {
    let (app, tenant) = (directory.app(), directory.tenant);
    directory.hold(tx)?;
    is_free(tx, directory, &new.display_name, None)?;
    if store::count(tx, app, tenant)? >= MOST {
        return Err(Error::new(Code::Conflict, format!("A workspace has at most {MOST} groups.")));
    }
    let group = Group {
        id: tx.new_id(),
        display_name: new.display_name.clone(),
        external_id: new.external_id.clone(),
        role_id: None,
        version: 1,
        created_at: tx.now(),
    };
    store::insert(tx, app, tenant, &group, &key(&group.display_name))?;
    let first = &new.members[..new.members.len().min(STEP)];
    let plan = Plan::joining(&group, first.iter());
    for user in provisioning::find_all(tx, app, tenant, first)? {
        move_user(tx, directory, &plan, user, Move::Joins)?;
    }
    tell(tx, directory, &group, Change::Created)?;
    Ok(group)
}

fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

fn is_free(tx: &mut Tx<'_>, directory: &Directory, name: &str, except: Option<ScimGroupId>) -> Result<()> {
    match store::is_named(tx, directory.app(), directory.tenant, &key(name), except)? {
        true => {
            Err(Error::new(Code::GroupExists, format!("Another group of this workspace is already called {name}.")))
        }
        false => Ok(()),
    }
}

/// Puts one team in the place of another, and gives the user the role that follows from their groups now.
fn move_user(tx: &mut Tx<'_>, directory: &Directory, plan: &Plan, user: Listed, how: Move) -> Result<()> {
    let (app, tenant, group) = (directory.app(), directory.tenant, plan.before.id);
    let former = plan.before.display_name.as_str();
    let next = match (&plan.ending, how) {
        (_, Move::Leaves) | (Ending::Deleted, _) => None,
        (Ending::Changed(after), Move::Joins | Move::Stays) => Some(after.display_name.as_str()),
    };
    match how {
        Move::Joins => store::add_member(tx, app, tenant, group, user.id)?,
        Move::Leaves => store::remove_member(tx, app, tenant, group, user.id)?,
        Move::Stays => (),
    }
    let mut teams: Vec<String> = user.teams;
    teams.retain(|team| how == Move::Joins || team != former);
    if let Some(next) = next.filter(|next| !teams.iter().any(|team| team == next)) {
        teams.push(next.to_owned());
    }
    let teams = teams.iter().map(|team| team.parse::<Name>().map_err(Error::internal)).collect::<Result<Vec<_>>>()?;
    users::save_roles(tx, directory, user.id, None, Some(teams))
}

/// Gives a group the role that its members have from now on, or takes it away; the group with the role. Not for
/// directories: the caller gives what they hold themselves. Said again, it is given again, which completes what was cut off.
pub(crate) async fn set_role(
    directory: &Directory,
    id: ScimGroupId,
    role: Option<String>,
) -> Result<(Group, Option<Role>)> {
    let (own, db) = (directory.clone(), &directory.tenancy.db);
    let (group, role, mut last) = db
        .write(move |tx| {
            let (group, role) = carry_role(tx, &own, id, role.as_deref())?;
            Ok((group, role, settle_roles(tx, &own, id, None)?))
        })
        .await?;
    while last.is_some() {
        let own = directory.clone();
        last = db.write(move |tx| settle_roles(tx, &own, id, last)).await?;
    }
    Ok((group, role))
}

fn carry_role(
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
    tell(tx, directory, &after, Change::Updated)?;
    Ok((after, role))
}

/// Gives a group's next members the role that follows from their groups; the last of them, if there may be more.
fn settle_roles(
    tx: &mut Tx<'_>,
    directory: &Directory,
    group: ScimGroupId,
    after: Option<MemberId>,
) -> Result<Option<MemberId>> {
    let (app, tenant) = (directory.app(), directory.tenant);
    directory.hold(tx)?;
    let ids = store::member_ids_after(tx, app, tenant, group, after, STEP as i64)?;
    // What is left of others is about to be deleted.
    for user in provisioning::find_all(tx, app, tenant, &ids)? {
        users::save_roles(tx, directory, user.id, None, None)?;
    }
    Ok(ids.last().copied().filter(|_| ids.len() == STEP))
}

fn tell(tx: &mut Tx<'_>, directory: &Directory, group: &Group, change: Change) -> Result<()> {
    let fact = ScimGroupChanged { group_id: group.id, display_name: group.display_name.clone(), change };
    emit(tx, (directory.app(), directory.tenant), &fact)
}
