//! A directory at work: whoever calls, in the workspace of their token.

use std::sync::Arc;

use kernel::{AppId, Result, TenantId};
use store::Tx;
use tenancy::{
    App, Authority, Tenancy,
    callers::ScimCaller,
    workspaces::{self, Tenant},
};

/// What every operation of a directory needs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Directory {
    pub(crate) tenancy: Tenancy,
    pub(crate) app: Arc<App>,
    pub(crate) tenant: TenantId,
    pub(crate) authority: Authority,
}

impl Directory {
    pub(crate) fn of(tenancy: &Tenancy, caller: &ScimCaller) -> Self {
        Self {
            tenancy: tenancy.by(caller),
            app: Arc::clone(&caller.app),
            tenant: caller.tenant(),
            authority: caller.authority(),
        }
    }

    pub(crate) fn app(&self) -> AppId {
        self.app.id
    }

    /// The address of SCIM's resources, without a trailing slash.
    pub(crate) fn base(&self) -> String {
        base(&self.tenancy)
    }

    /// The workspace, which nobody else changes until the transaction ends.
    pub(crate) fn hold(&self, tx: &mut Tx<'_>) -> Result<Tenant> {
        workspaces::lock(tx, self.tenant)?;
        workspaces::get(tx, self.app(), self.tenant)
    }
}

pub(crate) fn base(tenancy: &Tenancy) -> String {
    format!("{}/scim/v2", tenancy.base_url)
}
