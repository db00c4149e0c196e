//! Who may give what: authority moves only with authority. Whatever a caller hands out (a role, a token, a password link, a
//! setting that decides who is believed), it holds itself. An unrestricted app key and the operator count as holding
//! everything. Every check of this kind is made here; the rules themselves are pure and stand in `rules`.

#[cfg(test)]
mod properties;
mod rules;

use std::sync::Arc;

use ::store::Tx;
use kernel::{AppId, Code, Error, MemberId, Result, TenantId, UserId};

use crate::{
    apps::Profile,
    callers::{KeyCredential, SignedIn},
    members,
    roles::{self, Role},
};

pub(crate) use rules::Held;

/// What a caller may hand out, and how far they reach.
#[derive(Clone, Debug)]
pub struct Authority {
    held: Held,
    /// Set for whoever acts in one workspace only.
    workspace: Option<TenantId>,
    /// In whose name the caller acts: a member who is signed in, or who made the token.
    member: Option<MemberId>,
}

impl Authority {
    /// The operator's.
    pub fn unlimited() -> Self {
        Self { held: Held::Everything, workspace: None, member: None }
    }

    #[cfg(test)]
    pub(crate) fn holding(privileges: &[String]) -> Self {
        Self { held: Held::Only(privileges.into()), workspace: None, member: None }
    }

    pub fn of_key(credential: &KeyCredential) -> Self {
        let held =
            if credential.unrestricted { Held::Everything } else { Held::Only(Arc::clone(&credential.privileges)) };
        Self { held, workspace: credential.scoped_to(), member: credential.member }
    }

    /// A member's, as their privileges are now.
    pub fn of_user(user: &SignedIn) -> Self {
        let held = Held::Only(user.privileges.clone().into());
        Self { held, workspace: Some(user.tenant()), member: Some(user.member()) }
    }

    /// A SCIM token's: what its maker held, `None` being everything, in one workspace.
    pub(crate) fn of_scim_token(held: Option<Arc<[String]>>, workspace: TenantId) -> Self {
        Self { held: held.map_or(Held::Everything, Held::Only), workspace: Some(workspace), member: None }
    }

    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// The one workspace that the caller acts in, if it is not the whole app.
    pub(crate) fn workspace(&self) -> Option<TenantId> {
        self.workspace
    }

    pub(crate) fn member(&self) -> Option<MemberId> {
        self.member
    }

    /// 403 unless the caller holds each of these privileges.
    pub fn may_grant<'a>(&self, privileges: impl IntoIterator<Item = &'a str>) -> Result<()> {
        match self.held.first_lacking(privileges) {
            None => Ok(()),
            Some(key) => Err(Error::new(
                Code::MissingPrivilege,
                format!("You can only grant privileges that you have yourself, and you do not have {key}."),
            )),
        }
    }

    /// 403 for a role with a privilege that the caller lacks. Everybody may give the default role.
    pub fn may_give(&self, role: &Role) -> Result<()> {
        match rules::beyond(&self.held, role) {
            None => Ok(()),
            Some(key) => Err(Error::new(
                Code::Forbidden,
                format!("The role {} includes {key}, which you do not have yourself.", role.key),
            )),
        }
    }

    /// 403 when a role would get a privilege that the caller lacks: in itself, or by becoming the role that everybody gets.
    pub(crate) fn may_define(&self, before: Option<&Role>, after: &Role) -> Result<()> {
        self.may_grant(rules::handed_out(before, after))?;
        match rules::is_renamed_power(before, after) {
            true => self.may_move_power("the keys OWNER and ADMIN"),
            false => Ok(()),
        }
    }

    /// 403 for settings that decide who is believed, unless the caller holds all that an ordinary app key holds.
    pub(crate) fn may_change(&self, before: &Profile, after: &Profile, changed: &[String]) -> Result<()> {
        match rules::powerful_setting(before, after, changed) {
            Some(setting) => self.may_move_power(setting),
            None => Ok(()),
        }
    }

    /// The same for one such setting.
    pub(crate) fn may_move_power(&self, setting: &str) -> Result<()> {
        match self.held.lacks_power() {
            None => Ok(()),
            Some(key) => Err(Error::new(
                Code::MissingPrivilege,
                format!(
                    "Changing {setting} requires every built-in privilege except the destructive two, and you do not \
                     have {key}."
                ),
            )),
        }
    }

    /// 403 unless the caller could give every role that the person has: whoever can set somebody's password, or take their
    /// second factor away, can become them in all of their workspaces.
    pub fn may_become(&self, tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
        if self.held.is_everything() {
            return Ok(());
        }
        for role in members::roles_of(tx, app, user)? {
            self.may_give(&roles::get(tx, app, role)?)?;
        }
        Ok(())
    }

    /// 403 when a caller of one workspace would change somebody who belongs to others too.
    pub fn may_change_person(&self, tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
        if self.workspace.is_none() || !members::belongs_to_several(tx, app, user)? {
            return Ok(());
        }
        Err(Error::new(
            Code::Forbidden,
            "This user belongs to other workspaces too, which this change would affect. Use a key of the whole app.",
        ))
    }

    /// 403 for a caller of one workspace: the setting reaches beyond it.
    pub(crate) fn for_whole_app(&self, setting: &str) -> Result<()> {
        match self.workspace {
            None => Ok(()),
            Some(_) => {
                Err(Error::new(Code::Forbidden, format!("{setting} can only be set by a key of the whole app.")))
            }
        }
    }
}
