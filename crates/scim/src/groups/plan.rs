//! What a request makes of a group, worked out beside the writer: a group may have tens of thousands of members, and
//! comparing them holds nobody up. The plan is for one version of the group.

use std::collections::HashSet;

use ::store::Tx;
use kernel::{MemberId, Name, Problems, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenancy::members::provisioning;
use web::{Validate, from_value};

use super::{Group, ScimGroupId, get, store};
use crate::{
    directory::Directory,
    http::Versions,
    patch::{self, PatchOperation},
    schema::GROUP,
    users::ExternalId,
};

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

/// A group to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewGroup {
    pub(super) display_name: String,
    pub(super) external_id: Option<String>,
    pub(super) members: Vec<MemberId>,
}

/// What happens to one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Joins,
    Leaves,
    /// The group's new name takes the place of the former one in their teams.
    Stays,
}

/// What becomes of the group once its users have moved.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    /// Its version is the group's until the end.
    Changed(Group),
    Deleted,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) before: Group,
    /// In the order of their ids, so that tests and facts are repeatable.
    pub(super) moves: Vec<(MemberId, Move)>,
    pub(super) ending: Ending,
}

impl Plan {
    /// Whether nothing is to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.moves.is_empty() && matches!(&self.ending, Ending::Changed(after) if *after == self.before)
    }

    pub(super) fn joining<'a>(group: &Group, members: impl Iterator<Item = &'a MemberId>) -> Self {
        let moves = members.map(|id| (*id, Move::Joins)).collect();
        Self { before: group.clone(), moves, ending: Ending::Changed(group.clone()) }
    }
}

pub(crate) fn creation(tx: &mut Tx<'_>, directory: &Directory, body: &Map<String, Value>) -> Result<NewGroup> {
    let body: GroupBody = from_value(&Value::Object(body.clone()))?;
    let mut members: Vec<MemberId> = body.members(tx, directory)?.into_iter().flatten().collect();
    members.sort_unstable();
    Ok(NewGroup {
        display_name: body.display_name.trim().to_owned(),
        external_id: body.external_id.map(String::from),
        members,
    })
}

/// Those who are to join a group that exists.
pub(super) fn joined(tx: &mut Tx<'_>, directory: &Directory, id: ScimGroupId, wanted: &[MemberId]) -> Result<Plan> {
    let (group, members) = current(tx, directory, id, &Versions::any())?;
    let users = provisioning::find_all(tx, directory.app(), directory.tenant, wanted)?;
    let missing: Vec<MemberId> = users.into_iter().map(|user| user.id).filter(|id| !members.contains(id)).collect();
    Ok(Plan::joining(&group, missing.iter()))
}

/// Members stay as they are when nothing is said of them.
pub(crate) fn replacement(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: ScimGroupId,
    versions: &Versions,
    body: &Map<String, Value>,
) -> Result<Plan> {
    let (before, members) = current(tx, directory, id, versions)?;
    change(tx, directory, before, &members, body)
}

pub(crate) fn patched(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: ScimGroupId,
    versions: &Versions,
    operations: &[PatchOperation],
) -> Result<Plan> {
    let (before, members) = current(tx, directory, id, versions)?;
    let mut content = before.written(&directory.base()).body;
    let mut ids: Vec<&MemberId> = members.iter().collect();
    ids.sort_unstable();
    content.insert("members".to_owned(), ids.iter().map(|id| json!({ "value": id })).collect());
    patch::apply(&GROUP, &mut content, operations)?;
    let mut body = GROUP.read(&Value::Object(content))?;
    // Removed members are none, not those there were.
    body.entry("members").or_insert_with(|| json!([]));
    change(tx, directory, before, &members, &body)
}

pub(crate) fn removal(tx: &mut Tx<'_>, directory: &Directory, id: ScimGroupId, versions: &Versions) -> Result<Plan> {
    let (before, members) = current(tx, directory, id, versions)?;
    let mut moves: Vec<(MemberId, Move)> = members.into_iter().map(|id| (id, Move::Leaves)).collect();
    moves.sort_unstable_by_key(|(id, _)| *id);
    Ok(Plan { before, moves, ending: Ending::Deleted })
}

/// The group with its members, if the request is for this version.
fn current(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: ScimGroupId,
    versions: &Versions,
) -> Result<(Group, HashSet<MemberId>)> {
    let group = get(tx, directory, id)?;
    versions.allow(&group.written(&directory.base()))?;
    let ids = store::member_ids(tx, directory.app(), directory.tenant, id)?;
    let users = provisioning::find_all(tx, directory.app(), directory.tenant, &ids)?;
    Ok((group, users.into_iter().map(|user| user.id).collect()))
}

fn change(
    tx: &mut Tx<'_>,
    directory: &Directory,
    before: Group,
    members: &HashSet<MemberId>,
    body: &Map<String, Value>,
) -> Result<Plan> {
    let body: GroupBody = from_value(&Value::Object(body.clone()))?;
    let wanted = body.members(tx, directory)?.unwrap_or_else(|| members.clone());
    let after = Group {
        display_name: body.display_name.trim().to_owned(),
        external_id: body.external_id.map(String::from),
        ..before.clone()
    };
    let is_renamed = after.display_name != before.display_name;
    let of = |id: &MemberId| match (members.contains(id), wanted.contains(id)) {
        (false, _) => Some((*id, Move::Joins)),
        (true, false) => Some((*id, Move::Leaves)),
        (true, true) => is_renamed.then_some((*id, Move::Stays)),
    };
    let mut moves: Vec<(MemberId, Move)> = members.union(&wanted).filter_map(of).collect();
    moves.sort_unstable_by_key(|(id, _)| *id);
    Ok(Plan { before, moves, ending: Ending::Changed(after) })
}
