//! What `x-api-key` may hold: an app API key, or an API token (three parts between dots).

use std::sync::Arc;

use http::request::Parts;
use kernel::{Actor, AppId, Author, Authored, Code, Error, KeyId, MemberId, Result, TenantId};
use web::{Scope, optional_header};

use super::privileges::{Privilege, require};
use crate::{App, Tenancy, api_tokens::ApiTokenId};

/// A key or token that was checked for this request.
#[derive(Clone)]
pub struct KeyCredential {
    pub app: Arc<App>,
    pub holder: KeyHolder,
    /// Set for a workspace-scoped token: it acts nowhere else.
    pub tenant: Option<TenantId>,
    pub privileges: Arc<[String]>,
    /// Whether it may give any privilege; else those it holds.
    pub unrestricted: bool,
    /// The member in whose name the token was made.
    pub member: Option<MemberId>,
    /// The request that it came with.
    pub scope: Arc<Scope>,
}

impl Authored for KeyCredential {
    fn author(&self) -> Author {
        self.scope.author(match self.holder {
            KeyHolder::AppKey(id) => Actor::app_key(id),
            KeyHolder::ApiToken(id) => Actor::api_token(id),
        })
    }
}

/// Which record stands behind the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHolder {
    AppKey(KeyId),
    ApiToken(ApiTokenId),
}

impl KeyCredential {
    pub fn app_id(&self) -> AppId {
        self.app.id
    }

    /// The one workspace that the credential is for, if it is not for the whole app.
    pub fn scoped_to(&self) -> Option<TenantId> {
        self.tenant
    }

    pub fn holds(&self, privilege: &str) -> bool {
        self.privileges.iter().any(|held| held == privilege)
    }

    /// 403 when this is a workspace-scoped token of another workspace.
    pub fn in_workspace(&self, tenant: TenantId) -> Result<()> {
        match self.tenant {
            Some(own) if own != tenant => Err(limited_to_own()),
            _ => Ok(()),
        }
    }

    /// 403 when this is a workspace-scoped token.
    pub fn for_whole_app(&self) -> Result<()> {
        match self.tenant {
            Some(_) => Err(Error::new(
                Code::Forbidden,
                "This operation requires a key of the whole app, not one of a single workspace.",
            )),
            None => Ok(()),
        }
    }
}

/// Checks the credential and that it holds `P`.
pub(super) async fn authenticate<P: Privilege>(parts: &Parts, tenancy: &Tenancy) -> Result<KeyCredential> {
    // A proxy that adds a key of its own and a client that sends one would disagree about who calls.
    if parts.headers.get_all("x-api-key").iter().count() > 1 {
        return Err(Error::new(Code::MalformedRequest, "The header x-api-key must not be sent more than once."));
    }
    let Some(presented) = parts.headers.get("x-api-key") else {
        return Err(Error::new(Code::Unauthenticated, "Send an API key or an API token in the x-api-key header."));
    };
    let scope = Scope::of(&parts.extensions);
    let found = match presented.to_str() {
        Ok(presented) => find(presented, tenancy, &scope).await,
        Err(_) => Err(Error::credential("The API key is not valid.")),
    };
    match found {
        Ok(credential) => {
            scope.caller_of(credential.app_id())?;
            if let Some(tenant) = credential.tenant {
                scope.set_tenant(tenant);
            }
            require::<P>(&credential.privileges)?;
            own_workspace(parts, &credential)?;
            Ok(credential)
        }
        Err(error) => {
            if error.code() == Code::InvalidCredential {
                scope.key_refused()?;
            }
            Err(error)
        }
    }
}

/// 403 where a workspace-scoped token is sent along with the name of another workspace, whether or not the operation asks for one.
fn own_workspace(parts: &Parts, credential: &KeyCredential) -> Result<()> {
    let Some(own) = credential.tenant else { return Ok(()) };
    match optional_header(&parts.headers, "x-tenant-id")? {
        // What cannot be an id is as foreign as that of another workspace.
        Some(named) if named.parse() != Ok(own) => Err(limited_to_own()),
        _ => Ok(()),
    }
}

fn limited_to_own() -> Error {
    Error::new(Code::Forbidden, "This API token is limited to its own workspace.")
}

async fn find(presented: &str, tenancy: &Tenancy, scope: &Arc<Scope>) -> Result<KeyCredential> {
    if presented.split('.').count() == 3 {
        return tenancy.api_tokens.authenticate(presented, scope).await;
    }
    let key = tenancy.keys.find(presented).await?;
    let app = tenancy.apps.find(key.app).await?;
    let app = app.ok_or_else(|| Error::credential("The key's app no longer exists."))?;
    Ok(KeyCredential {
        app,
        holder: KeyHolder::AppKey(key.id),
        tenant: None,
        privileges: key.privileges.clone(),
        unrestricted: key.unrestricted,
        member: None,
        scope: Arc::clone(scope),
    })
}
