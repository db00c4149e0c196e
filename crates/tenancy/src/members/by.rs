//! On whose word members are changed. An app's own key may do anything with its people. A token gives no role that can
//! do more than the token itself; and the token of one workspace does not touch what a person is elsewhere: their
//! password, their factors, their sessions and their name are the same in all their workspaces.

use ::store::Tx;
use kernel::{AppId, Code, Error, Result, TenantId};

use super::{Member, store};
use crate::{
    api_tokens::Granter,
    callers::KeyCredential,
    roles::{self, Role},
};

#[derive(Clone, Debug)]
pub struct By {
    granter: Granter,
    /// Set for a token of one workspace.
    workspace: Option<TenantId>,
}

impl By {
    pub fn credential(credential: &KeyCredential) -> Self {
        Self { granter: Granter::of(credential), workspace: credential.scoped_to() }
    }

    /// 403 for a role with a privilege that neither the token holds nor everybody gets.
    pub(super) fn may_give(&self, tx: &mut Tx<'_>, app: AppId, role: &Role) -> Result<()> {
        let Some(held) = self.granter.held() else { return Ok(()) };
        let usual = roles::default_role(tx, app)?;
        let has = |role: &Role, key: &str| role.privileges.iter().any(|privilege| privilege.key == key);
        let beyond = role.privileges.iter().find(|one| !held.contains(&one.key) && !has(&usual, &one.key));
        match beyond {
            None => Ok(()),
            Some(privilege) => Err(Error::new(
                Code::Forbidden,
                format!("The role {} includes {}, which this API token does not have.", role.key, privilege.key),
            )),
        }
    }

    /// 403 when a token of one workspace would change somebody who belongs to others too.
    pub fn may_change_person(&self, tx: &mut Tx<'_>, app: AppId, member: &Member) -> Result<()> {
        if self.workspace.is_none() || store::associations(tx, app, member.user_id)?.len() <= 1 {
            return Ok(());
        }
        Err(Error::new(
            Code::Forbidden,
            "This user belongs to other workspaces too, which this change would affect. Use a key of the whole app.",
        ))
    }
}
